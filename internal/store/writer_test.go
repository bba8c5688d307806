package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"loadline/internal/session"
)

// hold keeps the writer busy until the function it returns is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var held sync.WaitGroup
	held.Go(func() {
		err := s.write(context.Background(), "hold", func(*connection) error {
			close(begun)
			<-end
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	return func() { close(end); held.Wait() }
}

// waitQueued returns when n units wait for the writer.
func waitQueued(s *Store, n int) {
	for len(s.writer.queue) < n {
		runtime.Gosched()
	}
}

func TestEndedContextWithdrawsWhatHasNotBegun(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	turn := c.newTurn("hello")
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan error)
	go func() {
		outcome <- s.Append(ctx, &session.Batch{Lease: c.lease, Events: []session.Event{c.queued(turn)}})
	}()
	waitQueued(s, 1)
	cancel()
	if err := <-outcome; !errors.Is(err, context.Canceled) {
		t.Errorf("withdrawn append: %v", err)
	}
	release()
	c.must(c.queued(turn)) // would be refused had the first one been stored
	if found, err := s.Session(t.Context(), c.lease.SessionID); err != nil || found.LastSeq != 1 {
		t.Errorf("session: %+v, %v", found, err)
	}
}

func TestOutcomeIsKnownOnceBegun(t *testing.T) {
	s := openStore(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	err := s.write(ctx, "try", func(c *connection) error {
		cancel()
		_, err := c.exec("create_session", "ses_x", "p", "", "{}", 1, 1)
		return err
	})
	if err != nil {
		t.Errorf("write whose context ended in the middle: %v", err)
	}
	if _, err := s.Session(t.Context(), "ses_x"); err != nil {
		t.Error(err)
	}
}

func TestUnitFailsAlone(t *testing.T) {
	s := openStore(t, t.TempDir())
	good1, bad, stale, good2 := newChat(t, s), newChat(t, s), newChat(t, s), newChat(t, s)
	done, _ := bad.say("first", "done")
	stale.lease.Generation++
	before := snapshot(t, s, bad.lease.SessionID)
	release := hold(t, s)
	errs := make(map[*chat]error)
	var mu sync.Mutex
	var appends sync.WaitGroup
	for i, c := range []*chat{good1, bad, stale, good2} {
		turn := c.newTurn("hello")
		events := []session.Event{c.queued(turn), c.started(&turn)}
		if c == bad { // fails after it has changed rows
			events = append(events, c.item(turn.ID, assistantItem("x")), c.ended(&done, session.TurnFailed))
		}
		appends.Go(func() {
			err := c.try(events...)
			mu.Lock()
			defer mu.Unlock()
			errs[c] = err
		})
		waitQueued(s, i+1)
	}
	release()
	appends.Wait()
	if errs[good1] != nil || errs[good2] != nil || errs[bad] == nil || !errors.Is(errs[stale], session.ErrStale) {
		t.Errorf("outcomes: good %v, %v, stale %v, bad %v", errs[good1], errs[good2], errs[stale], errs[bad])
	}
	if after := snapshot(t, s, bad.lease.SessionID); after != before {
		t.Errorf("the failed unit left something:\n%s", after)
	}
	for _, c := range []*chat{good1, good2} {
		if found, err := s.Session(t.Context(), c.lease.SessionID); err != nil || found.LastSeq != 2 {
			t.Errorf("session: %+v, %v", found, err)
		}
	}
}

func TestFailedCommitIsEverybodysAndPasses(t *testing.T) {
	s := openStore(t, t.TempDir())
	small, large := newChat(t, s), newChat(t, s)
	err := s.write(t.Context(), "make the disk small", func(c *connection) error {
		_, err := c.conn.ExecContext(context.Background(), "PRAGMA max_page_count = 40")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	release := hold(t, s)
	var appends sync.WaitGroup
	for i, c := range []*chat{small, large} {
		turn := c.newTurn(strings.Repeat("x", 1+i<<20))
		appends.Go(func() {
			err := c.try(c.queued(turn))
			if !errors.Is(err, session.ErrStorage) || !strings.Contains(err.Error(), "free space") {
				t.Errorf("append to a full disk: %v", err)
			}
		})
		waitQueued(s, i+1)
	}
	release()
	appends.Wait()
	for _, c := range []*chat{small, large} {
		c.say("again", "ok") // on a new connection
	}
}

func TestBrokenConnectionIsReplaced(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	err := s.write(t.Context(), "break", func(c *connection) error { return c.control("SELECT * FROM nothing") })
	if !errors.Is(err, session.ErrStorage) {
		t.Errorf("broken write: %v", err)
	}
	c.say("hello", "hi") // would fail inside the transaction that was left open
}

func TestManyAppendersAtOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	var chats sync.WaitGroup
	for range 16 {
		c := newChat(t, s)
		chats.Go(func() {
			for range 10 {
				c.say("hello", "hi")
				if _, err := s.Events(t.Context(), c.lease.SessionID, 0, 0, 10); err != nil {
					t.Error(err)
				}
			}
			events, err := s.Events(t.Context(), c.lease.SessionID, 0, 0, 1000)
			if err != nil || len(events) != 60 || events[59].Seq != 60 {
				t.Errorf("%d events, %v", len(events), err)
			}
		})
	}
	chats.Wait()
}

func TestNoWriteAfterClose(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.try(c.queued(c.newTurn("hello"))); !errors.Is(err, session.ErrStopping) {
		t.Errorf("append after close: %v", err)
	}
	if _, err := s.Session(t.Context(), c.lease.SessionID); err == nil {
		t.Error("read after close did not fail")
	}
}

func TestCloseWaitsForWhatIsQueued(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	c := newChat(t, s)
	release := hold(t, s)
	outcome, closed := make(chan error), make(chan error)
	go func() { outcome <- c.try(c.queued(c.newTurn("hello"))) }()
	waitQueued(s, 1)
	go func() { closed <- s.Close() }()
	release()
	if err := <-outcome; err != nil {
		t.Errorf("append before close: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if found, err := openStore(t, dir).Session(t.Context(), c.lease.SessionID); err != nil || found.LastSeq != 1 {
		t.Errorf("session: %+v, %v", found, err)
	}
}

func TestLogIsEmptiedUnderReaders(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	err := s.write(t.Context(), "lower the bound", func(*connection) error {
		s.writer.walLimit, s.writer.walBound = 1<<18, 1<<18
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.History(t.Context(), c.lease.SessionID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 32 {
		c.say(strings.Repeat("x", 50_000), strings.Repeat("y", 50_000))
	}
	close(stop)
	readers.Wait()
	stat, err := os.Stat(filepath.Join(filepath.Dir(s.path), fileName+"-wal"))
	if err != nil || stat.Size() > 2<<20 {
		t.Errorf("write-ahead log of %d bytes, %v", stat.Size(), err)
	}
}
