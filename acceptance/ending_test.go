package acceptance

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
	"loadline/internal/worker"
)

// counted is a blocking tool that counts how often it runs.
func counted(name string) (*tooltest.Blocking, *atomic.Int32) {
	blocks, runs := tooltest.NewBlocking(name), new(atomic.Int32)
	inner := blocks.RunFunc
	blocks.RunFunc = func(ctx context.Context, call tool.Call) (session.Output, error) {
		runs.Add(1)
		return inner(ctx, call)
	}
	return blocks, runs
}

// Whoever leaves, a turn goes on: only cancel and deletion stop it.
func TestA15LeavingStopsNoTurn(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(w *world, id session.ID)
	}{
		{"a reader of the stream", func(w *world, id session.ID) {
			s := w.stream(id, "")
			s.next()
			s.close()
		}},
		{"all of many readers", func(w *world, id session.ID) {
			for range 20 {
				s := w.stream(id, "0")
				defer s.close()
			}
		}},
		{"a reader that has read nothing", func(w *world, id session.ID) { w.stream(id, "0").close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks, runs := counted("Blocks")
			w := start(t, setup{tools: []tool.Tool{blocks}, script: []llmtest.Step{calls("Blocks"), says("done")}})
			id := w.newSession()
			posted := w.postStream(id, "go")
			turn := posted.next().TurnID
			<-blocks.Entered
			c.leave(w, id)
			posted.close() // the connection of the POST itself
			blocks.Release()
			if ended := w.await(id, turn); ended.State != session.TurnCompleted {
				t.Errorf("the turn: %s %+v", ended.State, ended.Error)
			}
			if got := kinds(w.items(id)); got != "user_message tool_call tool_result assistant_message" || runs.Load() != 1 {
				t.Errorf("items %q, the tool ran %d times", got, runs.Load())
			}
			w.stillFine(id)
		})
	}
}

// However a turn ends, its stream ends with exactly one terminal event that tells the
// truth, the session is idle by then, and who comes late learns the same at once.
func TestA16EachTurnHasOneEnd(t *testing.T) {
	echo := prints("Echo", "x")
	panics := tooltest.Panicking("Echo", "oops")
	breaks := func(context.Context, worker.Call, session.Output) session.Output { panic("oops") }
	ends := func(step llmtest.Step) []llmtest.Step { return []llmtest.Step{step, says("done")} }
	cancels := func(w *world, id session.ID, turn session.TurnID) { w.cancel(id, turn) }
	stops := func(w *world, _ session.ID, _ session.TurnID) { w.restart() }
	for _, c := range []struct {
		name   string
		tool   tool.Tool
		after  []worker.AfterTool
		script []llmtest.Step
		meddle func(w *world, id session.ID, turn session.TurnID) // when the tool blocks
		state  session.TurnState
		code   session.ErrorCode
	}{
		{"success", echo, nil, ends(says("so")), nil, session.TurnCompleted, ""},
		{"success with a tool", echo, nil, ends(calls("Echo")), nil, session.TurnCompleted, ""},
		{"provider error", echo, nil, ends(refuses(http.StatusUnauthorized, "no")), nil, session.TurnFailed, session.CodeProviderError},
		{"provider error after a tool", echo, nil, []llmtest.Step{calls("Echo"), refuses(http.StatusUnauthorized, "no")}, nil, session.TurnFailed, session.CodeProviderError},
		{"tool error", fails("Echo", "no"), nil, ends(calls("Echo")), nil, session.TurnCompleted, ""},
		{"step limit", echo, nil, []llmtest.Step{calls("Echo"), calls("Echo"), calls("Echo")}, nil, session.TurnFailed, session.CodeStepLimit},
		{"panic in a tool", panics, nil, ends(calls("Echo", "Echo")), nil, session.TurnCompleted, ""},
		{"panic in an interceptor", echo, []worker.AfterTool{breaks}, ends(calls("Echo")), nil, session.TurnCompleted, ""},
		{"answer cut by its limit", echo, nil, ends(llmtest.Step{Text: []string{"half a"}, Stop: "length"}), nil, session.TurnCompleted, ""},
		{"refusal in words", echo, nil, ends(llmtest.Step{Text: []string{"I will not."}, Stop: "refusal"}), nil, session.TurnCompleted, ""},
		{"cancel", nil, nil, ends(calls("Echo")), cancels, session.TurnCancelled, session.CodeCancelled},
		{"stop of the server", nil, nil, ends(calls("Echo")), stops, session.TurnInterrupted, session.CodeServerStopping},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks := tooltest.NewBlocking("Echo")
			if c.tool == nil {
				c.tool = blocks
			}
			w := start(t, setup{
				manifest: "[worker]\nmax_steps = 3\n", tools: []tool.Tool{c.tool}, after: c.after, script: c.script,
			})
			id := w.newSession()
			s := w.postStream(id, "go")
			events := []session.Event{s.next()}
			if c.meddle != nil {
				<-blocks.Entered
				c.meddle(w, id, events[0].TurnID)
			}
			events = append(events, s.rest()...)
			oneEnd(t, w, id, events, c.state, c.code)
			w.stillFine(id)
		})
	}
}

