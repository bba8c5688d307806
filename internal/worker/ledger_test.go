package worker

import (
	"context"
	"slices"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// looks is a tool that only reads.
type looks struct{ tooltest.Func }

func (l looks) Spec() session.ToolSpec {
	spec := l.Func.Spec()
	spec.Effect = session.EffectRead
	return spec
}

// What each call may do is stored with it before any of them runs, and what a crash
// leaves open says it, whatever the tools are by then.
func TestOpenCallsSayWhatTheyMayHaveDone(t *testing.T) {
	look, change := looks{tooltest.Func{Name: "Look"}}, tooltest.Func{Name: "Change"}
	answer := calls("Look", "{}", "Change", "{}", "Nope", "{}", "Change", "no object")
	for _, c := range []struct {
		name string
		stop llm.Stop
		want []string // summaries
	}{
		{"whole", llm.StopEnd, []string{"Look: not finished", "Change: outcome unknown", "Nope: never started", "Change: never started"}},
		{"cut", llm.StopLength, []string{"Look: never started", "Change: never started", "Nope: never started", "Change: never started"}},
		{"refused", llm.StopRefusal, []string{"Look: never started", "Change: never started", "Nope: never started", "Change: never started"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkbench(t, []tool.Tool{look, change}, scripted{deltas: answer, stop: c.stop})
			w.run(t.Context())
			var stored []session.Item // as after a crash behind the answer's commit
			for _, ev := range w.log.events {
				if ev.Item != nil && ev.Item.ToolResult == nil {
					stored = append(stored, *ev.Item)
				}
				if ev.Type == session.EventStepCompleted {
					break
				}
			}
			ran := func(context.Context, tool.Call) (session.Output, error) {
				t.Error("a call ran again")
				return session.Output{}, nil
			}
			// Nope is a tool by now, and Look one that changes things.
			next := newWorkbench(t, []tool.Tool{tooltest.Func{Name: "Look", RunFunc: ran}, tooltest.Func{Name: "Change", RunFunc: ran}, tooltest.Func{Name: "Nope", RunFunc: ran}})
			next.turn, next.history.Items = w.turn, append(next.history.Items, stored...)
			for i := range stored {
				next.log.events = append(next.log.events, session.Event{Type: session.EventItem, TurnID: w.turn.ID, Item: &stored[i]})
			}
			next.turn.State, next.turn.Steps = session.TurnRunning, 1
			if ended, err := next.engine.Run(t.Context(), context.Background(), next.log, next.history, next.turn, true); err != nil || ended.State != session.TurnCompleted {
				t.Fatalf("resumed: %s, %v", ended.State, err)
			}
			var got []string
			for _, r := range next.log.results() {
				if got = append(got, r.Summary); !r.Failed {
					t.Errorf("%q is no failure", r.Summary)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("results %q, want %q", got, c.want)
			}
		})
	}
}

// When the answer itself cannot be stored, no call has begun, and its result says so.
func TestCallsOfAnUnstoredAnswerNeverStarted(t *testing.T) {
	change := tooltest.Func{Name: "Change", RunFunc: func(context.Context, tool.Call) (session.Output, error) {
		t.Error("a call ran before it was stored")
		return session.Output{}, nil
	}}
	w := newWorkbench(t, []tool.Tool{change}, scripted{deltas: calls("Change", "{}")})
	w.log.refuse = func(events []session.Event) error {
		if !events[len(events)-1].Type.Terminal() {
			return session.ErrStorage
		}
		return nil
	}
	if ended := w.run(t.Context()); ended.State != session.TurnFailed {
		t.Errorf("ended as %s", ended.State)
	}
	results := w.log.results()
	if len(results) != 1 || results[0].Summary != "Change: never started" {
		t.Errorf("results %+v", results)
	}
}
