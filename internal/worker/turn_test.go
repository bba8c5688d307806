package worker

import (
	"context"
	"errors"
	"strings"
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
