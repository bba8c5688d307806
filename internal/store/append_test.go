package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

// snapshot is all that can be read of a session, in the wire form.
func snapshot(tb testing.TB, s *Store, id session.ID) string {
	tb.Helper()
	ctx := context.Background()
	found, err1 := s.Session(ctx, id)
	events, err2 := s.Events(ctx, id, 0, 0, maxPage)
	items, err3 := s.History(ctx, id)
	turns, err4 := s.Turns(ctx, id, "", maxPage)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		tb.Fatal(err)
	}
	return wire(tb, []any{found, events, items, turns})
}

func TestEveryEventRoundTrips(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	content := "\x01\u0085\u2028<é>\r\n" + strings.Repeat("あ", 5000)
	turn := c.newTurn("what?")
	item := func(it session.Item) session.Event { return c.item(turn.ID, it) }
	result := func(r session.ToolResult) session.Event {
		return item(session.Item{Kind: session.KindToolResult, ToolResult: &r})
	}
	events := []session.Event{c.queued(turn), c.started(&turn), item(userItem("what?")), item(userItem("what? more")), item(userItem("")),
		item(session.Item{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: content, Provider: "p", Model: "m", Signature: "s"}}),
		item(session.Item{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Provider: "p", Model: "m", Redacted: "r"}}),
		item(assistantItem(content)), item(assistantItem("")),
		item(session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "half", Incomplete: true}}),
		item(session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Arguments: json.RawMessage(`{"a":"<\u0001>"}`)}}),
		item(session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Raw: `{"a":`}}),
		item(session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Arguments: json.RawMessage(`{}`), Effect: session.EffectRead}}),
		item(session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Nope", Arguments: json.RawMessage(`{}`), Effect: session.EffectNone}}),
		item(session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read"}}),
		result(session.ToolResult{CallN: 1, Tool: "Read", Summary: "s"}),
		result(session.ToolResult{CallN: 1, Tool: "Read", Summary: "s", Content: session.Text("")}),
		result(session.ToolResult{CallN: 1, Tool: "Read", Failed: true, Summary: "<s>\n2", Content: &content,
			Truncated:  &session.Truncated{Limit: 128, OriginalBytes: 1 << 40, KeptBytes: 1, DroppedBytes: 1<<40 - 1},
			KeptOutput: &session.KeptOutput{Error: "quota"}}),
		item(session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: "line"}}),
		item(session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: "range", FromN: 1, ToN: 3}}),
	}
	retry := &session.Retry{Attempt: 2, WaitMS: 1500, Reason: "the model is <busy>"}
	for _, e := range []session.Event{c.event(session.EventStepRetrying, turn.ID), c.event(session.EventStepRestarted, turn.ID)} {
		e.Retry = retry
		events = append(events, e)
	}
	waits := c.event(session.EventStepWaiting, turn.ID)
	waits.Wait = &session.Wait{WaitMS: 12_400}
	events = append(events, waits)
	extract := c.event(session.EventMemoryExtract, "")
	extract.Extract = &session.Extract{Outcome: "ok", FromN: 1, ToN: 3, Items: 3, Records: 1, Text: "memory"}
	events = append(events, c.step(&turn, session.Usage{InputTokens: 5, CachedInputTokens: 2, OutputTokens: 1}), extract)
	turn.Error = &session.TurnError{Code: session.CodeInternal, Detail: "d"}
	want := c.must(append(events, c.ended(&turn, session.TurnFailed))...)
	waiting := c.newTurn("never starts")
	want = append(want, c.must(c.queued(waiting))...)
	waiting.Error = &session.TurnError{Code: session.CodeCancelled, Detail: "by the user"}
	want = append(want, c.must(c.ended(&waiting, session.TurnCancelled))...)

	got, err := c.store.Events(t.Context(), c.lease.SessionID, 0, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	want[1].Turn = new(want[1].Turn.AsStarted())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events differ (-appended +read):\n%s", diff)
	}
	history, err := c.store.History(t.Context(), c.lease.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	var items []session.Item
	for i := range want {
		if it := want[i].Item; it != nil {
			items = append(items, *it)
			one, err := c.store.Item(t.Context(), c.lease.SessionID, it.N)
			if diff := cmp.Diff(*it, one); diff != "" || err != nil {
				t.Errorf("item %d: %v\n%s", it.N, err, diff)
			}
		}
	}
	if diff := cmp.Diff(items, history); diff != "" {
		t.Errorf("history differs (-appended +read):\n%s", diff)
	}
}

