package store

import (
	"database/sql"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

// asHosts gives the events of a turn the times that hosts give them, which the turn
// has too.
func asHosts(events []session.Event) {
	for i := range events {
		switch e := &events[i]; {
		case e.Type == session.EventTurnQueued:
			e.At = e.Turn.CreatedAt
		case e.Item != nil:
			e.At = events[i-1].At
			e.Item.At = e.At
		}
	}
}

// shortChat is a session whose rows are short: turns as hosts store them, one that was
// steered, and one that was withdrawn.
func shortChat(t *testing.T, dir string) *chat {
	c := newChat(t, openStore(t, dir))
	for range 3 {
		turn := c.newTurn("hello")
		begun := []session.Event{c.queued(turn), c.started(&turn), c.item(turn.ID, userItem("hello"))}
		asHosts(begun)
		c.must(begun...)
		c.must(c.item(turn.ID, userItem("and this")), c.item(turn.ID, assistantItem("hi")))
		step := c.step(&turn, session.Usage{InputTokens: 1 << 40, CachedInputTokens: 4, OutputTokens: 3})
		step.Step.RequestBytes = 77
		c.must(step, c.step(&turn, session.Usage{}), c.ended(&turn, session.TurnCompleted))
	}
	withdrawn := c.newTurn("never mind")
	events := []session.Event{c.queued(withdrawn)}
	asHosts(events)
	c.must(events...)
	c.must(c.ended(&withdrawn, session.TurnCancelled))
	return c
}

func rows(t *testing.T, db *sql.DB, condition string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM log WHERE " + condition).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A time that the turn has too is stored once, and what a step cost without names.
func TestRowsAreShort(t *testing.T) {
	c := shortChat(t, t.TempDir())
	if got := rows(t, c.store.reader.db, "at = 0"); got != 3*4+2 {
		t.Errorf("%d rows have the time of their turn, want 14", got)
	}
	if got := rows(t, c.store.reader.db, "data = '[1099511627776,4,3,77]'"); got != 3 {
		t.Errorf("%d steps of 3 are four numbers", got)
	}
}

// A folder that the version before has left reads as it did there.
func TestLongRowsOfOlderVersionsBecomeShort(t *testing.T) {
	dir := t.TempDir()
	c := shortChat(t, dir)
	want := snapshot(t, c.store, c.lease.SessionID)
	path := c.store.path
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	makeLong(t, path)
	s := openStore(t, dir)
	if diff := cmp.Diff(want, snapshot(t, s, c.lease.SessionID)); diff != "" {
		t.Error(diff)
	}
	steps, err := s.Steps(t.Context(), c.lease.SessionID, 2)
	if err != nil || len(steps) != 2 || steps[0] != (session.Step{}) || steps[1].RequestBytes != 77 || steps[1].Usage.InputTokens != 1<<40 {
		t.Errorf("steps are %+v, %v", steps, err)
	}
}

// makeLong takes the rows of a database back to the form before they were short.
func makeLong(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`UPDATE log SET at = t.created_at FROM turns t WHERE t.row = log.turn AND log.at = 0 AND log.code = 1`,
		`UPDATE log SET at = t.started_at FROM turns t WHERE t.row = log.turn AND log.at = 0 AND log.code IN (2, 16)`,
		`UPDATE log SET at = t.ended_at FROM turns t WHERE t.row = log.turn AND log.at = 0`,
		`UPDATE log SET data = json_object('usage', json_object('input_tokens', data ->> 0, 'cached_input_tokens', data ->> 1,
			'output_tokens', data ->> 2), 'request_bytes', data ->> 3) WHERE code = 9 AND data ->> 3 > 0`,
		`UPDATE log SET data = '{"usage":{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0}}' WHERE code = 9 AND data LIKE '[%'`,
		`DELETE FROM goose_db_version WHERE version_id = 5`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if rows(t, db, "at = 0") != 0 || rows(t, db, "code = 9 AND data LIKE '{%'") != 6 {
		t.Fatal("some rows are short still")
	}
}
