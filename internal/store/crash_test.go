package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"loadline/internal/session"
)

// child is another process: TestMain runs it in place of the tests.
func child(role, dir string) int {
	s, err := Open(context.Background(), dir, zerolog.Nop())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	switch role {
	case "append":
		appendForEver(s)
	case "full":
		err = fillDisk(s)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func startChild(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "STORE_TEST_CHILD="+role, "STORE_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// appendForEver writes to several sessions and says so after each acknowledgement.
func appendForEver(s *Store) {
	var mu sync.Mutex // guards standard output
	var chats sync.WaitGroup
	for range 8 {
		chats.Go(func() {
			at := session.Now()
			c := &chat{store: s, at: at}
			var err error
			c.lease, err = s.CreateSession(context.Background(), session.Session{ID: session.NewID(), CreatedAt: at, UpdatedAt: at})
			for err == nil {
				turn := c.newTurn(strings.Repeat("hello ", 200))
				batch := session.Batch{Lease: c.lease, Events: []session.Event{
					c.queued(turn), c.started(&turn), c.item(turn.ID, userItem(turn.Input)),
					c.item(turn.ID, assistantItem("hi")), c.ended(&turn, session.TurnCompleted),
				}}
				err = s.Append(context.Background(), &batch)
				mu.Lock()
				fmt.Println(c.lease.SessionID, batch.Events[4].Seq)
				mu.Unlock()
			}
		})
	}
	chats.Wait()
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	acknowledged := make(map[session.ID]int64)
	for round := range 3 {
		cmd, lines := startChild(t, "append", dir)
		for n := 0; n < 60+50*round && lines.Scan(); n++ {
			var id session.ID
			var seq int64
			if _, err := fmt.Sscan(lines.Text(), &id, &seq); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			acknowledged[id] = seq
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // acknowledged too, before the end
			var id session.ID
			var seq int64
			if n, _ := fmt.Sscan(lines.Text(), &id, &seq); n == 2 {
				acknowledged[id] = seq
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child was not killed")
		}
		s := openStore(t, dir)
		for id, seq := range acknowledged {
			checkDense(t, s, id, seq)
		}
		s.Close()
	}
	if len(acknowledged) != 24 {
		t.Errorf("%d sessions acknowledged, want 24", len(acknowledged))
	}
}

// checkDense checks that a session has its events 1, 2, 3 … up to at least seq.
func checkDense(t *testing.T, s *Store, id session.ID, seq int64) {
	t.Helper()
	found, err := s.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for {
		page, err := s.Events(t.Context(), id, last, 0, maxPage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			if last++; page[i].Seq != last {
				t.Fatalf("event %d of %s has seq %d", last, id, page[i].Seq)
			}
		}
	}
	if last < seq || last != found.LastSeq || last%5 != 0 {
		t.Errorf("%s: %d events, %d acknowledged, last seq %d", id, last, seq, found.LastSeq)
	}
}

// fillDisk appends until no file may grow, and again when they may.
func fillDisk(s *Store) error {
	signal.Ignore(unix.SIGXFSZ) // a write beyond the limit is an error instead
	setLimit := func(bytes uint64) error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY})
	}
	at := session.Now()
	c := &chat{store: s, at: at}
	var err error
	c.lease, err = s.CreateSession(context.Background(), session.Session{ID: session.NewID(), CreatedAt: at, UpdatedAt: at})
	if err != nil {
		return err
	}
	fmt.Println(c.lease.SessionID)
	if err := setLimit(1 << 20); err != nil {
		return err
	}
	turns := 0
	for refused := 0; refused < 3; {
		err := c.try(c.queued(c.newTurn(strings.Repeat("x", 50_000))))
		switch {
		case err == nil:
			turns++
		case !errors.Is(err, session.ErrStorage):
			return err
		default:
			refused++
		}
		if turns > 100 {
			return errors.New("the disk did not fill")
		}
	}
	if found, err := s.Session(context.Background(), c.lease.SessionID); err != nil || found.Queued != turns {
		return fmt.Errorf("on a full disk: %+v, %w, want %d turns", found, err, turns)
	}
	if err := setLimit(unix.RLIM_INFINITY); err != nil {
		return err
	}
	if err := c.try(c.queued(c.newTurn("the last"))); err != nil {
		return fmt.Errorf("with space again: %w", err)
	}
	fmt.Println(turns + 1)
	return s.Close()
}

func TestFullDiskLosesNothing(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := startChild(t, "full", dir)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
	}
	if err := cmd.Wait(); err != nil || len(said) != 2 {
		t.Fatalf("child: %v, said %q", err, said)
	}
	s := openStore(t, dir)
	turns, err := s.OpenTurns(t.Context(), session.ID(said[0]))
	if err != nil || fmt.Sprint(len(turns)) != said[1] || turns[len(turns)-1].Input != "the last" {
		t.Errorf("%d turns, %v, want %s", len(turns), err, said[1])
	}
}
