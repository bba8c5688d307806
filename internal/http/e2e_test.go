package http

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func types(events []received) (all []session.EventType) {
	for _, ev := range events {
		if ev.Type.Durable() {
			all = append(all, ev.Type)
		}
	}
	return all
}

func TestWholeTurnIsAsTheContractSays(t *testing.T) {
	stuck := tooltest.NewBlocking("Stuck")
	w := startWhole(t, tooltest.Returning("Big", strings.Repeat("日", 50_000)), tooltest.Panicking("Broken", "secret"), stuck,
		tooltest.Func{Name: "Quiet", RunFunc: func(_ context.Context, c tool.Call) (session.Output, error) {
			c.Progress("half done")
			return session.Output{Summary: "nothing to say"}, nil
		}})
	path := w.newSession()
	w.do(200, nil, "GET", path, "")
	early := w.events(w.open("GET", path+"/events", "")) // from before the turn, so that it misses nothing
	calls := []llmtest.Call{{Tool: "Big", Arguments: `{"a":[1,null]}`}, {Tool: "Quiet", Arguments: `[`}, {Tool: "Quiet", Arguments: ``}, {Tool: "Broken"}, {Tool: "Nothing"}}
	got := w.say(path, "hello", session.TurnCompleted,
		llmtest.Step{Reasoning: []string{"hm"}, Text: []string{"let me ", "see"}, Calls: calls, Usage: session.Usage{InputTokens: 9, CachedInputTokens: 4, OutputTokens: 3}},
		llmtest.Step{Text: []string{"done 😀"}})
	order := types(got)
	if i := slices.Index(order, session.EventStepCompleted); !slices.Equal(order[:3], []session.EventType{session.EventTurnQueued, session.EventTurnStarted, session.EventItem}) || i < 4 {
		t.Errorf("events come as %v", order)
	}
	until(t, early, terminal)
	w.say(path, "fail", session.TurnFailed, llmtest.Step{Status: 401, Body: "who are you"})
	w.say(path, "try again", session.TurnCompleted, llmtest.Step{Text: []string{"half a"}, CutAfterBytes: 250, Abort: true}, llmtest.Step{Text: []string{"whole"}})
	w.budget.Claim(w.budget.MaxTokens()) // so that the next one waits
	w.cancelOne(path, stuck)
	w.readBack(path)

	w.model.Add(llmtest.Step{Calls: []llmtest.Call{{Tool: "Stuck"}}})
	next := w.events(w.open("POST", path+"/turns", `{"input":"stop"}`, "Accept: text/event-stream"))
	entered(t, stuck)
	w.host.Stop(0)
	until(t, next, func(ev received) bool { return ev.Type == session.EventTurnInterrupted })
	w.do(503, nil, "POST", path+"/turns", `{"input":"too late"}`)
	for _, kind := range constants(t, "../session/event.go", "EventType") {
		unseen := kind == string(session.EventMemoryExtract) || kind == string(session.EventStreamReset)
		if !w.seen[session.EventType(kind)] && !unseen {
			t.Errorf("no stream carried %s", kind)
		}
	}
}

func entered(t *testing.T, stuck *tooltest.Blocking) {
	t.Helper()
	select {
	case <-stuck.Entered:
	case <-time.After(patience):
		t.Fatal("the tool does not run")
	}
}

