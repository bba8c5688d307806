package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func TestTextAloneIsOneCommit(t *testing.T) {
	w := newWorkbench(t, nil, scripted{deltas: says(" ", "\n", "Hello ", "world")})
	ended := w.run(t.Context())
	want := session.Usage{InputTokens: 10, CachedInputTokens: 4, OutputTokens: 2}
	if ended.State != session.TurnCompleted || ended.Steps != 1 || ended.Usage != want || ended.EndedAt == 0 {
		t.Errorf("ended as %+v", ended)
	}
	if diff := cmp.Diff([]session.EventType{session.EventItem, session.EventStepCompleted, session.EventTurnCompleted}, w.log.types()); diff != "" {
		t.Error(diff)
	}
	// Blank text is held back and sent with the first piece that is not.
	var deltas []session.Delta
	for _, ev := range w.log.shown {
		deltas = append(deltas, *ev.Delta)
	}
	wantDeltas := []session.Delta{
		{ItemN: 2, Kind: session.KindAssistantMessage, AtByte: 0, Text: " \nHello "},
		{ItemN: 2, Kind: session.KindAssistantMessage, AtByte: 8, Text: "world"},
	}
	if diff := cmp.Diff(wantDeltas, deltas); diff != "" {
		t.Error(diff)
	}
}

func TestUsageThatNoRequestHasIsBounded(t *testing.T) {
	got := session.Usage{InputTokens: 1<<63 - 1, CachedInputTokens: -5, OutputTokens: 7}.Bounded()
	if want := (session.Usage{InputTokens: 1 << 40, OutputTokens: 7}); got != want {
		t.Errorf("bounded %+v, want %+v", got, want)
	}
}

func TestFilteredAnswerIsIncomplete(t *testing.T) {
	w := newWorkbench(t, nil, scripted{deltas: says("half"), stop: llm.StopRefusal})
	if ended := w.run(t.Context()); ended.State != session.TurnCompleted || !w.log.items()[0].AssistantMessage.Incomplete {
		t.Errorf("ended as %s with %+v", ended.State, w.log.items()[0].AssistantMessage)
	}
}

func TestResultsKeepCallOrder(t *testing.T) {
	slow := make(chan struct{})
	tools := []tool.Tool{
		tooltest.Func{Name: "First", RunFunc: func(ctx context.Context, _ tool.Call) (session.Output, error) {
			<-slow
			return content("first"), nil
		}},
		tooltest.Returning("Second", "second"),
	}
	w := newWorkbench(t, tools, scripted{deltas: calls("First", "{}", "Second", "{}")})
	w.log.refuse = func(events []session.Event) error {
		if item := events[0].Item; item != nil && item.ToolResult != nil && item.ToolResult.Tool == "Second" {
			close(slow)
		}
		return nil
	}
	w.run(t.Context())
	got := w.log.results()
	if len(got) != 2 || *got[0].Content != "first" || *got[1].Content != "second" {
		t.Errorf("results %+v", got)
	}
	// The events come in the order in which the results were final.
	var finished []int64
	for _, ev := range w.log.events {
		if ev.Item != nil && ev.Item.ToolResult != nil {
			finished = append(finished, ev.Item.N)
		}
	}
	if diff := cmp.Diff([]int64{5, 4}, finished); diff != "" {
		t.Error(diff)
	}
}

func TestCallsThatDoNotRun(t *testing.T) {
	ran := atomic.Int32{}
	echo := tooltest.Func{Name: "Echo", RunFunc: func(_ context.Context, c tool.Call) (session.Output, error) {
		ran.Add(1)
		return content(string(c.Arguments)), nil
	}}
	for _, c := range []struct {
		name    string
		answer  scripted
		summary string
		content string
		raw     string
	}{
		{"unknown", scripted{deltas: calls("reed", `{"path":"x"}`)}, "reed: unknown tool", `There is no tool named "reed". The tools are: Echo.`, ""},
		{"wrong case", scripted{deltas: calls("echo", `{}`)}, "echo: unknown tool", `There is no tool named "echo". The tools are: Echo.`, ""},
		{"no object", scripted{deltas: calls("Echo", `[1]`)}, "Echo: bad arguments", `The arguments are not a JSON object, so the call did not run. They were: "[1]"`, "[1]"},
		{"cut arguments", scripted{deltas: calls("Echo", `{"path":"a`), stop: llm.StopLength}, "Echo: not run", "The answer was cut by the output limit, so none of its calls ran: this one may be incomplete. Issue it again, in a shorter answer.", `{"path":"a`},
		{"whole arguments of a cut answer", scripted{deltas: calls("Echo", `{}`), stop: llm.StopLength}, "Echo: not run", "The answer was cut by the output limit, so none of its calls ran: this one may be incomplete. Issue it again, in a shorter answer.", ""},
		{"filtered", scripted{deltas: calls("Echo", `{}`), stop: llm.StopRefusal}, "Echo: not run", "The answer was stopped by a content filter, so none of its calls ran.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran.Store(0)
			w := newWorkbench(t, []tool.Tool{echo}, c.answer)
			if ended := w.run(t.Context()); ended.State != session.TurnCompleted || ended.Steps != 2 {
				t.Errorf("ended as %s after %d steps", ended.State, ended.Steps)
			}
			got := w.log.results()[0]
			if !got.Failed || got.Summary != c.summary || *got.Content != c.content || ran.Load() != 0 {
				t.Errorf("result %+v %q, ran %d times", got, *got.Content, ran.Load())
			}
			if call := w.log.items()[0].ToolCall; call.Raw != c.raw {
				t.Errorf("raw arguments %q", call.Raw)
			}
			sent := w.model.requests[1].Items[1].ToolCall
			if sent.Raw != "" || len(sent.Arguments) == 0 || sent.Arguments[0] != '{' {
				t.Errorf("sent back %+v", sent)
			}
		})
	}
}

