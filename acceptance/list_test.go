package acceptance

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

const (
	manySessions = 1000
	historyBytes = 100_000 // of each
	bodyWord     = "BODY-SENTINEL"
)

// fill stores sessions with a history each, and returns their ids, newest first.
func (w *world) fill() []session.ID {
	w.t.Helper()
	ids := make([]session.ID, manySessions)
	next := make(chan int)
	var writers sync.WaitGroup
	for range 32 { // commits of many writers are one
		writers.Go(func() {
			for n := range next {
				ids[n] = w.fillOne()
			}
		})
	}
	for n := range manySessions {
		next <- n
	}
	close(next)
	writers.Wait()
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

func (w *world) fillOne() session.ID {
	now := session.Now()
	s := session.Session{ID: session.NewID(), Project: "default", Metadata: map[string]string{"k": "v"}, CreatedAt: now, UpdatedAt: now}
	lease, err := w.store.CreateSession(w.t.Context(), s)
	if err != nil {
		w.t.Error(err)
		return s.ID
	}
	turn := session.Turn{ID: session.NewTurnID(), SessionID: s.ID, State: session.TurnQueued, Input: bodyWord, Mode: session.ModeEnqueue, CreatedAt: now}
	started, ended := turn, turn
	started.State, started.StartedAt = session.TurnRunning, now
	ended.State, ended.StartedAt, ended.EndedAt = session.TurnCompleted, now, now
	event := func(kind session.EventType, ev session.Event) session.Event {
		ev.Type, ev.SessionID, ev.TurnID, ev.At = kind, s.ID, turn.ID, now
		return ev
	}
	item := func(n int64, kind session.ItemKind, item session.Item) session.Event {
		item.N, item.SessionID, item.TurnID, item.At, item.Kind = n, s.ID, turn.ID, now, kind
		return event(session.EventItem, session.Event{Item: &item})
	}
	long := bodyWord + strings.Repeat("x", historyBytes)
	batch := session.Batch{Lease: lease, Events: []session.Event{
		event(session.EventTurnQueued, session.Event{Turn: &turn}),
		event(session.EventTurnStarted, session.Event{Turn: &started}),
		item(1, session.KindUserMessage, session.Item{UserMessage: &session.UserMessage{Text: bodyWord}}),
		item(2, session.KindAssistantMessage, session.Item{AssistantMessage: &session.AssistantMessage{Text: long}}),
		event(session.EventStepCompleted, session.Event{Step: &session.Step{}}),
		event(session.EventTurnCompleted, session.Event{Turn: &ended}),
	}}
	if err := w.store.Append(w.t.Context(), &batch); err != nil {
		w.t.Error(err)
	}
	return s.ID
}

// list pages through all sessions and returns their ids and how long each page took.
func (c *client) list() (ids []session.ID, took []time.Duration) {
	for cursor := ""; ; {
		began := time.Now()
		_, text := c.send("GET", "/v1/sessions?limit=20&cursor="+cursor, nil)
		took = append(took, time.Since(began))
		if len(text) > 100_000 || bytes.Contains(text, []byte(bodyWord)) {
			c.t.Errorf("a page has %d bytes, bodies in it: %v", len(text), bytes.Contains(text, []byte(bodyWord)))
		}
		var page struct {
			Data       []session.Session `json:"data"`
			NextCursor string            `json:"next_cursor"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			c.t.Errorf("page %s: %v", text, err)
			return ids, took
		}
		for _, s := range page.Data {
			ids = append(ids, s.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			return ids, took
		}
	}
}

func TestA20ListsAreQuickAndSmall(t *testing.T) {
	const pageTime = 100 * time.Millisecond
	w := start(t, setup{})
	want := w.fill()
	w.restart()
	w.list() // warm

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, took := w.list()
	runtime.ReadMemStats(&after)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed: %s", diff)
	}
	// One history more or less must not show: all that server and client allocate
	// for all pages is a part of what the histories hold.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > manySessions*historyBytes/4 {
		t.Errorf("%d bytes were allocated for %d pages", allocated, len(took))
	}
	slices.Sort(took)
	if most := took[len(took)*9/10]; most > pageTime {
		t.Errorf("nine pages of ten take up to %s", most)
	}

	var clients, creator sync.WaitGroup
	done := make(chan struct{})
	creator.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				w.newSession()
			}
		}
	})
	all := make([][]time.Duration, 10)
	for i := range all {
		clients.Go(func() {
			var listed []session.ID
			listed, all[i] = w.list()
			newest := slices.Index(listed, want[0])
			if newest < 0 || !slices.IsSortedFunc(listed, func(a, b session.ID) int { return strings.Compare(string(b), string(a)) }) {
				t.Errorf("client %d: not newest first", i)
			} else if diff := cmp.Diff(want, listed[newest:]); diff != "" {
				t.Errorf("client %d, while sessions are made: %s", i, diff)
			}
		})
	}
	clients.Wait()
	close(done)
	creator.Wait()
	took = slices.Concat(all...)
	slices.Sort(took)
	if median := took[len(took)/2]; median > pageTime {
		t.Errorf("half of the pages of ten clients take more than %s", median)
	}
	t.Logf("the slowest page of ten clients at once took %s", took[len(took)-1])
}
