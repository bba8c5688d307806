package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"loadline/internal/session"
)

const (
	maxReads     = 4           // at one time, each on a connection of its own
	maxPage      = 1000        // entries
	maxPageBytes = 4 << 20     // of texts, unless the first entry alone is larger
	maxReadBytes = 512 << 10   // the same, of events: each reader that does not read holds a page
	readIdle     = time.Minute // after which an unused connection is closed
)

// reader runs queries that change nothing.
type reader struct {
	db      *sql.DB
	queries map[string]string
	slots   chan struct{} // one token for each running query

	mu         sync.Mutex // guards statements
	statements map[string]*sql.Stmt
}

func newReader(db *sql.DB, queries map[string]string) *reader {
	db.SetMaxIdleConns(maxReads)
	db.SetConnMaxIdleTime(readIdle)
	return &reader{db: db, queries: queries, slots: make(chan struct{}, maxReads), statements: make(map[string]*sql.Stmt)}
}

func (r *reader) close() error { return r.db.Close() }

// each runs the query called name and calls scan on each row until scan returns
// false. The query itself is not bound to ctx, which would cost a goroutine for
// each: ctx is looked at between rows, and no query computes for long between two.
func (r *reader) each(ctx context.Context, name string, args []any, scan func(*sql.Rows) (more bool, err error)) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	statement, err := r.prepare(name)
	if err != nil {
		return err
	}
	rows, err := statement.QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := scan(rows)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !more {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// alone runs do while no query runs; queries that come meanwhile wait for it.
func (r *reader) alone(do func() error) error {
	for range maxReads {
		r.slots <- struct{}{}
	}
	defer func() {
		for range maxReads {
			<-r.slots
		}
	}()
	return do()
}

// one is each for a query of at most one row; without one it is ErrNotFound.
func (r *reader) one(ctx context.Context, name string, args []any, scan func(*sql.Rows) error) error {
	err := session.ErrNotFound
	failure := r.each(ctx, name, args, func(rows *sql.Rows) (bool, error) {
		err = nil
		return false, scan(rows)
	})
	if failure != nil {
		return failure
	}
	return err
}

func (r *reader) prepare(name string) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if statement, ok := r.statements[name]; ok {
		return statement, nil
	}
	statement, err := r.db.PrepareContext(context.Background(), r.queries[name])
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	r.statements[name] = statement
	return statement, nil
}