func TestInterceptors(t *testing.T) {
	big := strings.Repeat("x", 5000)
	var saw []int
	look := func(_ context.Context, _ Call, out session.Output) session.Output {
		saw = append(saw, len(*out.Content))
		return out
	}
	replace := func(s string) AfterTool {
		return func(_ context.Context, _ Call, out session.Output) session.Output {
			out.Content, out.Unseen = &s, 0
			return out
		}
	}
	ran := false
	echo := tooltest.Func{Name: "Echo", RunFunc: func(_ context.Context, c tool.Call) (session.Output, error) {
		ran = true
		if len(c.Arguments) > 2 {
			return content(string(c.Arguments)), nil
		}
		return content(big), nil
	}}
	for _, c := range []struct {
		name    string
		before  []BeforeTool
		after   []AfterTool
		saw     []int
		content string
		dropped int64
		failed  bool
		ran     bool
	}{
		{"sees the whole", nil, []AfterTool{look}, []int{5000}, big[:948] + note(4052), 4052, false, true},
		{"replaces by more", nil, []AfterTool{look, replace(strings.Repeat("y", 3000)), look}, []int{5000, 3000}, strings.Repeat("y", 948) + note(2052), 2052, false, true},
		{"replaces by little", nil, []AfterTool{replace("0123456789")}, nil, "0123456789", 0, false, true},
		{"rewrites the arguments", []BeforeTool{func(context.Context, Call) Verdict { return Verdict{Arguments: arguments(`{"a":1}`)} }}, nil, nil, `{"a":1}`, 0, false, true},
		{"denies", []BeforeTool{func(context.Context, Call) Verdict {
			return Verdict{Answer: &session.Output{Summary: "denied", Content: session.Text(big), Failed: true}}
		}}, []AfterTool{look}, []int{5000}, big[:948] + note(4052), 4052, true, false},
		{"panics before", []BeforeTool{func(context.Context, Call) Verdict { panic("secret") }}, nil, nil, "The tool failed because of an internal error. What it had done until then is unknown.", 0, true, false},
		{"panics after", nil, []AfterTool{func(context.Context, Call, session.Output) session.Output { panic("secret") }}, nil, "An interceptor failed on this result. The tool did run.", 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			saw, ran = nil, false
			w := newWorkbench(t, []tool.Tool{echo}, scripted{deltas: calls("Echo", "{}")})
			w.engine.Before, w.engine.After = c.before, c.after
			if ended := w.run(t.Context()); ended.State != session.TurnCompleted {
				t.Errorf("ended as %s", ended.State)
			}
			got := w.log.results()[0]
			if *got.Content != c.content || got.Failed != c.failed || ran != c.ran {
				t.Errorf("failed %v, ran %v, content %q", got.Failed, ran, *got.Content)
			}
			if (got.Truncated == nil) != (c.dropped == 0) || got.Truncated != nil && got.Truncated.DroppedBytes != c.dropped {
				t.Errorf("truncated %+v, want %d dropped", got.Truncated, c.dropped)
			}
			if diff := cmp.Diff(c.saw, saw); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(w.log.results()[0], *w.model.requests[1].Items[2].ToolResult); diff != "" {
				t.Errorf("the model was sent something else: %s", diff)
			}
		})
	}
}

func TestStepBudgetIsSharedByItsCalls(t *testing.T) {
	for _, c := range []struct{ calls, limit int }{{1, 1000}, {8, 1000}, {10, 1000}, {20, 400}, {70, 128}} {
		t.Run(fmt.Sprint(c.calls), func(t *testing.T) {
			var asked []string
			for range c.calls {
				asked = append(asked, "Big", "{}")
			}
			w := newWorkbench(t, []tool.Tool{tooltest.Returning("Big", strings.Repeat("x", 50_000))}, scripted{deltas: calls(asked...)})
			w.engine.MaxCallsPerStep = 1024
			w.engine.limits.StepMaxBytes = 8000
			w.run(t.Context())
			results := w.log.results()
			if len(results) != c.calls {
				t.Fatalf("%d results", len(results))
			}
			for _, r := range results {
				if r.Truncated.Limit != min(1000, max(128, 8000/c.calls)) || len(*r.Content) > r.Truncated.Limit {
					t.Errorf("limit %d, content %d", r.Truncated.Limit, len(*r.Content))
				}
			}
		})
	}
}

