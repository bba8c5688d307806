package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"loadline/internal/session"
)

// failed wraps what went wrong when something was tried outside of the writer.
func (s *Store) failed(tried string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", tried, err)
	}
	return fmt.Errorf("%s: %w", tried, storageError(s.path, err))
}

// errMoved means that the database was moved or deleted beneath the running server.
var errMoved = errors.New("the file was moved or deleted while the server runs; put it back where it was, or stop the server")

// storageError is an error of the disk or the database: on which file it happened,
// and what a person can do about it.
func storageError(path string, err error) error {
	return fmt.Errorf("%w: %s: %w%s", session.ErrStorage, path, err, advice(err))
}

// advice is what a person can do about err, or empty.
func advice(err error) string {
	engine, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return ""
	}
	switch engine.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "; free space on its disk"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "; close the other program that has the file open"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return "; make the file and its folder writable"
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return "; the file is damaged or no database: restore it from a backup, or move it away to start empty"
	case sqlite3.SQLITE_IOERR:
		return "; check its disk"
	}
	return ""
}

// ofEngine reports whether err came from the disk or the database, so that nothing
// more can be done on its connection; else it refuses one unit only.
func ofEngine(err error) bool {
	if engine, ok := errors.AsType[*sqlite.Error](err); ok {
		switch engine.Code() & 0xff {
		case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
			return false
		}
		return true
	}
	return errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn)
}
