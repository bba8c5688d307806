package worker

import (
	"context"
	"errors"
	"time"

	"loadline/internal/session"
)

// commit stores events although the turn may have been cancelled meanwhile. What
// the disk refused is kept for the end of the turn.
func (r *run) commit(ctx context.Context, events ...session.Event) error {
	if len(events) == 0 {
		return nil
	}
	err := r.sink.Commit(context.WithoutCancel(ctx), events)
	if errors.Is(err, session.ErrStorage) {
		r.unstoredMu.Lock()
		r.unstored = append(r.unstored, events...)
		r.unstoredMu.Unlock()
	}
	return err
}

func (r *run) newItem(n int64, kind session.ItemKind) session.Item {
	return session.Item{N: n, SessionID: r.turn.SessionID, TurnID: r.turn.ID, At: session.Now(), Kind: kind}
}

func (r *run) event(t session.EventType) session.Event {
	return session.Event{Type: t, SessionID: r.turn.SessionID, TurnID: r.turn.ID, At: session.Now()}
}

func (r *run) itemEvent(item *session.Item) session.Event {
	return session.Event{Type: session.EventItem, SessionID: item.SessionID, TurnID: item.TurnID, At: item.At, Item: item}
}

// answerEvents is an answer as it is stored: its items, then what it cost.
func (r *run) answerEvents(items []session.Item, usage session.Usage) []session.Event {
	events := make([]session.Event, 0, len(items)+2)
	for i := range items {
		events = append(events, r.itemEvent(&items[i]))
	}
	done := r.event(session.EventStepCompleted)
	done.Step = &session.Step{Usage: usage, RequestBytes: r.sent.bytes}
	return append(events, done)
}

func (r *run) turnEvent(t *session.Turn) session.Event {
	ev := r.event(session.TerminalEvent(t.State))
	ev.Turn = t
	return ev
}

func (r *run) retryEvent(t session.EventType, attempt int, wait time.Duration, reason string) session.Event {
	ev := r.event(t)
	ev.Retry = &session.Retry{Attempt: attempt, WaitMS: wait.Milliseconds(), Reason: reason}
	return ev
}

func (r *run) waitEvent(wait time.Duration) session.Event {
	ev := r.event(session.EventStepWaiting)
	ev.Wait = &session.Wait{WaitMS: wait.Milliseconds()}
	return ev
}

func (r *run) emitDelta(d session.Delta) {
	ev := r.event(session.EventItemDelta)
	ev.Delta = &d
	r.sink.Emit(ev)
}

func (r *run) emit(t session.EventType, a session.Activity) {
	ev := r.event(t)
	ev.Activity = &a
	r.sink.Emit(ev)
}
