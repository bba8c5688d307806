package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func TestHowATurnFails(t *testing.T) {
	failure := func(class llm.Class) error { return &llm.Error{Class: class, Status: 400, Err: errors.New("no")} }
	for _, c := range []struct {
		name   string
		script []scripted
		code   session.ErrorCode
		asked  int
	}{
		{"retries used up", []scripted{{err: failure(llm.ClassRetry)}, {err: failure(llm.ClassRetry)}, {err: failure(llm.ClassRetry)}}, session.CodeProviderError, 3},
		{"too large is never sent again unchanged", []scripted{{err: failure(llm.ClassShrink)}}, session.CodeRequestTooLarge, 1},
		{"refused", []scripted{{err: failure(llm.ClassFail)}}, session.CodeProviderError, 1},
		{"nothing, three times", []scripted{{}, {deltas: says("  \n")}, {deltas: thinks("hm")}}, session.CodeEmptyResponse, 3},
		{"refusal without a word", []scripted{{stop: llm.StopRefusal}}, session.CodeEmptyResponse, 1},
		{"calls for ever", []scripted{{deltas: calls("x", "{}")}, {deltas: calls("x", "{}")}, {deltas: calls("x", "{}")}, {deltas: calls("x", "{}")}, {deltas: calls("x", "{}")}}, session.CodeStepLimit, 5},
		{"an error of no class", []scripted{{err: errors.New("strange")}}, session.CodeInternal, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorkbench(t, nil, c.script...)
				ended := w.run(t.Context())
				if ended.State != session.TurnFailed || ended.Error == nil || ended.Error.Code != c.code || ended.Error.Detail == "" {
					t.Errorf("ended as %s %+v", ended.State, ended.Error)
				}
				if len(w.model.requests) != c.asked {
					t.Errorf("asked %d times, want %d", len(w.model.requests), c.asked)
				}
			})
		})
	}
}

func TestTextOfACancelledAnswerIsKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		deltas []llm.Delta
		kinds  []session.ItemKind
		voided bool
	}{
		{"nothing yet", nil, nil, false},
		{"blank", says(" "), nil, false},
		{"text", says("half a "), []session.ItemKind{session.KindAssistantMessage}, false},
		{"reasoning and text", then(thinks("hm"), says("so")), []session.ItemKind{session.KindReasoning, session.KindAssistantMessage}, false},
		{"text and a call", then(says("so"), calls("Echo", `{"a`)), []session.ItemKind{session.KindAssistantMessage}, true},
		{"a call without arguments yet", then(says("so"), calls("Echo", "")), []session.ItemKind{session.KindAssistantMessage}, false},
		{"a call before text", then(calls("Echo", ""), says("so")), []session.ItemKind{session.KindAssistantMessage}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorkbench(t, nil, scripted{deltas: c.deltas, hang: true})
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					synctest.Wait()
					cancel(ErrServerStopping)
				}()
				if ended := w.run(ctx); ended.State != session.TurnInterrupted || ended.Error.Code != session.CodeServerStopping {
					t.Errorf("ended as %s %+v", ended.State, ended.Error)
				}
				var kinds []session.ItemKind
				for _, item := range w.log.items() {
					kinds = append(kinds, item.Kind)
					if m := item.AssistantMessage; m != nil && !m.Incomplete {
						t.Error("the text is not marked incomplete")
					}
				}
				if diff := cmp.Diff(c.kinds, kinds); diff != "" {
					t.Error(diff)
				}
				if voided := len(w.log.events) > 0 && w.log.events[0].Type == session.EventStepRestarted; voided != c.voided {
					t.Errorf("voided %v, want %v", voided, c.voided)
				}
			})
		})
	}
}

func TestStaleOwnerRunsNoTool(t *testing.T) {
	ran := false
	echo := tooltest.Func{Name: "Echo", RunFunc: func(context.Context, tool.Call) (session.Output, error) {
		ran = true
		return content("x"), nil
	}}
	w := newWorkbench(t, []tool.Tool{echo}, scripted{deltas: calls("Echo", "{}")})
	w.log.refuse = func([]session.Event) error { return session.ErrStale }
	_, err := w.engine.Run(t.Context(), context.Background(), w.log, w.history, w.turn, false)
	if !errors.Is(err, session.ErrStale) || ran || len(w.log.events) > 0 {
		t.Errorf("error %v, ran %v, %d events", err, ran, len(w.log.events))
	}
}

// What the disk refuses is stored with the end, which is tried until it stands.
func TestDiskRefusesForAWhile(t *testing.T) {
	for _, c := range []struct {
		name string
		when session.EventType // the first commit with this one fails, and all for 20 s
		kind session.ItemKind
		want session.TurnState
	}{
		{"an answer with a call", session.EventItem, session.KindToolCall, session.TurnFailed},
		{"a result", session.EventItem, session.KindToolResult, session.TurnFailed},
		{"the last answer", session.EventItem, session.KindAssistantMessage, session.TurnCompleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorkbench(t, []tool.Tool{tooltest.Returning("Echo", "x")}, scripted{deltas: calls("Echo", "{}")})
				var until time.Time
				w.log.refuse = func(events []session.Event) error {
					if first := events[0]; until.IsZero() && first.Item != nil && first.Item.Kind == c.kind {
						until = time.Now().Add(20 * time.Second)
					}
					if time.Now().Before(until) {
						return fmt.Errorf("disk full: %w", session.ErrStorage)
					}
					return nil
				}
				ended := w.run(t.Context())
				if ended.State != c.want || c.want == session.TurnFailed && ended.Error.Code != session.CodeStorage {
					t.Errorf("ended as %s %+v", ended.State, ended.Error)
				}
			})
		})
	}
}