// cancelOne cancels a running turn and a queued one behind it.
func (w *whole) cancelOne(path string, stuck *tooltest.Blocking) {
	w.t.Helper()
	w.model.Add(llmtest.Step{Calls: []llmtest.Call{{Tool: "Stuck"}}})
	var running, queued, ended session.Turn
	location := w.do(202, &running, "POST", path+"/turns", `{"input":"wait"}`).Get("Location")
	entered(w.t, stuck)
	w.do(409, nil, "POST", path+"/turns", `{"input":"now","mode":"reject"}`)
	w.do(202, &queued, "POST", path+"/turns", `{"input":"later"}`)
	for _, id := range []session.TurnID{queued.ID, running.ID} {
		w.do(200, &ended, "POST", path+"/turns/"+string(id)+"/cancel", "")
		if ended.State != session.TurnCancelled || ended.ID != id {
			w.t.Errorf("cancel of %s answers %+v", id, ended)
		}
	}
	w.do(200, &ended, "GET", location, "")
	w.do(200, &ended, "POST", location+"/cancel", "")
	if ended.State != session.TurnCancelled {
		w.t.Errorf("a second cancel answers %+v", ended)
	}
}

// readBack compares what is stored with what the stream shows from its beginning.
func (w *whole) readBack(path string) {
	w.t.Helper()
	var events page[session.Event]
	w.do(200, &events, "GET", path+"/events?limit=200", "", "Accept: application/json")
	last := events.Data[len(events.Data)-1]
	streamed := until(w.t, w.events(w.open("GET", path+"/events", "")), func(ev received) bool { return ev.Seq == last.Seq })
	if len(streamed) != len(events.Data) {
		w.t.Errorf("the stream shows %d events, the page %d", len(streamed), len(events.Data))
	}
	kinds := map[session.ItemKind]bool{}
	items := 0
	for cursor := ""; ; {
		var p page[session.Item]
		w.do(200, &p, "GET", path+"/items?limit=3&cursor="+cursor, "")
		for _, item := range p.Data {
			items++
			kinds[item.Kind] = true
			w.do(200, nil, "GET", path+"/items/"+strconv.Itoa(items), "")
			if item.N != int64(items) {
				w.t.Errorf("item %d comes as the %dth", item.N, items)
			}
		}
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	w.do(404, nil, "GET", path+"/items/"+strconv.Itoa(items+1), "")
	if len(kinds) != 5 {
		w.t.Errorf("items are of the kinds %v", slices.Sorted(maps.Keys(kinds)))
	}
	var turns page[session.Turn]
	w.do(200, &turns, "GET", path+"/turns?limit=2", "")
	w.do(200, &turns, "GET", path+"/turns?cursor="+turns.NextCursor, "")
	if len(turns.Data) != 3 {
		w.t.Errorf("after the first two come %d turns, want 3", len(turns.Data))
	}
}

// A reader drops its connection in the middle of a text and goes on at the next byte.
func TestResumedTextHasNoGap(t *testing.T) {
	w := startWhole(t)
	path := w.newSession()
	gate := make(chan struct{})
	w.model.Add(llmtest.Step{Text: []string{"one 日", "two 😀", "three ", "four"}, Gate: gate, GateAfter: 2})
	w.do(202, nil, "POST", path+"/turns", `{"input":"count"}`)
	text := ""
	delta := func(ev received) bool {
		if ev.Type == session.EventItemDelta {
			if ev.Delta.AtByte != int64(len(text)) {
				t.Errorf("%q begins at byte %d, want %d", ev.Delta.Text, ev.Delta.AtByte, len(text))
			}
			text += ev.Delta.Text
			return true
		}
		return false
	}
	first := w.open("GET", path+"/events", "")
	got := until(t, w.events(first), delta)
	first.Body.Close()
	close(gate)
	resumed := w.events(w.open("GET", path+"/events?after=0", "", "Last-Event-ID: "+got[len(got)-1].id))
	until(t, resumed, func(ev received) bool { delta(ev); return terminal(ev) })
	const want = "one 日two 😀three four"
	if !strings.HasPrefix(want, text) {
		t.Errorf("deltas join up to %q, want a beginning of %q", text, want)
	}
	last := w.events(w.open("GET", path+"/events?after=99", ""))
	if ev, err := last(); err != nil || ev.Type != session.EventStreamReset || ev.id != "" {
		t.Errorf("a seq beyond the last gets %v, %v, want stream.reset", ev, err)
	}
}

// What has been streamed of an answer that is cancelled is kept, and says so.
func TestCancelledTextIsKept(t *testing.T) {
	w := startWhole(t)
	path := w.newSession()
	w.model.Add(llmtest.Step{Text: []string{"half ", "never"}, Gate: make(chan struct{}), GateAfter: 1})
	response := w.open("POST", path+"/turns", `{"input":"go"}`, "Accept: text/event-stream")
	next := w.events(response)
	until(t, next, func(ev received) bool { return ev.Type == session.EventItemDelta })
	var turn session.Turn
	w.do(200, &turn, "POST", response.Header.Get("Location")+"/cancel", "")
	var kept *session.AssistantMessage
	for _, ev := range until(t, next, terminal) {
		if ev.Type == session.EventItem {
			kept = ev.Item.AssistantMessage
		}
	}
	if kept == nil || !kept.Incomplete || kept.Text != "half " || turn.State != session.TurnCancelled {
		t.Errorf("the turn ended %s and kept %+v", turn.State, kept)
	}
	w.do(200, nil, "GET", path+"/items", "")
}

func TestRepeatedKeyMakesOneTurn(t *testing.T) {
	w := startWhole(t)
	path, other := w.newSession(), w.newSession()
	var first, again, foreign session.Turn
	w.do(202, &first, "POST", path+"/turns", `{"input":"a"}`, "Idempotency-Key: k1")
	if h := w.do(202, &again, "POST", path+"/turns", `{"mode":"enqueue","input":"a"}`, "Idempotency-Key: k1"); h.Get("Idempotency-Replayed") != "true" || again.ID != first.ID {
		t.Errorf("the second answer is %+v, %v", again, h)
	}
	replay := until(t, w.events(w.open("POST", path+"/turns", `{"input":"a"}`, "Idempotency-Key: k1", "Accept: text/event-stream")), terminal)
	if replay[0].Type != session.EventTurnQueued || replay[0].TurnID != first.ID {
		t.Errorf("the replayed stream begins with %v", replay[0])
	}
	w.do(422, nil, "POST", path+"/turns", `{"input":"b"}`, "Idempotency-Key: k1")
	w.do(202, &foreign, "POST", other+"/turns", `{"input":"a"}`, "Idempotency-Key: k1")
	var turns page[session.Turn]
	w.do(200, &turns, "GET", path+"/turns", "")
	if len(turns.Data) != 1 || foreign.ID == first.ID {
		t.Errorf("the session has %d turns, want 1", len(turns.Data))
	}
}

func TestDeletedSessionIsGone(t *testing.T) {
	w := startWhole(t)
	path := w.newSession()
	var s session.Session
	w.do(200, &s, "PATCH", path, `{"title":"`+strings.Repeat("<", 10_000)+`","metadata":{"a":"b"}}`)
	if len(s.Title) != 10_000 || s.Metadata["a"] != "b" {
		t.Errorf("changed to %d bytes of title, %v", len(s.Title), s.Metadata)
	}
	w.do(200, nil, "GET", "/v1/sessions", "")
	next := w.events(w.open("GET", path+"/events", ""))
	w.do(204, nil, "DELETE", path, "")
	if ev, err := next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream goes on with %v, %v", ev, err)
	}
	for _, rest := range []string{"", "/events", "/turns", "/items", "/items/1"} {
		w.do(404, nil, "GET", path+rest, "")
	}
	w.do(404, nil, "DELETE", path, "")
	w.do(404, nil, "PATCH", path, `{}`)
	w.do(404, nil, "POST", path+"/turns", `{"input":"a"}`)
	w.do(404, nil, "GET", path+"/events", "", "Accept: application/json")
	w.do(404, nil, "GET", path+"/turns/"+string(testTurn), "")
	w.do(404, nil, "POST", path+"/turns/"+string(testTurn)+"/cancel", "")
}
