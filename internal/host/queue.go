package host

import (
	"context"
	"slices"

	"loadline/internal/session"
)

// admit refuses a turn for what the session does now. Its mu is held.
func (l *live) admit(s session.Submission) error {
	r := l.running
	switch {
	case r != nil && r.endRefused():
		return session.ErrStorage
	case s.Mode == session.ModeReject && (r != nil || len(l.queue) > 0):
		return session.ErrBusy
	case s.Mode == session.ModeSteer && (r == nil || r.turn.ID != s.ExpectedTurn):
		return session.ErrNotRunning
	case len(l.queue) >= maxQueued:
		return session.ErrQueueFull
	}
	return nil
}

// enqueue puts a turn where it will run: those of mode interrupt first, the newest
// before the others, then those of mode steer whose turn has ended before they could
// enter it, then the rest. The store lists open turns in the same order. The mu is
// held.
func (l *live) enqueue(t session.Turn) {
	at := len(l.queue)
	switch t.Mode {
	case session.ModeInterrupt:
		at = 0
	case session.ModeSteer:
		for at > 0 && l.queue[at-1].Mode != session.ModeInterrupt && l.queue[at-1].Mode != session.ModeSteer {
			at--
		}
	}
	l.queue = slices.Insert(l.queue, at, t)
}

// Asking implements worker.Helm.
func (s *sink) Asking() context.Context { return s.run.asking }

// Enter implements worker.Helm: each turn of mode steer that waits for this one ends
// where its input becomes an item of this one, in one commit. A crash before that
// leaves it queued.
func (s *sink) Enter(ctx context.Context, n int64) ([]session.Item, error) {
	l := s.live
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != s.run {
		return nil, session.ErrStale
	}
	var items []session.Item
	var entered []session.Turn
	var events []session.Event
	for _, t := range l.queue {
		if t.Mode != session.ModeSteer || t.ExpectedTurn != s.run.turn.ID {
			continue
		}
		item := userItem(s.run.turn.ID, &t, n+int64(len(items)), session.Now())
		t.State, t.EndedAt = session.TurnCompleted, item.At
		items, entered = append(items, item), append(entered, t)
		events = append(events, session.Event{Type: session.EventItem, SessionID: l.id, TurnID: item.TurnID, At: item.At, Item: &item},
			turnEvent(session.EventTurnCompleted, &t))
	}
	if len(items) == 0 {
		return nil, nil
	}
	if err := l.host.Store.Append(ctx, &session.Batch{Lease: l.lease, Events: events}); err != nil {
		return nil, err
	}
	l.sign()
	l.topic.Publish(events)
	l.queue = slices.DeleteFunc(l.queue, func(t session.Turn) bool {
		return slices.ContainsFunc(entered, func(e session.Turn) bool { return e.ID == t.ID })
	})
	for _, t := range entered {
		l.host.metrics.ended(t)
	}
	return items, nil
}

// userItem is a turn's input as an item of a turn, usually the same.
func userItem(of session.TurnID, t *session.Turn, n int64, at session.Time) session.Item {
	return session.Item{N: n, SessionID: t.SessionID, TurnID: of, At: at, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: t.Input}}
}
