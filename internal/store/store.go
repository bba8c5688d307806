// Package store is the durable log: sessions, their turns, items and events, in one
// SQLite file. A write that was acknowledged survives the death of the process and
// of the machine. Writes go through one goroutine, which commits what is waiting
// together; reads have connections of their own and never wait for it.
//
// Texts come back byte for byte; they are clean (session.Clean) when they come in.
// Every method is safe for concurrent use. Errors wrap session.ErrNotFound,
// ErrStale or ErrStorage where these apply, or the error of the context that ended.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"modernc.org/sqlite"

	"loadline/internal/session"
)

const fileName = "loadline.db"

// Store keeps sessions. Make one with Open; the zero Store is of no use.
type Store struct {
	path    string // of the database
	log     zerolog.Logger
	lock    *os.File // nil when the folder is not locked
	queries map[string]string
	writer  *writer
	reader  *reader

	stop    context.CancelFunc // ends the sweeper
	sweeper sync.WaitGroup
	graves  chan struct{} // holds one token when a session was deleted
	closed  func() error  // closes once
}

// options are what tests change.
type options struct {
	unlocked    bool          // allow a second store on the same folder
	busyTimeout time.Duration // how long a lock of another program is waited for
}

// Open opens the store in the folder dir, makes both when they are not there, and
// brings the tables up to date. One process at a time may have a folder open; a
// second Open fails. The folder should be on a local disk: on a network file system
// Open warns. ctx bounds the opening only.
func Open(ctx context.Context, dir string, log zerolog.Logger) (*Store, error) {
	return open(ctx, dir, log, options{busyTimeout: 5 * time.Second})
}

func open(ctx context.Context, dir string, log zerolog.Logger, opts options) (_ *Store, err error) {
	dir, err = makeFolder(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{path: filepath.Join(dir, fileName), log: log, queries: parseQueries(queryText()), graves: make(chan struct{}, 1)}
	if !opts.unlocked {
		if s.lock, err = lockFolder(dir); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			unlock(s.lock)
		}
	}()
	if name := networkFileSystem(dir); name != "" {
		log.Warn().Str("dir", dir).Str("file_system", name).
			Msg("data folder is on a network file system: a crash may lose or damage what was stored; set store.dir to a folder on a local disk")
	}
	if err := createPrivate(s.path); err != nil {
		return nil, err
	}
	if err := s.start(ctx, opts); err != nil {
		return nil, err
	}
	return s, nil
}

// start opens the database and the goroutines that need it.
func (s *Store) start(ctx context.Context, opts options) error {
	// SQLite's own builds sync with fdatasync where it exists; this one must be told.
	if _, err := sqlite.Fdatasync(true); err != nil {
		s.log.Debug().Err(err).Msg("commits are synced with fsync")
	}
	writing, err := sql.Open("sqlite", dsn(s.path, opts.busyTimeout, "journal_mode(WAL)", "synchronous(FULL)",
		"wal_autocheckpoint(4000)", "secure_delete(1)", "cache_size(-2000)"))
	if err != nil {
		return s.failed("open", err)
	}
	writing.SetMaxOpenConns(1)
	writing.SetMaxIdleConns(0) // a closed connection is closed, and the next one is fresh
	if err := migrateUp(ctx, writing); err != nil {
		return s.failed("open", errors.Join(err, writing.Close()))
	}
	reading, err := sql.Open("sqlite", dsn(s.path, opts.busyTimeout, "query_only(1)", "cache_size(-500)"))
	if err != nil {
		return s.failed("open", errors.Join(err, writing.Close()))
	}
	s.reader = newReader(reading, s.queries)
	s.writer = newWriter(writing, s.queries, s.path, s.log, s.reader.alone)
	sweeping, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.sweeper.Go(func() { s.keepSweeping(sweeping) })
	s.closed = sync.OnceValue(s.closeAll)
	if err := s.resumeSweep(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Close waits for the writes that were accepted and closes the file. Later writes
// fail with session.ErrStopping. To close again does nothing and returns the same.
func (s *Store) Close() error { return s.closed() }

func (s *Store) closeAll() error {
	s.stop()
	s.sweeper.Wait()
	err := s.reader.close()
	if werr := s.writer.close(); werr != nil {
		err = werr // the one that may have to do with what was written
	}
	unlock(s.lock)
	if err != nil {
		return s.failed("close", err)
	}
	return nil
}

func dsn(path string, busy time.Duration, pragmas ...string) string {
	query := url.Values{"_txlock": {"immediate"}, "_dqs": {"0"}, "_error_rc": {"1"}}
	query.Add("_pragma", "busy_timeout("+strconv.FormatInt(busy.Milliseconds(), 10)+")")
	for _, p := range pragmas {
		query.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// createPrivate makes the file at path, which only its owner can read, unless
// there is one.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the database: %w: %w; make the folder writable or set store.dir to another one", session.ErrStorage, err)
	}
	return f.Close()
}
