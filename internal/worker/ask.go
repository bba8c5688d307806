package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// maxEmptyAnswers is how often a model may answer nothing in one step.
const maxEmptyAnswers = 3

var errEmpty = &llm.Error{Class: llm.ClassRetry, Err: errors.New("the model answered nothing")}

// ask asks the model for one answer, as often as its errors allow. The live answer
// is then complete. A request that is doomed is never sent again unchanged.
func (r *run) ask(ctx context.Context) (llm.Answer, error) {
	request := r.engine.request(r.history)
	for r.attempt = 1; ; r.attempt++ {
		whole, err := r.askOnce(ctx, request)
		if err == nil {
			r.engine.Metrics.answered(r.engine.Provider.Name(), whole.Usage)
			return whole, nil
		}
		if ctx.Err() != nil {
			r.engine.Metrics.step(stepCancelled)
			return llm.Answer{}, context.Cause(ctx)
		}
		refused, ok := errors.AsType[*llm.Error](err)
		if !ok || refused.Class != llm.ClassRetry || r.attempt >= r.maxAttempts(refused) {
			r.engine.Metrics.step(stepFailed)
			return llm.Answer{}, err
		}
		r.engine.Metrics.step(stepRetried)
		if err := r.retry(ctx, refused); err != nil {
			return llm.Answer{}, err
		}
	}
}

func (r *run) maxAttempts(refused *llm.Error) int {
	if refused == errEmpty {
		return min(r.engine.MaxAttempts, maxEmptyAnswers)
	}
	return r.engine.MaxAttempts
}

// askOnce sends the request once. An answer that says nothing is an error here.
func (r *run) askOnce(ctx context.Context, request llm.Request) (llm.Answer, error) {
	r.live = r.newAnswer()
	started := time.Now()
	var first sync.Once
	whole, err := r.engine.Provider.Ask(ctx, request, func(d llm.Delta) {
		first.Do(func() { r.engine.Metrics.firstToken(r.engine.Provider.Name(), time.Since(started)) })
		r.live.emit(d)
	})
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

// retry waits before the next attempt and voids what this one has streamed.
func (r *run) retry(ctx context.Context, refused *llm.Error) error {
	next := r.attempt + 1
	wait := llm.Backoff(r.attempt, refused.RetryAfter, r.engine.RetryMaxWait)
	reason := firstBytes(session.Clean(refused.Error()), 1024)
	r.log.Warn().Int("attempt", next).Dur("wait", wait).Str("reason", reason).Msg("model request is repeated")
	if err := r.commit(ctx, r.retryEvent(session.EventStepRetrying, next, wait, reason)); err != nil {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	err := r.commit(ctx, r.retryEvent(session.EventStepRestarted, next, wait, reason))
	r.live = nil
	return err
}
