package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// errToolTimeout ends the context of a call whose time is over. A tool with a timer
// of its own takes it for the end of that one, whichever comes first.
var errToolTimeout = fmt.Errorf("the tool ran out of time: %w", context.DeadlineExceeded)

// errAnswered says that an interceptor answered instead of the tool.
var errAnswered = errors.New("answered by an interceptor")

// step is the calls of one answer, on their way to results.
type step struct {
	calls  []session.Item // in call order
	firstN int64          // of the results, whose numbers are reserved in call order
	limits []int          // bytes, fixed before the calls run
	tail   []session.Item // what comes after the results

	begun bool // its calls may run, or have run

	mu      sync.Mutex      // guards results
	results []*session.Item // committed ones, in call order; nil while open
}

// newStep fixes the numbers and limits of the results before any call runs.
func (e *Engine) newStep(calls []session.Item, firstN int64) *step {
	s := &step{calls: calls, firstN: firstN, results: make([]*session.Item, len(calls))}
	for _, call := range calls {
		s.limits = append(s.limits, e.limits.CallLimit(call.ToolCall.Tool, len(calls)))
	}
	return s
}

// runCalls runs all calls of a step at once and commits each result when it is
// final. It returns when each has one. The first commit that fails stops the rest.
func (r *run) runCalls(ctx context.Context, s *step) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.begun = true
	var (
		wg    sync.WaitGroup
		first sync.Once
		lost  error
	)
	for i := range s.calls {
		wg.Go(func() {
			out, how := r.runCall(ctx, s, i)
			if err := r.commitResult(ctx, s, i, out, how); err != nil {
				first.Do(func() { lost = err })
				stop(err)
			}
		})
	}
	wg.Wait()
	return lost
}

// answerCalls gives all calls of a step the same result, without running them.
func (r *run) answerCalls(ctx context.Context, s *step, summary, content string, how outcome) error {
	var events []session.Event
	for i := range s.calls {
		if s.results[i] == nil {
			out, _ := r.engine.after(ctx, r.interceptedCall(s.calls[i]), failedOutput(s.calls[i].ToolCall.Tool+": "+summary, content))
			events = append(events, r.settle(s, i, out, how))
		}
	}
	return r.commit(ctx, events...)
}

func (r *run) commitResult(ctx context.Context, s *step, i int, out session.Output, how outcome) error {
	return r.commit(ctx, r.settle(s, i, out, how))
}

// settle caps an output and makes the result's event of it: the only way from an
// output to the history.
func (r *run) settle(s *step, i int, out session.Output, how outcome) session.Event {
	call := s.calls[i]
	name := call.ToolCall.Tool
	n := s.firstN + int64(i)
	result, broken := Settle(call.N, name, out, s.limits[i], r.keeper(n))
	m := r.engine.Metrics
	if broken {
		r.log.Warn().Str("tool", m.toolLabel(name)).Msg("tool returned no usable summary")
	}
	if cut := result.Truncated; cut != nil {
		r.log.Warn().Str("tool", m.toolLabel(name)).Int64("dropped_bytes", cut.DroppedBytes).Int("limit_bytes", cut.Limit).Msg("tool output truncated")
	}
	m.result(name, how, result)
	item := session.Item{N: n, SessionID: r.turn.SessionID, TurnID: r.turn.ID, At: session.Now(), Kind: session.KindToolResult, ToolResult: &result}
	s.mu.Lock()
	s.results[i] = &item
	s.mu.Unlock()
	return r.itemEvent(&item)
}

// keeper keeps the whole output of result n; nil where nothing is kept.
func (r *run) keeper(n int64) func(whole string) session.KeptOutput {
	if r.engine.Keeper == nil {
		return nil
	}
	return func(whole string) session.KeptOutput { return r.engine.Keeper.Keep(r.turn.SessionID, n, whole) }
}

func (r *run) interceptedCall(call session.Item) Call {
	return Call{Session: r.turn.SessionID, Turn: r.turn.ID, N: call.N, Tool: call.ToolCall.Tool, Arguments: call.ToolCall.Arguments}
}

// runCall takes one call through its interceptors and its tool.
func (r *run) runCall(ctx context.Context, s *step, i int) (session.Output, outcome) {
	call := r.interceptedCall(s.calls[i])
	raw := s.calls[i].ToolCall.Raw
	out, how := r.output(ctx, call, raw, s.limits[i])
	after, failed := r.engine.after(ctx, call, out)
	if failed != "" {
		how = failed
	}
	return after, how
}

// output is what the call comes to before the AfterTool interceptors.
func (r *run) output(ctx context.Context, call Call, raw string, limit int) (session.Output, outcome) {
	t, known := r.engine.Tools.Find(call.Tool)
	if !known {
		return r.unknownTool(call.Tool), outcomeUnknownTool
	}
	if call.Arguments == nil {
		return failedOutput(call.Tool+": bad arguments", "The arguments are not a JSON object, so the call did not run. "+describeRaw(raw)), outcomeBadArguments
	}
	if ctx.Err() != nil {
		return r.stopped(ctx, call.Tool, session.Output{}), r.stoppedOutcome(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, r.engine.ToolTimeout, errToolTimeout)
	defer cancel()
	progress := r.newProgress(call)
	defer progress.end()
	started := time.Now()
	out, failure := guard(limited, func(ctx context.Context) (session.Output, error) {
		own := call // abandoned work may write to it at any time
		if answer := r.engine.before(ctx, &own); answer != nil {
			return *answer, errAnswered
		}
		out, err := t.Run(ctx, tool.Call{SessionID: call.Session, N: call.N, Arguments: own.Arguments, LimitBytes: limit, Progress: progress.show})
		return out, told(err)
	})
	r.engine.Metrics.toolDuration(call.Tool, time.Since(started))
	return r.judge(limited, call, out, failure)
}

// toldError is what a tool's error says, and whether it is about the arguments.
type toldError struct {
	text string
	kind error // tool.ErrArguments or nil
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.kind }

// told asks a tool's error what it says. That is code of the tool, which panics on a
// typed nil pointer: it runs inside the guard, and never again.
func told(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tool.ErrArguments):
		return &toldError{err.Error(), tool.ErrArguments}
	}
	return &toldError{err.Error(), nil}
}