func TestAppendRefusesWhatCannotFollow(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	other := newChat(t, s)
	done, _ := c.say("first", "done")
	running, queued, never := c.newTurn("second"), c.newTurn("third"), c.newTurn("fourth")
	c.must(c.queued(running), c.started(&running), c.item(running.ID, userItem("second")))
	c.must(c.queued(queued))
	taken := c.item(running.ID, assistantItem("x"))
	taken.Item.N = 1
	early := c.item(running.ID, assistantItem("x"))
	early.Item.At--
	zero := c.item(running.ID, assistantItem("x"))
	zero.Item.N = 0
	again, twin, back := running, queued, done
	delta := c.event(session.EventItemDelta, running.ID)
	delta.Delta = &session.Delta{}
	unfinished := c.event(session.EventTurnFailed, running.ID)
	unfinished.Turn = &running
	noTurn := c.item("", assistantItem("x"))

	for name, events := range map[string][]session.Event{
		"nothing":                   {},
		"not durable":               {delta},
		"of another session":        {other.event(session.EventStepCompleted, running.ID)},
		"without what it carries":   {c.event(session.EventItem, running.ID)},
		"no number":                 {zero},
		"number is taken":           {c.step(&running, session.Usage{}), taken},
		"item at another time":      {early},
		"item of no turn":           {noTurn},
		"turn made twice":           {c.queued(done)},
		"turn unknown":              {c.item(never.ID, assistantItem("x"))},
		"turn waits":                {c.item(queued.ID, assistantItem("x"))},
		"turn started twice":        {c.started(&again)},
		"two turns running":         {c.started(&twin)},
		"turn has ended":            {c.item(done.ID, assistantItem("x"))},
		"ended twice":               {c.ended(&back, session.TurnFailed)},
		"ended twice in one batch":  {c.ended(&again, session.TurnFailed), c.ended(&again, session.TurnFailed)},
		"goes on after its end":     {c.ended(&again, session.TurnFailed), c.step(&again, session.Usage{})},
		"end does not fit the turn": {unfinished},
	} {
		t.Run(name, func(t *testing.T) {
			before := snapshot(t, s, c.lease.SessionID)
			err := c.try(events...)
			if err == nil || errors.Is(err, session.ErrStorage) {
				t.Errorf("append: %v, want a refusal", err)
			}
			if diff := cmp.Diff(before, snapshot(t, s, c.lease.SessionID)); diff != "" {
				t.Errorf("something was stored:\n%s", diff)
			}
		})
	}
	c.must(c.ended(&running, session.TurnCompleted), c.started(&queued))
}

func TestTakeOverStopsTheOldOwner(t *testing.T) {
	dir := t.TempDir()
	c := newChat(t, openStore(t, dir))
	turn := c.newTurn("hello")
	c.must(c.queued(turn), c.started(&turn))
	second := openUnlocked(t, dir)
	lease, found, err := second.TakeOver(t.Context(), c.lease.SessionID)
	if err != nil || lease.Generation != 2 || found.LastSeq != 2 || found.State != session.StateRunning {
		t.Fatalf("take over: %+v, %+v, %v", lease, found, err)
	}
	if err := c.try(c.step(&turn, session.Usage{})); !errors.Is(err, session.ErrStale) {
		t.Errorf("append by the old owner: %v, want ErrStale", err)
	}
	c.lease, c.store = lease, second
	c.must(c.step(&turn, session.Usage{}))
	c.lease.Generation = 3
	if err := c.try(c.step(&turn, session.Usage{})); !errors.Is(err, session.ErrStale) {
		t.Errorf("append by an owner to come: %v, want ErrStale", err)
	}
	c.lease.SessionID = session.NewID()
	if err := c.try(c.event(session.EventStepCompleted, turn.ID)); err == nil {
		t.Error("append to an unknown session did not fail")
	}
	if _, _, err := second.TakeOver(t.Context(), session.NewID()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("take over of an unknown session: %v, want ErrNotFound", err)
	}
}

