package worker

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	// maxEmptyAnswers is how often a model may answer nothing in one step.
	maxEmptyAnswers = 3
	// maxShrinks is how often the request of one step is halved because it was
	// refused as too large: enough from 32 MB to 8 KB.
	maxShrinks = 12
	// shownWait is the shortest wait for a turn in the budget that is told.
	shownWait = 100 * time.Millisecond
	// maxSilentWait is the longest time in which a request that waits tells nothing.
	maxSilentWait = 5 * time.Minute
)

var errEmpty = &llm.Error{Class: llm.ClassRetry, Err: errors.New("the model answered nothing")}

// asking is the way of one step to its answer.
type asking struct {
	compacted       bool // old messages have been summed up, or need not be
	failed, shrinks int  // attempts
}

// ask asks the model for one answer, as often as its errors allow. The live answer
// is then complete. A request that is doomed is never sent again unchanged: one that
// was too large becomes smaller, until nothing more can be left out of it.
func (r *run) ask(ctx context.Context) (llm.Answer, error) {
	r.attempt = 1
	var a asking
	if err := r.prepare(ctx, &a); err != nil {
		return llm.Answer{}, err
	}
	for {
		whole, err := r.askOnce(ctx)
		if err == nil {
			r.engine.Metrics.answered(r.engine.Provider.Name(), whole.Usage)
			r.history.Gauge.learn(r.sent.measure, whole.Usage)
			return whole, nil
		}
		if ctx.Err() != nil {
			r.engine.Metrics.step(stepCancelled)
			return llm.Answer{}, context.Cause(ctx)
		}
		refused, ok := errors.AsType[*llm.Error](err)
		if !ok || !r.again(&a, refused) {
			r.engine.Metrics.step(stepFailed)
			return llm.Answer{}, r.doomed(err)
		}
		r.engine.Metrics.step(stepRetried)
		if err := r.retry(ctx, refused); err != nil {
			return llm.Answer{}, err
		}
		r.attempt++
		if refused.Class == llm.ClassShrink {
			if err := r.prepare(ctx, &a); err != nil {
				return llm.Answer{}, err
			}
		}
	}
}

// prepare makes the next request, and first a summary of old messages where the
// request needs one; of these at most one in a step.
func (r *run) prepare(ctx context.Context, a *asking) (err error) {
	next, compactTo := r.engine.fit(r.history, a.compacted)
	if compactTo > 0 {
		a.compacted = true
		if err := r.compact(ctx, compactTo); err != nil {
			return err
		}
		next, _ = r.engine.fit(r.history, true)
	}
	r.sent = next
	if !next.fits {
		return r.engine.checkNewest(r.history)
	}
	return nil
}

// again reports whether there is another attempt after one that was refused. One
// that was too large has another only when less can be sent.
func (r *run) again(a *asking, refused *llm.Error) bool {
	switch refused.Class {
	case llm.ClassRetry:
		a.failed++
		return a.failed < r.maxAttempts(refused)
	case llm.ClassShrink:
		a.shrinks++
		r.history.Gauge.refuse(r.sent.bytes)
		smaller, compactTo := r.engine.fit(r.history, a.compacted)
		return a.shrinks <= maxShrinks && (compactTo > 0 || smaller.bytes < r.sent.bytes)
	}
	return false
}

func (r *run) maxAttempts(refused *llm.Error) int {
	if refused == errEmpty {
		return min(r.engine.MaxAttempts, maxEmptyAnswers)
	}
	return r.engine.MaxAttempts
}

// doomed says why a step has failed.
func (r *run) doomed(err error) error {
	if refused, ok := errors.AsType[*llm.Error](err); ok && refused.Class == llm.ClassShrink {
		return r.engine.tooLarge(r.history, err)
	}
	return err
}

// askOnce sends the request once, when it is its turn. An answer that says nothing
// is an error here.
func (r *run) askOnce(ctx context.Context) (llm.Answer, error) {
	claim, err := r.takeTurn(ctx, r.engine.Budget, r.sent.tokens)
	if err != nil {
		return llm.Answer{}, err
	}
	r.live = r.newAnswer()
	started := time.Now()
	var first sync.Once
	whole, err := r.engine.Provider.Ask(ctx, r.sent.Request, func(d llm.Delta) {
		r.live.emit(d)
		first.Do(func() {
			r.engine.Metrics.firstToken(r.engine.Provider.Name(), time.Since(started))
			runtime.Gosched() // readers send it before the rest of the answer is worked on
		})
	})
	whole.Usage = whole.Usage.Bounded()
	claim.Settle(whole.Usage.InputTokens, err)
	switch {
	case err != nil:
		return whole, err
	case r.live.blank() && whole.Stop == llm.StopRefusal:
		return whole, &turnError{session.CodeEmptyResponse, "the model refused to answer and said nothing"}
	case r.live.blank():
		return whole, errEmpty
	}
	return whole, nil
}

// takeTurn takes the tokens of one request out of a budget, and waits until it may
// be sent. Whoever sends it settles the claim.
func (r *run) takeTurn(ctx context.Context, b *llm.Budget, tokens int64) (*llm.Claim, error) {
	claim := b.Claim(tokens)
	for wait := claim.Wait(); wait > 0; wait = claim.Wait() {
		part := min(wait, maxSilentWait)
		err := error(nil)
		if wait >= shownWait {
			err = r.commit(ctx, r.waitEvent(wait))
		}
		if err == nil {
			err = pause(ctx, part)
		}
		if err != nil {
			claim.Cancel()
			return nil, err
		}
		r.engine.Metrics.waited(claim.Background(), part)
	}
	return claim, nil
}

// retry waits before the next attempt and voids what this one has streamed. What was
// too large need not wait: it comes back smaller.
func (r *run) retry(ctx context.Context, refused *llm.Error) error {
	next, wait := r.attempt+1, time.Duration(0)
	if refused.Class != llm.ClassShrink {
		wait = llm.Backoff(r.attempt, refused.RetryAfter, r.engine.RetryMaxWait)
	}
	reason := firstBytes(session.Clean(refused.Error()), 1024)
	r.log.Warn().Int("attempt", next).Dur("wait", wait).Str("reason", reason).Msg("model request is repeated")
	if err := r.commit(ctx, r.retryEvent(session.EventStepRetrying, next, wait, reason)); err != nil {
		return err
	}
	if err := pause(ctx, wait); err != nil {
		return err
	}
	err := r.commit(ctx, r.retryEvent(session.EventStepRestarted, next, wait, reason))
	r.live = nil
	return err
}

// pause waits. It fails with the context's cause when that ends first.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
