package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

const (
	maxGroup = 256 // units in one commit

	// walLimit is how long the write-ahead log, in bytes, may get before the writer
	// empties it. Automatic checkpoints do that far below, unless there are readers
	// at every moment; then the writer makes a moment without.
	walLimit = 64 << 20
	walRetry = 16 << 20 // growth after which it tries again
	walEvery = 16       // commits between two looks at it
)

var errClosed = fmt.Errorf("store is closed: %w", session.ErrStopping)

// writer commits units, in the order they came, on one connection. There is no
// timer: while one group is committed the next one gathers.
type writer struct {
	db      *sql.DB
	queries map[string]string
	path    string
	log     zerolog.Logger
	alone   func(do func() error) error // runs do while nobody reads

	queue   chan *unit
	closing chan struct{} // closed by close
	stopped chan struct{} // closed when run has ended

	file    os.FileInfo // of the database when it was opened
	fileErr error       // why that is not known

	// The rest is run's own.
	conn     *connection // nil before the first group and after a failure
	commits  int
	walLimit int64 // bytes
	walBound int64 // bytes, not less than walLimit, where the log is emptied next
}

// unit is one piece of work that is stored whole or not at all.
type unit struct {
	run   func(*connection) error
	state atomic.Int32
	done  chan error // gets the outcome, unless withdrawn
}

// The states of a unit.
const (
	unitWaiting int32 = iota
	unitTaken
	unitWithdrawn
)

func newWriter(db *sql.DB, queries map[string]string, path string, log zerolog.Logger, alone func(func() error) error) *writer {
	w := &writer{
		db: db, queries: queries, path: path, log: log, alone: alone, walLimit: walLimit, walBound: walLimit,
		queue: make(chan *unit, maxGroup), closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	w.file, w.fileErr = os.Stat(path)
	go w.run()
	return w
}

// inPlace fails when the file that is written to is no longer the one at its path: what
// goes into it would be acknowledged and lost.
func (w *writer) inPlace() error {
	if w.fileErr != nil {
		return w.fileErr
	}
	now, err := os.Stat(w.path)
	if err != nil || !os.SameFile(w.file, now) {
		return errMoved
	}
	return nil
}

// do has run executed in a transaction and returns when that is on disk. When run
// fails, nothing of it is stored. A ctx that ends before run has begun withdraws
// it; after that do waits for the outcome, so that the outcome is always known.
func (w *writer) do(ctx context.Context, run func(*connection) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	u := &unit{run: run, done: make(chan error, 1)}
	select {
	case w.queue <- u:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stopped:
		return errClosed
	}
	select {
	case err := <-u.done:
		return err
	case <-ctx.Done():
		if u.withdraw() {
			return ctx.Err()
		}
	case <-w.stopped:
		if u.withdraw() {
			return errClosed
		}
	}
	return <-u.done
}

func (u *unit) withdraw() bool { return u.state.CompareAndSwap(unitWaiting, unitWithdrawn) }

func (u *unit) take() bool { return u.state.CompareAndSwap(unitWaiting, unitTaken) }

// close commits what is queued and closes the database.
func (w *writer) close() error {
	close(w.closing)
	<-w.stopped
	if w.conn != nil {
		if err := w.conn.close(); err != nil {
			return errors.Join(err, w.db.Close())
		}
	}
	return w.db.Close()
}

func (w *writer) run() {
	defer close(w.stopped)
	group := make([]*unit, 0, maxGroup)
	for {
		select {
		case u := <-w.queue:
			group = w.gather(append(group[:0], u))
		case <-w.closing:
			if group = w.gather(group[:0]); len(group) == 0 {
				return
			}
		}
		w.commit(group)
		clear(group) // hold nobody's batch
		w.boundLog()
	}
}

// gather adds what is queued to group and leaves the withdrawn out.
func (w *writer) gather(group []*unit) []*unit {
	taken := group[:0]
	for _, u := range group {
		if u.take() {
			taken = append(taken, u)
		}
	}
	for len(taken) < maxGroup {
		select {
		case u := <-w.queue:
			if u.take() {
				taken = append(taken, u)
			}
		default:
			return taken
		}
	}
	return taken
}

// commit stores the units of group together and tells each its outcome. A unit that
// is refused fails alone; a failure of the database is everybody's.
func (w *writer) commit(group []*unit) {
	if len(group) == 0 {
		return
	}
	refusals := make([]error, len(group))
	err := w.store(group, refusals)
	if err != nil {
		err = storageError(w.path, err)
		w.log.Error().Err(err).Int("units", len(group)).Msg("commit failed")
		w.drop()
	}
	for i, u := range group {
		if err != nil {
			refusals[i] = err
		}
		u.done <- refusals[i]
	}
}

func (w *writer) store(group []*unit, refusals []error) error {
	if w.conn == nil {
		conn, err := connect(w.db, w.queries)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		w.conn = conn
	}
	if err := w.conn.control("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	alone := len(group) == 1
	for i, u := range group {
		err := w.conn.try(u, alone)
		if err != nil && ofEngine(err) {
			return err
		}
		refusals[i] = err
	}
	if alone && refusals[0] != nil {
		return w.conn.control("ROLLBACK")
	}
	if err := w.inPlace(); err != nil {
		return err
	}
	if err := w.conn.control("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// drop gives up a connection on which something has failed. Closing it rolls back
// what was begun.
func (w *writer) drop() {
	if w.conn == nil {
		return
	}
	if err := w.conn.close(); err != nil {
		w.log.Warn().Err(err).Msg("connection did not close well")
	}
	w.conn = nil
}

// boundLog empties the write-ahead log when it has outgrown its limit. That waits
// for the reads that have begun, and for those of another program at most the busy
// timeout.
func (w *writer) boundLog() {
	if w.commits++; w.commits%walEvery != 0 || w.conn == nil {
		return
	}
	stat, err := os.Stat(w.path + "-wal")
	if err != nil || stat.Size() < w.walBound {
		return // one without a log needs no bound
	}
	w.walBound = w.walLimit
	if err := w.alone(w.conn.emptyLog); err != nil {
		w.walBound = stat.Size() + walRetry
		w.log.Warn().Err(err).Int64("wal_bytes", stat.Size()).Msg("write-ahead log could not be emptied yet")
	}
}
