package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// strict is a model with limits, in this process.
type strict struct {
	answers
	window int64         // tokens; 0: none
	minute *rate.Limiter // nil: none

	sizes   []int64 // of all requests, bytes; guarded by mu like the next one
	limited int     // requests for which the minute had no room
}

func (s *strict) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	tokens := new(Gauge).tokensOf(requestBytes(r))
	s.mu.Lock()
	s.sizes = append(s.sizes, requestBytes(r))
	err := llmtest.Check(r)
	switch {
	case err != nil:
		err = &llm.Error{Class: llm.ClassFail, Err: err}
	case s.window > 0 && tokens > s.window:
		err = &llm.Error{Class: llm.ClassShrink, Status: 400, Err: errors.New("too long")}
	case s.minute != nil && !s.minute.AllowN(time.Now(), int(tokens)):
		s.limited++
		err = &llm.Error{Class: llm.ClassRetry, Status: 429, Err: errors.New("slow down")}
	}
	s.mu.Unlock()
	if err != nil {
		return llm.Answer{}, err
	}
	return s.answers.Ask(ctx, r, emit)
}

func TestRefusedAsTooLargeItComesBackSmaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := talk(t)
		model := &strict{window: 5000, answers: answers{counts: true}}
		w.engine.Provider, w.engine.Window = model, llm.Window{}
		w.model = &model.answers
		for range 3 {
			if turn := w.runLoose(t); turn.State != session.TurnCompleted {
				t.Fatalf("turn = %s %+v", turn.State, turn.Error)
			}
			w.turn.ID = session.NewTurnID()
			user := w.history.Items[0]
			user.N, user.UserMessage = w.history.next(), &session.UserMessage{Text: "and?"}
			w.history.Items = append(w.history.Items, user)
		}
		falling(t, model.sizes[:len(model.sizes)-2])
		if refused := len(model.sizes) - len(model.requests); refused < 2 || refused > 4 {
			t.Errorf("%d requests were refused, want a few, and only in the first turn: %v", refused, model.sizes)
		}
	})
}

// falling fails when a request is not smaller than the one before.
func falling(t *testing.T, sizes []int64) {
	t.Helper()
	for i := 1; i < len(sizes); i++ {
		if sizes[i] >= sizes[i-1] {
			t.Errorf("request %d has %d bytes, after one of %d was refused", i+1, sizes[i], sizes[i-1])
		}
	}
}

func TestSmallestRequestThatIsRefusedEndsTheTurn(t *testing.T) {
	for _, test := range []struct {
		name  string
		input string
		code  session.ErrorCode
	}{
		{"nothing fits", "go", session.CodeRequestTooLarge},
		{"the input does not", "go " + strings.Repeat("x", 30_000), session.CodeInputTooLarge},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := talk(t)
				w.engine.Provider = &strict{window: 1}
				w.history.Items[len(w.history.Items)-1].UserMessage = &session.UserMessage{Text: test.input}
				turn := w.runLoose(t)
				if turn.State != session.TurnFailed || turn.Error.Code != test.code {
					t.Errorf("turn = %s %+v", turn.State, turn.Error)
				}
				sizes := w.engine.Provider.(*strict).sizes
				if falling(t, sizes); len(sizes) > maxShrinks || sizes[len(sizes)-1] > int64(len(test.input))+1000 {
					t.Errorf("requests of %v bytes were sent", sizes)
				}
			})
		})
	}
}

func TestInputThatNoLongerFitsIsNotSent(t *testing.T) {
	w, _ := talk(t)
	w.engine.Window = llm.Window{ContextTokens: 1000}
	w.history.Items[len(w.history.Items)-1].UserMessage = &session.UserMessage{Text: strings.Repeat("x", 50_000)}
	turn := w.runLoose(t)
	if turn.State != session.TurnFailed || turn.Error.Code != session.CodeInputTooLarge || !strings.Contains(turn.Error.Detail, "50000 bytes") {
		t.Errorf("turn = %s %+v", turn.State, turn.Error)
	}
	if len(w.model.requests) != 0 {
		t.Error("it was sent")
	}
}

