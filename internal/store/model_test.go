package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/session"
)

// model is what the store should hold of one session.
type model struct {
	chat
	deleted bool
	events  []session.Event
	items   map[int64]session.Item
	turns   []*session.Turn       // in order of submit
	marks   map[*session.Turn]int // steps at the last restart
}

func (m *model) apply(t *rapid.T, events ...session.Event) {
	batch := session.Batch{Lease: m.lease, Events: events}
	err := m.store.Append(t.Context(), &batch)
	if m.deleted {
		if !errors.Is(err, session.ErrNotFound) {
			t.Fatalf("append to a deleted session: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range batch.Events {
		if e.Seq != int64(len(m.events)+1) {
			t.Fatalf("seq %d after %d events", e.Seq, len(m.events))
		}
		m.events = append(m.events, e)
		if e.Item != nil {
			m.items[e.Item.N] = *e.Item
		}
	}
}

// inState returns the first turn in a state, or nil.
func (m *model) inState(state session.TurnState) *session.Turn {
	for _, turn := range m.turns {
		if turn.State == state {
			return turn
		}
	}
	return nil
}

var modelText = rapid.StringN(0, 40, 200)

func (m *model) submit(t *rapid.T) {
	turn := m.newTurn(modelText.Draw(t, "input"))
	events := []session.Event{m.queued(turn)}
	m.turns = append(m.turns, &turn)
	if m.inState(session.TurnRunning) == nil && m.inState(session.TurnQueued) == &turn {
		events = append(events, m.started(&turn), m.item(turn.ID, userItem(turn.Input)))
	}
	m.apply(t, events...)
}

func (m *model) start(t *rapid.T) {
	turn := m.inState(session.TurnQueued)
	if turn == nil || m.inState(session.TurnRunning) != nil {
		t.Skip("nothing can start")
	}
	m.apply(t, m.started(turn), m.item(turn.ID, userItem(turn.Input)))
}

// step stores an answer with calls, then some of their results, in any order.
func (m *model) step(t *rapid.T) {
	turn := m.inState(session.TurnRunning)
	if turn == nil {
		t.Skip("nothing runs")
	}
	calls := rapid.IntRange(0, 3).Draw(t, "calls")
	events := []session.Event{m.item(turn.ID, assistantItem(modelText.Draw(t, "text")))}
	for range calls {
		events = append(events, m.item(turn.ID, session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "T", Raw: "x"}}))
	}
	m.apply(t, append(events, m.chat.step(turn, session.Usage{InputTokens: 2, OutputTokens: 1}))...)
	var results []session.Event
	for i := range calls {
		results = append(results, m.item(turn.ID, session.Item{Kind: session.KindToolResult, ToolResult: &session.ToolResult{
			CallN: m.n - int64(calls) + 1, Tool: "T", Summary: fmt.Sprint(i), Content: session.Text(modelText.Draw(t, "content")),
		}}))
	}
	for _, i := range rapid.Permutation(indices(calls)).Draw(t, "order") {
		m.apply(t, results[i])
		m.checkItems(t)
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (m *model) end(t *rapid.T) {
	turn := m.inState(session.TurnRunning)
	if rapid.Bool().Draw(t, "queued") {
		turn = m.inState(session.TurnQueued)
	}
	if turn == nil {
		t.Skip("nothing can end")
	}
	m.apply(t, m.ended(turn, rapid.SampledFrom([]session.TurnState{session.TurnCompleted, session.TurnCancelled}).Draw(t, "state")))
}

func (m *model) takeOver(t *rapid.T) {
	old := m.lease
	lease, _, err := m.store.TakeOver(t.Context(), old.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Generation != old.Generation+1 {
		t.Fatalf("generation %d after %d", lease.Generation, old.Generation)
	}
	if err := m.try(m.queued(m.newTurn("stale"))); !errors.Is(err, session.ErrStale) {
		t.Fatalf("append with the old lease: %v", err)
	}
	m.lease = lease
	if turn := m.inState(session.TurnRunning); turn != nil {
		if turn.Restarts++; turn.Steps > m.marks[turn]+1 {
			turn.Restarts = 1
		}
		m.marks[turn] = turn.Steps
	}
}

// check compares all that can be read with the model.
func (m *model) check(t *rapid.T) {
	ctx, id := t.Context(), m.lease.SessionID
	found, err := m.store.Session(ctx, id)
	if m.deleted {
		if !errors.Is(err, session.ErrNotFound) {
			t.Fatalf("read a deleted session: %v", err)
		}
		return
	}
	queued, running := 0, session.StateIdle
	for _, turn := range m.turns {
		switch turn.State {
		case session.TurnQueued:
			queued++
		case session.TurnRunning:
			running = session.StateRunning
		}
		if stored, err := m.store.Turn(ctx, id, turn.ID); err != nil || !cmp.Equal(*turn, stored) {
			t.Fatalf("turn: %v\n%s", err, cmp.Diff(*turn, stored))
		}
	}
	if err != nil || found.Queued != queued || found.State != running || found.LastSeq != int64(len(m.events)) {
		t.Fatalf("session %+v, %v; want %d queued, %s, %d events", found, err, queued, running, len(m.events))
	}
	m.checkEvents(t)
	m.checkItems(t)
}

func (m *model) checkEvents(t *rapid.T) {
	limit := rapid.IntRange(1, 9).Draw(t, "limit")
	var got []session.Event
	for after := int64(0); ; {
		page, err := m.store.Events(t.Context(), m.lease.SessionID, after, 0, limit)
		if err != nil || len(page) > limit {
			t.Fatal(len(page), err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1].Seq
	}
	if diff := cmp.Diff(m.events, got); diff != "" {
		t.Fatalf("events:\n%s", diff)
	}
}

func (m *model) checkItems(t *rapid.T) {
	var got, want, history []session.Item
	for n := int64(1); n <= m.n; n++ {
		if it, ok := m.items[n]; ok {
			history = append(history, it)
			if len(want) == int(n)-1 {
				want = append(want, it)
			}
		}
	}
	for {
		page, err := m.store.Items(t.Context(), m.lease.SessionID, int64(len(got)), 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	stored, err := m.store.History(t.Context(), m.lease.SessionID)
	if diff := cmp.Diff([][]session.Item{want, history}, [][]session.Item{got, stored}); diff != "" || err != nil {
		t.Fatalf("items: %v\n%s", err, diff)
	}
}

// TestStoreIsItsModel does random work on a few sessions of one store.
func TestStoreIsItsModel(test *testing.T) {
	s := openStore(test, test.TempDir())
	rapid.Check(test, func(t *rapid.T) {
		var models []*model
		for range 3 {
			c := newChat(test, s)
			models = append(models, &model{chat: *c, items: make(map[int64]session.Item), marks: make(map[*session.Turn]int)})
		}
		one := func(do func(*model, *rapid.T)) func(*rapid.T) {
			return func(t *rapid.T) {
				m := rapid.SampledFrom(models).Draw(t, "session")
				if m.deleted {
					t.Skip("deleted")
				}
				do(m, t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"submit": one((*model).submit), "start": one((*model).start), "step": one((*model).step),
			"end": one((*model).end), "take over": one((*model).takeOver),
			"delete": one(func(m *model, t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "rarely") > 0 {
					t.Skip("not now")
				}
				if err := s.DeleteSession(t.Context(), m.lease.SessionID); err != nil {
					t.Fatal(err)
				}
				m.deleted = true
				m.apply(t, m.queued(m.newTurn("late")))
			}),
			"": func(t *rapid.T) {
				rapid.SampledFrom(models).Draw(t, "checked").check(t)
				checkUnfinished(t, s, models)
			},
		})
		for _, m := range models {
			if !m.deleted {
				if err := s.DeleteSession(t.Context(), m.lease.SessionID); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func checkUnfinished(t *rapid.T, s *Store, models []*model) {
	ids, err := s.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		want := !m.deleted && (m.inState(session.TurnRunning) != nil || m.inState(session.TurnQueued) != nil)
		if slices.Contains(ids, m.lease.SessionID) != want {
			t.Fatalf("session %s unfinished: %v, want %v", m.lease.SessionID, !want, want)
		}
	}
}