func TestSubmitKeyLivesOneDay(t *testing.T) {
	s := openStore(t, t.TempDir())
	c, other := newChat(t, s), newChat(t, s)
	submit := func(c *chat, key string, at session.Time) (session.SubmitKey, error) {
		c.at = at
		turn := c.newTurn("hello")
		k := session.SubmitKey{Key: key, TurnID: turn.ID, BodyHash: [32]byte{1, byte(at)}}
		return k, s.Append(t.Context(), &session.Batch{Lease: c.lease, Events: []session.Event{c.queued(turn)}, Key: &k})
	}
	now := session.Now()
	look := func(c *chat, key string) (session.SubmitKey, bool) {
		t.Helper()
		k, found, err := s.SubmitKey(t.Context(), c.lease.SessionID, key)
		if err != nil {
			t.Fatal(err)
		}
		return k, found
	}
	for _, key := range []string{"old1", "old2", "old3"} {
		if _, err := submit(c, key, now-keyLifetime-10); err != nil {
			t.Fatal(err)
		}
	}
	if _, found := look(c, "old1"); found {
		t.Error("a key is found after a day")
	}
	want, err := submit(c, "old3", now) // again, and with it old1 and old2 are purged
	if err != nil {
		t.Fatal(err)
	}
	if got, found := look(c, "old3"); !found || got != want {
		t.Errorf("key: %v, %v, want %v", got, found, want)
	}
	if _, found := look(other, "old3"); found {
		t.Error("a key is found in another session")
	}
	if _, err := submit(c, "old3", now); err == nil {
		t.Error("a key was stored twice")
	}
	if got, _ := look(c, "old3"); got != want {
		t.Errorf("key after the second try: %v, want %v", got, want)
	}
	if n := count(t, s, "submit_keys"); n != 1 {
		t.Errorf("%d keys are stored, want 1", n)
	}
}

func TestOpenTurnsComeInOrder(t *testing.T) {
	s := openStore(t, t.TempDir())
	c, idle := newChat(t, s), newChat(t, s)
	idle.say("hello", "hi")
	var turns []session.Turn
	for _, input := range []string{"a", "b", "c", "d"} {
		turns = append(turns, c.newTurn(input))
	}
	order := []int{2, 0, 3, 1} // of submit, unlike that of the ids
	for _, i := range order {
		c.must(c.queued(turns[i]))
	}
	c.must(c.ended(&turns[2], session.TurnCancelled))
	c.must(c.started(&turns[3]))
	open, err := s.OpenTurns(t.Context(), c.lease.SessionID)
	if diff := cmp.Diff([]session.Turn{turns[3], turns[0], turns[1]}, open); diff != "" || err != nil {
		t.Error(err, diff)
	}
	ids, err := s.Unfinished(t.Context())
	if diff := cmp.Diff([]session.ID{c.lease.SessionID}, ids); diff != "" || err != nil {
		t.Error(err, diff)
	}
	found, err := s.Session(t.Context(), c.lease.SessionID)
	if err != nil || found.Queued != 2 || found.State != session.StateRunning {
		t.Errorf("session: %+v, %v", found, err)
	}
	if _, err := s.OpenTurns(t.Context(), session.NewID()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("open turns of an unknown session: %v", err)
	}
}

// A session and its first events are stored together, or not at all.
func TestSessionIsCreatedWithItsEventsOrNotAtAll(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, broken := range []bool{false, true} {
		c := &chat{tb: t, store: s, lease: session.Lease{SessionID: session.NewID(), Generation: 1}, at: 1_700_000_000_000_000}
		turn := c.newTurn("from elsewhere")
		events := []session.Event{c.queued(turn), c.started(&turn), c.item(turn.ID, userItem("from elsewhere")), c.item(turn.ID, assistantItem("so it was"))}
		if broken {
			events[3].Item.N = events[2].Item.N
		}
		made := session.Session{ID: c.lease.SessionID, Project: "default", CreatedAt: c.at, UpdatedAt: c.at}
		lease, err := s.CreateSession(t.Context(), made, events...)
		found, missing := s.Session(t.Context(), made.ID)
		if broken {
			if err == nil || !errors.Is(missing, session.ErrNotFound) {
				t.Errorf("a session with two items of one number: %v, then found with %v", err, missing)
			}
			continue
		}
		if err != nil || missing != nil || found.LastSeq != 4 || found.State != session.StateRunning {
			t.Fatalf("%+v, %v, %v", found, err, missing)
		}
		c.lease = lease
		if err := c.try(c.step(&turn, session.Usage{})); err != nil {
			t.Errorf("the lease of a new session does not hold: %v", err)
		}
	}
}