// judge turns how the tool returned into an output and its outcome.
func (r *run) judge(ctx context.Context, call Call, out session.Output, f failure) (session.Output, outcome) {
	switch {
	case f.panicked != nil:
		r.engine.logPanic(call, "tool", f)
		return failedOutput(call.Tool+": internal error", "The tool failed because of an internal error. What it had done until then is unknown."), outcomePanic
	case f.abandoned:
		r.watchLate(call, f)
		return r.stopped(ctx, call.Tool, session.Output{}), r.stoppedOutcome(ctx)
	case errors.Is(f.err, errAnswered):
		if out.Failed {
			return out, outcomeDenied
		}
		return out, outcomeOK
	case f.err == nil && !out.Failed:
		return out, outcomeOK // it finished, even if the turn was cancelled meanwhile
	case ctx.Err() != nil && f.err == nil && out.Summary != "":
		return out, r.stoppedOutcome(ctx) // the tool tells itself how it was stopped
	case ctx.Err() != nil:
		return r.stopped(ctx, call.Tool, out), r.stoppedOutcome(ctx)
	case f.err != nil && errors.Is(f.err, tool.ErrArguments):
		return withError(out, call.Tool+": bad arguments", f.err.Error()), outcomeBadArguments
	case f.err != nil:
		return withError(out, call.Tool+": failed", f.err.Error()), outcomeFailed
	}
	return out, outcomeFailed
}

// watchLate logs when an abandoned call returns after all. It is not waited for: a
// tool that ignores its context may never return.
func (r *run) watchLate(call Call, f failure) {
	r.log.Warn().Str("tool", call.Tool).Msg("tool call abandoned")
	log := r.log
	go func() {
		<-f.late
		log.Warn().Str("tool", call.Tool).Msg("abandoned tool call returned; its output is dropped")
	}()
}

// stopped is the output of a call that its context ended, beside what the tool had
// until then.
func (r *run) stopped(ctx context.Context, name string, partial session.Output) session.Output {
	cause := context.Cause(ctx)
	if errors.Is(cause, errToolTimeout) {
		return withError(partial, fmt.Sprintf("%s: timed out after %s", name, r.engine.ToolTimeout),
			fmt.Sprintf("The call did not finish within %s and was stopped. What it had done until then is unknown.", r.engine.ToolTimeout))
	}
	why := "the turn was stopped"
	if end, ok := errors.AsType[*End](cause); ok {
		why = end.Why.Detail
	}
	return withError(partial, name+": cancelled", "The call was cancelled: "+why+". What it had done until then is unknown.")
}

func (r *run) stoppedOutcome(ctx context.Context) outcome {
	cause := context.Cause(ctx)
	if errors.Is(cause, errToolTimeout) {
		return outcomeTimeout
	}
	if end, ok := errors.AsType[*End](cause); ok && end.State == session.TurnInterrupted {
		return outcomeInterrupted
	}
	return outcomeCancelled
}

// withError makes an error result of what a tool had and what went wrong. The error
// comes first, so that a cut does not take it.
func withError(out session.Output, summary, text string) session.Output {
	out.Failed = true
	if out.Summary == "" {
		out.Summary = summary
	}
	if out.Content != nil && *out.Content != "" {
		text += "\n\n" + *out.Content
		if out.Full != "" {
			out.Full = text[:len(text)-len(*out.Content)] + out.Full
		}
	}
	out.Content = &text
	return out
}

func (r *run) unknownTool(name string) session.Output {
	names := r.engine.Tools.Names()
	content := fmt.Sprintf("There is no tool named %q. The tools are: %s.", name, strings.Join(names, ", "))
	if len(names) == 0 {
		content = fmt.Sprintf("There is no tool named %q, and no other tool either.", name)
	}
	return failedOutput(fmt.Sprintf("%s: unknown tool", name), content)
}

// describeRaw shows the model the beginning of what it wrote, as text in a result.
func describeRaw(raw string) string {
	const shown = 256
	if len(raw) <= shown {
		return fmt.Sprintf("They were: %q", raw)
	}
	return fmt.Sprintf("They began: %q (%d bytes)", firstBytes(raw, shown), len(raw))
}

// firstBytes is the longest prefix of whole runes within n bytes of valid text.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], ""))
}

func (e *Engine) logPanic(call Call, where string, f failure) {
	e.Log.Error().Str("session", string(call.Session)).Str("turn", string(call.Turn)).Str("tool", call.Tool).
		Str("where", where).Interface("panic", fmt.Sprint(f.panicked)).Bytes("stack", f.stack).Msg("panic contained")
}