func TestCallsBeyondTheMaximumAreCounted(t *testing.T) {
	var asked []string
	for range 14 {
		asked = append(asked, "Echo", "{}")
	}
	w := newWorkbench(t, []tool.Tool{tooltest.Returning("Echo", "x")}, scripted{deltas: calls(asked...)})
	w.run(t.Context())
	items := w.log.items()
	if len(items) != 8+8+1+1 || items[16].Summary == nil || !strings.HasPrefix(items[16].Summary.Text, "6 more tool calls") {
		t.Errorf("%d items, then %+v", len(items), items[16])
	}
	for _, ev := range w.log.shown {
		if ev.Delta != nil && ev.Delta.ItemN > 9 && ev.Delta.Kind == session.KindToolCall {
			t.Errorf("a dropped call sent a delta: %+v", ev.Delta)
		}
	}
	last := w.model.requests[1].Items
	if last[len(last)-1].Summary == nil {
		t.Error("the model is not told of the dropped calls")
	}
}

func TestTimeoutKeepsWhatTheToolHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		partial := strings.Repeat("p", 3000)
		slow := tooltest.Func{Name: "Slow", RunFunc: func(ctx context.Context, _ tool.Call) (session.Output, error) {
			<-ctx.Done()
			return session.Output{Content: &partial}, ctx.Err()
		}}
		w := newWorkbench(t, []tool.Tool{slow}, scripted{deltas: calls("Slow", "{}")})
		w.run(t.Context())
		got := w.log.results()[0]
		if !got.Failed || got.Summary != "Slow: timed out after 1m0s" || got.Truncated == nil ||
			!strings.HasPrefix(*got.Content, "The call did not finish within 1m0s and was stopped.") || !strings.Contains(*got.Content, "ppp") {
			t.Errorf("result %+v: %.90q", got, *got.Content)
		}
	})
}

func TestStubbornCallIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn := tooltest.NewStubborn("Stubborn")
		w := newWorkbench(t, []tool.Tool{stubborn}, scripted{deltas: calls("Stubborn", "{}")})
		ctx, cancel := context.WithCancelCause(t.Context())
		started := time.Now()
		go func() {
			<-stubborn.Entered
			cancel(ErrCancelled)
		}()
		ended := w.run(ctx)
		if took := time.Since(started); took != abandonAfter {
			t.Errorf("the cancel took %s", took)
		}
		if ended.State != session.TurnCancelled || ended.Error.Code != session.CodeCancelled {
			t.Errorf("ended as %s %+v", ended.State, ended.Error)
		}
		if got := w.log.results()[0]; got.Summary != "Stubborn: cancelled" {
			t.Errorf("result %+v", got)
		}
		count := len(w.log.events)
		stubborn.Release()
		synctest.Wait()
		if len(w.log.events) != count {
			t.Error("what an abandoned call returned was stored")
		}
	})
}

// What an abandoned interceptor decides in the end is dropped, and touches nothing
// that the turn still uses.
func TestStubbornInterceptorIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkbench(t, []tool.Tool{tooltest.Returning("Echo", "ran")},
			scripted{deltas: calls("Echo", `{"a":1}`)}, scripted{hang: true})
		w.engine.Before = []BeforeTool{func(context.Context, Call) Verdict {
			<-time.After(w.engine.ToolTimeout + 10*time.Second)
			late := content("late")
			return Verdict{Arguments: arguments(`{"b":2}`), Answer: &late}
		}}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*w.engine.ToolTimeout, ErrCancelled)
		defer cancel()
		if ended := w.run(ctx); ended.State != session.TurnCancelled {
			t.Errorf("ended as %+v", ended)
		}
		if got := w.log.results(); len(got) != 1 || !got[0].Failed || got[0].Summary != "Echo: timed out after 1m0s" {
			t.Errorf("results %+v", got)
		}
	})
}

func TestRetriesAreBoundedAndVoidWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &llm.Error{Class: llm.ClassRetry, Err: errors.New("the stream broke")}
		w := newWorkbench(t, nil,
			scripted{deltas: says("half"), err: broken},
			scripted{err: broken},
			scripted{deltas: says("whole")})
		if ended := w.run(t.Context()); ended.State != session.TurnCompleted {
			t.Errorf("ended as %s", ended.State)
		}
		want := []session.EventType{session.EventStepRetrying, session.EventStepRestarted, session.EventStepRetrying, session.EventStepRestarted, session.EventItem, session.EventStepCompleted, session.EventTurnCompleted}
		if diff := cmp.Diff(want, w.log.types()); diff != "" {
			t.Error(diff)
		}
		if got := w.log.events[2].Retry; got.Attempt != 3 || got.Reason != "the stream broke" {
			t.Errorf("second retry %+v", got)
		}
	})
}

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
