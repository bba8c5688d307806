package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// connection is the one that writes, with the statements prepared on it so far. It
// is used by one goroutine. Contexts do not reach it: what has begun is finished.
type connection struct {
	conn       *sql.Conn
	queries    map[string]string
	statements map[string]*sql.Stmt
}

func connect(db *sql.DB, queries map[string]string) (*connection, error) {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, queries: queries, statements: make(map[string]*sql.Stmt)}, nil
}

// close also closes the statements: those of a sql.Conn do not end with it, and
// with one of them open the file would stay open.
func (c *connection) close() error {
	var errs []error
	for _, statement := range c.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// exec runs the query called name.
func (c *connection) exec(name string, args ...any) (sql.Result, error) {
	statement, err := c.prepare(name, c.queries[name])
	if err != nil {
		return nil, err
	}
	result, err := statement.ExecContext(context.Background(), args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return result, nil
}

// queryRow runs the query called name and reads its one row into dest. Without a
// row it returns sql.ErrNoRows.
func (c *connection) queryRow(name string, args []any, dest ...any) error {
	statement, err := c.prepare(name, c.queries[name])
	if err != nil {
		return err
	}
	err = statement.QueryRowContext(context.Background(), args...).Scan(dest...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// control runs a statement about transactions.
func (c *connection) control(text string) error {
	statement, err := c.prepare(text, text)
	if err != nil {
		return err
	}
	_, err = statement.ExecContext(context.Background())
	return err
}

func (c *connection) prepare(name, text string) (*sql.Stmt, error) {
	if statement, ok := c.statements[name]; ok {
		return statement, nil
	}
	statement, err := c.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	c.statements[name] = statement
	return statement, nil
}

// try runs u inside the transaction and, unless u is alone in it, takes back what
// it did when it fails.
func (c *connection) try(u *unit, alone bool) error {
	if alone {
		return u.run(c)
	}
	if err := c.control("SAVEPOINT unit"); err != nil {
		return err
	}
	refused := u.run(c)
	if refused != nil {
		if ofEngine(refused) {
			return refused
		}
		if err := c.control("ROLLBACK TO unit"); err != nil {
			return err
		}
	}
	if err := c.control("RELEASE unit"); err != nil {
		return err
	}
	return refused
}

// emptyLog moves all of the write-ahead log into the database and cuts it to
// nothing.
func (c *connection) emptyLog() error {
	var busy, frames, moved int64
	row := c.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	if err := row.Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errors.New("readers are using it")
	}
	return nil
}
