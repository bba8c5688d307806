package worker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

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
