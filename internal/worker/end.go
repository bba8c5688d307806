package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// endRetryMax is the longest wait between two tries to store how a turn ended.
const endRetryMax = 5 * time.Second

// end stores how the turn ended when something other than its last answer ended it.
func (r *run) end(ctx context.Context, why error) (session.Turn, error) {
	if errors.Is(why, session.ErrStale) || errors.Is(why, session.ErrNotFound) {
		return r.turn, why
	}
	ended := r.turn
	ended.State, ended.Error = endOf(ctx, why)
	ended.EndedAt = session.Now()
	events := slices.Concat(r.unstored, r.closing(), []session.Event{r.turnEvent(&ended)})
	err := r.store(ctx, events, ended)
	return r.turn, err
}

// store commits the end of the turn and keeps trying until it stands: a turn whose
// end is not stored has not ended.
func (r *run) store(ctx context.Context, events []session.Event, ended session.Turn) error {
	ctx = context.WithoutCancel(ctx)
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 50*time.Millisecond, endRetryMax
	_, err := backoff.Retry(r.abandon, func() (struct{}, error) {
		err := r.sink.Commit(ctx, events)
		if err != nil && !errors.Is(err, session.ErrStorage) {
			return struct{}{}, backoff.Permanent(err)
		}
		if err != nil {
			r.log.Error().Err(err).Msg("the end of a turn cannot be stored; trying again")
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return &unstoredEnd{err}
	}
	r.turn = ended
	return nil
}

// unstoredEnd means that the turn has an end that could not be stored.
type unstoredEnd struct{ err error }

func (e *unstoredEnd) Error() string { return "store the end of the turn: " + e.err.Error() }
func (e *unstoredEnd) Unwrap() error { return e.err }

// closing is what must be stored beside the end so that nothing stays open: the
// text streamed so far, and a result for each call without one.
func (r *run) closing() []session.Event {
	var events []session.Event
	if r.live != nil {
		items, voided := r.live.partial()
		if voided {
			events = append(events, r.retryEvent(session.EventStepRestarted, r.attempt, 0, "the turn ended before this answer did"))
		}
		for i := range items {
			events = append(events, r.itemEvent(&items[i]))
		}
		r.history.Items = append(r.history.Items, items...)
	}
	if r.step != nil {
		for i, result := range r.step.results {
			if result == nil {
				out := openOutput(r.step.calls[i].ToolCall, r.step.begun, "The turn ended")
				events = append(events, r.settle(r.step, i, out, outcomeInterrupted))
			}
		}
		r.closeStep()
	}
	return events
}

// turnError ends a turn as failed, with a code of its own.
type turnError struct {
	code   session.ErrorCode
	detail string
}

func (e *turnError) Error() string { return e.detail }

// endOf says how a turn ends that something ended.
func endOf(ctx context.Context, why error) (session.TurnState, *session.TurnError) {
	if end, ok := errors.AsType[*End](why); ok {
		return end.State, &end.Why
	}
	if end, ok := errors.AsType[*End](context.Cause(ctx)); ok {
		return end.State, &end.Why
	}
	failed := func(code session.ErrorCode) (session.TurnState, *session.TurnError) {
		return session.TurnFailed, &session.TurnError{Code: code, Detail: firstBytes(session.Clean(why.Error()), 1024)}
	}
	if own, ok := errors.AsType[*turnError](why); ok {
		return failed(own.code)
	}
	if refused, ok := errors.AsType[*llm.Error](why); ok {
		switch {
		case refused == errEmpty:
			return failed(session.CodeEmptyResponse)
		case refused.Class == llm.ClassShrink:
			return failed(session.CodeRequestTooLarge)
		}
		return failed(session.CodeProviderError)
	}
	if errors.Is(why, session.ErrStorage) {
		return failed(session.CodeStorage)
	}
	return failed(session.CodeInternal)
}