// Four sessions that work for an hour on one key, each with results that would fill
// the minute alone, are never told to slow down.
func TestSessionsShareTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perMinute = 30_000
		model := &strict{minute: rate.NewLimiter(perMinute/60.0, perMinute), answers: answers{counts: true}}
		model.reply = func(r llm.Request) []llm.Delta {
			if r.Items[len(r.Items)-1].Kind == session.KindUserMessage {
				return calls("Glob", `{}`)
			}
			return says("done")
		}
		budget := llm.NewBudget(perMinute)
		var sessions sync.WaitGroup
		for range 4 {
			w := newWorkbench(t, []tool.Tool{tooltest.Returning("Glob", strings.Repeat("some/path/or/other.go\n", 6000))})
			w.engine.Provider, w.engine.Budget, w.engine.limits.DefaultMaxBytes, w.engine.limits.StepMaxBytes = model, budget, 1<<20, 1<<20
			sessions.Go(func() {
				for range 8 {
					if turn := w.runLoose(t); turn.State != session.TurnCompleted {
						t.Errorf("turn = %s %+v", turn.State, turn.Error)
					}
					w.next("and?")
				}
				if waited := w.waited(); waited < time.Minute {
					t.Errorf("a session has waited for %v", waited)
				}
			})
		}
		begun := time.Now()
		sessions.Wait()
		if model.limited > 0 {
			t.Errorf("%d of %d requests came too early", model.limited, len(model.sizes))
		}
		if took := time.Since(begun); took > time.Hour {
			t.Errorf("it took %v", took)
		}
	})
}

// next begins another turn.
func (w *workbench) next(input string) {
	w.turn = session.Turn{ID: session.NewTurnID(), SessionID: w.turn.SessionID, State: session.TurnRunning, Input: input}
	w.history.Items = append(w.history.Items, session.Item{N: w.history.next(), SessionID: w.turn.SessionID, TurnID: w.turn.ID,
		Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: input}})
}

// waited is how long requests have waited for their turn, as events say.
func (w *workbench) waited() (sum time.Duration) {
	for _, ev := range w.log.events {
		if ev.Type == session.EventStepWaiting {
			sum += time.Duration(ev.Wait.WaitMS) * time.Millisecond
		}
	}
	return sum
}

func TestBudgetIsChargedWhatTheServiceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkbench(t, nil) // whose model counts 10 tokens
		w.engine.Budget, w.engine.Instructions = llm.NewBudget(60_000), strings.Repeat("be kind ", 10_000)
		w.run(t.Context())
		if wait := w.engine.Budget.Claim(w.engine.Budget.MaxTokens()).Wait(); wait > time.Second/10 {
			t.Errorf("after a request of 10 tokens the next waits %v", wait)
		}
	})
}

func TestLongWaitIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkbench(t, nil)
		w.engine.Budget = llm.NewBudget(1000)
		for range 11 {
			w.engine.Budget.Claim(950)
		}
		begun := time.Now()
		if turn := w.run(t.Context()); turn.State != session.TurnCompleted {
			t.Fatalf("turn = %s %+v", turn.State, turn.Error)
		}
		var told []int64
		for _, ev := range w.log.events {
			if ev.Wait != nil {
				told = append(told, ev.Wait.WaitMS/60_000)
			}
		}
		if took := time.Since(begun); len(told) != 3 || told[0] != 10 || told[1] != 5 || told[2] != 0 || took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("after %v the waits told are %v minutes, want 10, 5 and 0", took, told)
		}
	})
}

func TestCancelledWaitGivesItsTokensBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkbench(t, nil)
		w.engine.Budget = llm.NewBudget(1000)
		w.engine.Budget.Claim(950)
		w.engine.Budget.Claim(950)
		probe := w.engine.Budget.Claim(1)
		before := probe.Wait()
		probe.Cancel()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, ErrCancelled)
		defer cancel()
		if turn := w.run(ctx); turn.State != session.TurnCancelled || len(w.model.requests) != 0 {
			t.Errorf("turn = %s, %d requests", turn.State, len(w.model.requests))
		}
		if after := w.engine.Budget.Claim(1).Wait(); after > before-time.Second {
			t.Errorf("the next request waits %v, before it was %v", after, before)
		}
	})
}
