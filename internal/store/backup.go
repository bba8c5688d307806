package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"loadline/internal/session"
)

// measureEvery is how often the growing copy is looked at.
const measureEvery = 200 * time.Millisecond

// Backup writes the database of the data folder from, as it is at one moment, into
// the folder to, which holds none yet. A server may use from meanwhile: it goes on
// writing, and its log on disk grows until the copy is done. The copy is on disk when
// Backup returns; after an error a part of it may be left. progress, which may be
// nil, is told the bytes written and about how many there will be, one call at a time.
func Backup(ctx context.Context, from, to string, progress func(written, total int64)) error {
	source, target := filepath.Join(from, fileName), filepath.Join(to, fileName)
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is no data folder: there is no %s in it", from, fileName)
	} else if err != nil {
		return fmt.Errorf("read the data folder: %w", err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", target, errors.Join(fs.ErrExist, err))
	}
	if err := createPrivate(target); err != nil {
		return err
	}
	if err := copyDatabase(ctx, source, target, progress); err != nil {
		return err
	}
	return syncFile(target)
}

// copyDatabase has SQLite write a copy, in one transaction that only reads.
func copyDatabase(ctx context.Context, source, target string, progress func(written, total int64)) error {
	db, err := sql.Open("sqlite", dsn(source, 5*time.Second)+"&mode=ro")
	if err != nil {
		return storageError(source, err)
	}
	defer func() { _ = db.Close() }() // it only read
	db.SetMaxOpenConns(1)
	var totalBytes int64
	const size = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
	if err := db.QueryRowContext(ctx, size).Scan(&totalBytes); err != nil {
		return copyError(ctx, source, target, err)
	}
	stop := measure(target, totalBytes, progress)
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", target)
	stop()
	return copyError(ctx, source, target, err)
}

// copyError names the file that err is about: what cannot be written is the copy.
func copyError(ctx context.Context, source, target string, err error) error {
	switch engine, _ := errors.AsType[*sqlite.Error](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case engine != nil && (engine.Code()&0xff == sqlite3.SQLITE_FULL || engine.Code() == sqlite3.SQLITE_IOERR_WRITE):
		return storageError(target, err)
	}
	return storageError(source, err)
}

// measure tells progress how large the file is, until stop is called.
func measure(path string, totalBytes int64, progress func(written, total int64)) (stop func()) {
	if progress == nil {
		return func() {}
	}
	var measuring sync.WaitGroup
	done := make(chan struct{})
	measuring.Go(func() {
		ticker := time.NewTicker(measureEvery)
		defer ticker.Stop()
		for {
			if info, err := os.Stat(path); err == nil {
				progress(min(info.Size(), totalBytes), totalBytes)
			}
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		measuring.Wait()
	}
}

// syncFile has a file that was written by others on disk before it returns.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return nil
}