// oneEnd checks the events of a turn that has ended, and what is told of it.
func oneEnd(t *testing.T, w *world, id session.ID, events []session.Event, state session.TurnState, code session.ErrorCode) {
	t.Helper()
	last := events[len(events)-1]
	if last.Type != session.TerminalEvent(state) || last.Turn.State != state || errorCode(*last.Turn) != code {
		t.Fatalf("the last event is %s %+v, want %s %s", last.Type, last.Turn, state, code)
	}
	var durable []session.Event
	for i, ev := range events {
		if ev.Type.Terminal() != (i == len(events)-1) {
			t.Errorf("event %d of %d is %s", i+1, len(events), ev.Type)
		}
		if ev.Type.Durable() {
			durable = append(durable, ev)
		}
	}
	if s := w.session(id); s.State != session.StateIdle || s.LastSeq != last.Seq {
		t.Errorf("the session is %s at %d after the end at %d", s.State, s.LastSeq, last.Seq)
	}
	late := w.stream(id, "")
	defer late.close()
	for _, want := range durable {
		if diff := cmp.Diff(want, late.next()); diff != "" {
			t.Errorf("a late reader sees another event: %s", diff)
		}
	}
	var asked session.Turn
	w.do("GET", turnsOf(id)+"/"+string(last.TurnID), nil, &asked)
	if diff := cmp.Diff(*last.Turn, asked); diff != "" {
		t.Errorf("the turn reads otherwise: %s", diff)
	}
}

// Deletion ends the turns of a session, then its streams; nothing of it is left.
func TestA16DeletionEndsAll(t *testing.T) {
	blocks := tooltest.NewBlocking("Blocks")
	w := start(t, setup{tools: []tool.Tool{blocks}, script: []llmtest.Step{calls("Blocks")}})
	id := w.newSession()
	running, queued := w.post(id, "go"), w.post(id, "and then")
	s := w.stream(id, "")
	<-blocks.Entered
	if answer, _ := w.send("DELETE", "/v1/sessions/"+string(id), nil); answer.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %s", answer.Status)
	}
	ends := map[session.TurnID]int{}
	for _, ev := range s.rest() {
		if ev.Type.Terminal() {
			ends[ev.TurnID]++
			if ev.Type != session.EventTurnCancelled || errorCode(*ev.Turn) != session.CodeSessionDeleted {
				t.Errorf("%s %+v", ev.Type, ev.Turn.Error)
			}
		}
	}
	if diff := cmp.Diff(map[session.TurnID]int{running.ID: 1, queued.ID: 1}, ends); diff != "" {
		t.Errorf("terminal events: %s", diff)
	}
	for _, path := range []string{"", "/events", "/items", "/items/1", "/turns", "/turns/" + string(running.ID)} {
		if answer, _ := w.send("GET", "/v1/sessions/"+string(id)+path, nil); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%q of the deleted session: %s", path, answer.Status)
		}
	}
	if answer, _ := w.send("POST", turnsOf(id), map[string]any{"input": "still there?"}); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a turn of the deleted session: %s", answer.Status)
	}
	w.stillFine(w.newSession())
}
