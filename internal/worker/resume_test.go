package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func TestResumeAnswersOpenCallsWithoutRunningThem(t *testing.T) {
	ran := false
	echo := tooltest.Func{Name: "Echo", RunFunc: func(context.Context, tool.Call) (session.Output, error) {
		ran = true
		return content("x"), nil
	}}
	for _, c := range []struct {
		name   string
		stored []int64 // results that a crash left, of calls 3, 4 and 5 at 6, 7 and 8
		tail   bool
	}{
		{"none", nil, false}, {"the first", []int64{6}, false}, {"the second", []int64{7}, false}, {"all", []int64{6, 7, 8}, false}, {"the last, and dropped calls", []int64{8}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkbench(t, []tool.Tool{echo})
			add := func(n int64, item session.Item) {
				item.N, item.TurnID, item.SessionID = n, w.turn.ID, w.turn.SessionID
				w.history.Items = append(w.history.Items, item)
				ev := session.Event{Type: session.EventItem, TurnID: w.turn.ID, Item: &item}
				w.log.events = append(w.log.events, ev)
			}
			add(2, session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "so"}})
			for n := int64(3); n <= 5; n++ {
				add(n, session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Echo", Arguments: arguments("{}")}})
			}
			for _, n := range c.stored {
				add(n, session.Item{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: n - 3, Tool: "Echo", Summary: "ok"}})
			}
			if c.tail {
				add(9, session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: "more calls"}})
			}
			w.turn.Steps = 1
			ended, err := w.engine.Run(t.Context(), context.Background(), w.log, w.history, w.turn, true)
			if err != nil || ended.State != session.TurnCompleted || ended.Steps != 2 || ran {
				t.Errorf("ended as %s after %d steps, error %v, ran %v", ended.State, ended.Steps, err, ran)
			}
			w.check()
			unknown := 0
			for _, r := range w.log.results() {
				if r.Summary == "Echo: outcome unknown" && r.Failed {
					unknown++
				}
			}
			if unknown != 3-len(c.stored) {
				t.Errorf("%d results say that the outcome is unknown", unknown)
			}
			if !strings.Contains(fmt.Sprint(w.log.types()), string(session.EventStepRestarted)) {
				t.Error("no step.restarted")
			}
		})
	}
}
