package store

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"loadline/internal/session"
	"loadline/internal/store/storetest"
)

// TestMain lets the test binary be a process that is killed or short of disk.
func TestMain(m *testing.M) {
	if role := os.Getenv("STORE_TEST_CHILD"); role != "" {
		os.Exit(child(role, os.Getenv("STORE_TEST_DIR")))
	}
	goleak.VerifyTestMain(m)
}

// blankStore puts an empty store into a new folder.
var blankStore = storetest.Blank(func(folder string) error {
	s, err := Open(context.Background(), folder, zerolog.Nop())
	if err != nil {
		return err
	}
	return s.Close()
})

func openStore(tb testing.TB, dir string) *Store {
	tb.Helper()
	blankStore(tb, dir)
	s, err := Open(context.Background(), dir, zerolog.Nop())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// chat writes turns to one session, as a host does.
type chat struct {
	tb    testing.TB
	store *Store
	lease session.Lease
	at    session.Time
	n     int64 // of the last item
}

func newChat(tb testing.TB, s *Store) *chat {
	tb.Helper()
	at := session.Time(1_700_000_000_000_000)
	lease, err := s.CreateSession(context.Background(), session.Session{
		ID: session.NewID(), Project: "default", Metadata: map[string]string{}, CreatedAt: at, UpdatedAt: at,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &chat{tb: tb, store: s, lease: lease, at: at}
}

func (c *chat) newTurn(input string) session.Turn {
	c.at++
	return session.Turn{
		ID: session.NewTurnID(), SessionID: c.lease.SessionID, State: session.TurnQueued,
		Input: input, Mode: session.ModeEnqueue, CreatedAt: c.at,
	}
}

func (c *chat) event(t session.EventType, id session.TurnID) session.Event {
	c.at++
	return session.Event{Type: t, SessionID: c.lease.SessionID, TurnID: id, At: c.at}
}

func (c *chat) queued(t session.Turn) session.Event {
	e := c.event(session.EventTurnQueued, t.ID)
	e.Turn = &t
	return e
}

func (c *chat) started(t *session.Turn) session.Event {
	e := c.event(session.EventTurnStarted, t.ID)
	t.State, t.StartedAt = session.TurnRunning, e.At
	started := *t
	e.Turn = &started
	return e
}

// item takes the next number.
func (c *chat) item(id session.TurnID, it session.Item) session.Event {
	e := c.event(session.EventItem, id)
	c.n++
	it.N, it.SessionID, it.TurnID, it.At = c.n, c.lease.SessionID, id, e.At
	e.Item = &it
	return e
}

func userItem(text string) session.Item {
	return session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: text}}
}

func assistantItem(text string) session.Item {
	return session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: text}}
}

func (c *chat) step(t *session.Turn, u session.Usage) session.Event {
	e := c.event(session.EventStepCompleted, t.ID)
	e.Step = &session.Step{Usage: u}
	t.Steps++
	t.Usage = t.Usage.Plus(u)
	return e
}

func (c *chat) ended(t *session.Turn, state session.TurnState) session.Event {
	e := c.event(session.TerminalEvent(state), t.ID)
	t.State, t.EndedAt = state, e.At
	final := *t
	e.Turn = &final
	return e
}

func (c *chat) try(events ...session.Event) error {
	return c.store.Append(context.Background(), &session.Batch{Lease: c.lease, Events: events})
}

func (c *chat) must(events ...session.Event) []session.Event {
	c.tb.Helper()
	batch := session.Batch{Lease: c.lease, Events: events}
	if err := c.store.Append(context.Background(), &batch); err != nil {
		c.tb.Fatal(err)
	}
	return batch.Events
}

// say runs one turn of text in two commits and returns its events.
func (c *chat) say(input, answer string) (session.Turn, []session.Event) {
	c.tb.Helper()
	t := c.newTurn(input)
	events := c.must(c.queued(t), c.started(&t), c.item(t.ID, userItem(input)))
	return t, append(events, c.must(
		c.item(t.ID, assistantItem(answer)), c.step(&t, session.Usage{InputTokens: 12, CachedInputTokens: 4, OutputTokens: 3}),
		c.ended(&t, session.TurnCompleted))...)
}

// wire is the wire form, which is what readers of the store rely on.
func wire(tb testing.TB, v any) string {
	tb.Helper()
	b, err := session.EncodeJSON(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestTurnComesBackAsItWas(t *testing.T) {
	dir := t.TempDir()
	c := newChat(t, openStore(t, dir))
	turn, events := c.say("hello <there>\u2028 ", "hi\r\n\x01 あ")
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	c.store = openStore(t, dir)
	ctx, id := t.Context(), c.lease.SessionID

	got, err := c.store.Events(ctx, id, 0, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := events
	want[0].Turn, want[1].Turn = new(turn.AsQueued()), new(turn.AsStarted())
	if diff := cmp.Diff(wire(t, want), wire(t, got)); diff != "" {
		t.Error(diff)
	}
	stored, err := c.store.Turn(ctx, id, turn.ID)
	if diff := cmp.Diff(turn, stored); diff != "" || err != nil {
		t.Error(diff, err)
	}
	found, err := c.store.Session(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	wantSession := session.Session{
		ID: id, Project: "default", Metadata: map[string]string{}, State: session.StateIdle,
		LastSeq: 6, CreatedAt: 1_700_000_000_000_000, UpdatedAt: c.at,
	}
	if diff := cmp.Diff(wantSession, found); diff != "" {
		t.Error(diff)
	}
	if ids, err := c.store.Unfinished(ctx); len(ids) > 0 || err != nil {
		t.Errorf("unfinished sessions: %v, %v", ids, err)
	}
}

// TestStoredBytes holds the file to one and a half times the history in it.
func TestStoredBytes(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	for i := range 400 {
		c.say(strings.Repeat("what is it? ", 50+i), strings.Repeat("it is this. ", 100+i))
	}
	items, err := c.store.History(t.Context(), c.lease.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	history := int64(len(wire(t, items)))
	stat, err := os.Stat(c.store.path)
	if err != nil || stat.Size() > history*3/2 {
		t.Errorf("%d bytes stored for %d bytes of history, %v", stat.Size(), history, err)
	}
}
