package store

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

func TestDeleteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	c, kept := newChat(t, s), newChat(t, s)
	secret := "SENTINEL-" + strings.Repeat("0123456789abcdef", 1000)
	for range 40 {
		c.say(secret, secret+"!")
	}
	kept.say("hello", "hi")
	before := snapshot(t, s, kept.lease.SessionID)
	turn := c.newTurn(secret)
	key := &session.SubmitKey{Key: secret, TurnID: turn.ID}
	if err := s.Append(t.Context(), &session.Batch{Lease: c.lease, Events: []session.Event{c.queued(turn)}, Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSession(t.Context(), c.lease.SessionID); err != nil {
		t.Fatal(err)
	}
	if err := c.try(c.started(&turn)); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("append to a deleted session: %v, want ErrNotFound", err)
	}
	if ids, err := s.Unfinished(t.Context()); len(ids) > 0 || err != nil {
		t.Errorf("unfinished: %v, %v", ids, err)
	}
	next := newChat(t, s) // must not get what is left of the deleted one
	if items, err := s.History(t.Context(), next.lease.SessionID); len(items) > 0 || err != nil {
		t.Errorf("a new session has %d items, %v", len(items), err)
	}
	if err := s.Close(); err != nil { // perhaps in the middle of the sweep
		t.Fatal(err)
	}
	s = openStore(t, dir)
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"sessions": 2, "turns": 1, "log": 6, "submit_keys": 0, "graves": 0} {
		if n := count(t, s, table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, s, kept.lease.SessionID)); diff != "" {
		t.Errorf("the other session has changed:\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.path)
	if err != nil || bytes.Contains(file, []byte("SENTINEL")) || bytes.Contains(file, []byte("89abcdef0123")) {
		t.Errorf("the file still holds text of the deleted session (%v)", err)
	}
}

func TestSweepGoesOnAfterStart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	c := newChat(t, s)
	for range 50 {
		c.say("hello", "hi")
	}
	err := s.write(t.Context(), "delete and die", func(conn *connection) error {
		_, err1 := conn.exec("bury", c.lease.SessionID)
		_, err2 := conn.exec("delete_session", c.lease.SessionID)
		return errors.Join(err1, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir)
	for count(t, s, "graves") > 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if n := count(t, s, "log") + count(t, s, "turns"); n > 0 {
		t.Errorf("%d rows are left", n)
	}
}
