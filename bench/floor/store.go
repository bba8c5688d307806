package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// store keeps turns in an SQLite file. It is safe for concurrent use.
type store struct {
	db     *sql.DB
	insert *sql.Stmt
}

// openStore opens or makes the file. A turn that add has stored survives a
// power cut: the log is synced at each commit.
func openStore(path string) (*store, error) {
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // there is one writer anyway, and nothing is read
	if _, err := db.Exec(`CREATE TABLE IF NOT EXISTS turn (n INTEGER PRIMARY KEY, input TEXT NOT NULL, answer TEXT NOT NULL)`); err != nil {
		return nil, fmt.Errorf("make the table of %s: %w", path, err)
	}
	insert, err := db.Prepare(`INSERT INTO turn (input, answer) VALUES ($1, $2)`)
	if err != nil {
		return nil, err
	}
	return &store{db, insert}, nil
}

// add stores one turn in a commit of its own.
func (s *store) add(ctx context.Context, input, answer string) error {
	_, err := s.insert.ExecContext(ctx, input, answer)
	return err
}
