package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// An interceptor after the tool that does not return costs its result, not the turn.
func TestStubbornAfterToolIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkbench(t, []tool.Tool{tooltest.Returning("Echo", "ran")}, scripted{deltas: calls("Echo", "{}")})
		w.engine.After = []AfterTool{func(_ context.Context, _ Call, out session.Output) session.Output {
			<-time.After(time.Hour)
			return out
		}}
		started := time.Now()
		if ended := w.run(t.Context()); ended.State != session.TurnCompleted {
			t.Errorf("ended as %+v", ended)
		}
		if took := time.Since(started); took != interceptTimeout+abandonAfter {
			t.Errorf("the turn took %s", took)
		}
		got := w.log.results()
		if len(got) != 1 || !got[0].Failed || got[0].Summary != "Echo: its result was lost" || got[0].Content == nil {
			t.Errorf("results %+v", got)
		}
		<-time.After(2 * time.Hour) // the bubble ends after all that it started
	})
}

// What an abandoned call still reports is not shown.
func TestProgressEndsWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn := tooltest.Func{Name: "Stubborn", RunFunc: func(_ context.Context, c tool.Call) (session.Output, error) {
			c.Progress("early")
			<-time.After(time.Hour)
			c.Progress("late")
			return content("late"), nil
		}}
		w := newWorkbench(t, []tool.Tool{stubborn}, scripted{deltas: calls("Stubborn", "{}")})
		w.run(t.Context())
		<-time.After(2 * time.Hour)
		synctest.Wait()
		var lines []string
		for _, ev := range w.log.shown {
			if ev.Type == session.EventToolProgress {
				lines = append(lines, ev.Activity.Text)
			}
		}
		if len(lines) != 1 || lines[0] != "early" {
			t.Errorf("lines of progress %q, want the early one", lines)
		}
	})
}
