package host

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// maxQueued is how many turns may wait in one session.
const maxQueued = 100

// Submit accepts a turn. When it returns without an error the turn is on disk: it
// runs at once, or when those before it have ended. With a key that was used before
// for the same body it returns the turn made then, as it is now, and replayed.
//
// A turn of mode interrupt ends the running one at its next safe point. One of mode
// steer enters the running turn with its next step and is completed by that; when
// the running turn ends before, it runs as any other, as the next.
func (h *Host) Submit(ctx context.Context, id session.ID, sub session.Submission, key *session.SubmitKey) (t session.Turn, replayed bool, err error) {
	t, replayed, err = h.submit(ctx, id, sub, key)
	if errors.Is(err, session.ErrStale) { // another owner has had it meanwhile: it is taken back, once
		t, replayed, err = h.submit(ctx, id, sub, key)
	}
	runtime.Gosched() // the model is asked before the submitter, who may write to a network, goes on
	return t, replayed, err
}

func (h *Host) submit(ctx context.Context, id session.ID, sub session.Submission, key *session.SubmitKey) (t session.Turn, replayed bool, err error) {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return session.Turn{}, false, err
	}
	defer h.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		return session.Turn{}, false, l.gone
	}
	if key != nil {
		known, found, err := h.Store.SubmitKey(ctx, id, key.Key)
		switch {
		case err != nil:
			return session.Turn{}, false, err
		case found && known.BodyHash != key.BodyHash:
			return session.Turn{}, false, session.ErrKeyReused
		case found:
			t, err := h.Store.Turn(ctx, id, known.TurnID)
			return t, true, err
		}
	}
	sub.Input = session.Clean(sub.Input)
	t, err = l.submit(ctx, sub, key)
	return t, false, err
}

// submit stores a new turn and starts it when nothing runs. Its mu is held.
func (l *live) submit(ctx context.Context, sub session.Submission, key *session.SubmitKey) (session.Turn, error) {
	if !l.host.begin() {
		return session.Turn{}, session.ErrStopping
	}
	defer l.host.turns.Done()
	if err := l.host.project(l.project).Engine.CheckInput(sub.Input); err != nil {
		return session.Turn{}, err
	}
	if err := l.own(ctx); err != nil {
		return session.Turn{}, err
	}
	if err := l.admit(sub); err != nil {
		return session.Turn{}, err
	}
	t := session.Turn{ID: session.NewTurnID(), SessionID: l.id, State: session.TurnQueued, Input: sub.Input, Mode: sub.Mode, ExpectedTurn: sub.ExpectedTurn, CreatedAt: session.Now()}
	if key != nil {
		key = &session.SubmitKey{Key: key.Key, BodyHash: key.BodyHash, TurnID: t.ID}
	}
	queued := t
	events := []session.Event{turnEvent(session.EventTurnQueued, &queued)}
	if l.running == nil && len(l.queue) == 0 {
		return l.start(ctx, t, key, events)
	}
	if err := l.commit(ctx, key, events); err != nil {
		return session.Turn{}, err
	}
	l.enqueue(t)
	if t.Mode == session.ModeInterrupt && l.running != nil {
		l.running.yield(worker.ErrSuperseded)
	}
	return t, nil
}

// start stores that a turn has started, after what it is given, and runs it.
func (l *live) start(ctx context.Context, t session.Turn, key *session.SubmitKey, events []session.Event) (session.Turn, error) {
	t.State, t.StartedAt = session.TurnRunning, session.Now()
	started := t
	item := userItem(t.ID, &t, l.nextN(), t.StartedAt)
	events = append(events, turnEvent(session.EventTurnStarted, &started),
		session.Event{Type: session.EventItem, SessionID: l.id, TurnID: t.ID, At: t.StartedAt, Item: &item})
	if err := l.commit(ctx, key, events); err != nil {
		return session.Turn{}, err
	}
	l.history.Items = append(l.history.Items, item)
	l.run(t, false)
	return t, nil
}

func (l *live) nextN() int64 {
	if items := l.history.Items; len(items) > 0 {
		return items[len(items)-1].N + 1
	}
	return 1
}

func turnEvent(kind session.EventType, t *session.Turn) session.Event {
	at := t.CreatedAt
	switch {
	case kind.Terminal():
		at = t.EndedAt
	case kind == session.EventTurnStarted:
		at = t.StartedAt
	}
	return session.Event{Type: kind, SessionID: t.SessionID, TurnID: t.ID, At: at, Turn: t}
}

// Cancel ends a turn and returns it in its final form, after the commit of that. A
// queued turn ends at once and leaves no item. An ended one stays as it is.
func (h *Host) Cancel(ctx context.Context, id session.ID, turn session.TurnID) (session.Turn, error) {
	t, err := h.cancelTurn(ctx, id, turn)
	if errors.Is(err, session.ErrStale) { // as in Submit
		t, err = h.cancelTurn(ctx, id, turn)
	}
	return t, err
}

func (h *Host) cancelTurn(ctx context.Context, id session.ID, turn session.TurnID) (session.Turn, error) {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return session.Turn{}, err
	}
	defer h.release(l)
	l.mu.Lock()
	if l.gone != nil {
		defer l.mu.Unlock()
		return session.Turn{}, l.gone
	}
	if r := l.running; r != nil && r.turn.ID == turn {
		l.mu.Unlock()
		return h.awaitEnd(ctx, r, worker.ErrCancelled)
	}
	i := slices.IndexFunc(l.queue, func(t session.Turn) bool { return t.ID == turn })
	if i >= 0 {
		defer l.mu.Unlock()
		return l.withdraw(ctx, i, worker.ErrCancelled)
	}
	l.mu.Unlock()
	return h.Store.Turn(ctx, id, turn)
}

// awaitEnd cancels a running turn and waits until its end is stored, or refused by the
// disk, which is ErrStorage: the turn then ends when there is room.
func (h *Host) awaitEnd(ctx context.Context, r *running, cause *worker.End) (session.Turn, error) {
	r.cancel(cause)
	select {
	case <-r.ended:
		return h.Store.Turn(ctx, r.turn.SessionID, r.turn.ID)
	case <-r.refused:
		return session.Turn{}, session.ErrStorage
	case <-ctx.Done():
		return session.Turn{}, context.Cause(ctx)
	}
}

// withdraw ends a queued turn. Its mu is held.
func (l *live) withdraw(ctx context.Context, i int, cause *worker.End) (session.Turn, error) {
	t := l.queue[i]
	t.State, t.EndedAt, t.Error = cause.State, session.Now(), &cause.Why
	if err := l.commit(ctx, nil, []session.Event{turnEvent(session.TerminalEvent(t.State), &t)}); err != nil {
		return session.Turn{}, err
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	l.host.metrics.ended(t)
	return t, nil
}

// Delete ends what runs in a session and deletes everything of it. Its streams end.
func (h *Host) Delete(ctx context.Context, id session.ID) error {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer h.release(l)
	l.mu.Lock()
	if l.gone != nil {
		defer l.mu.Unlock()
		return l.gone
	}
	l.gone = session.ErrNotFound // from here on nobody else finds it
	running, err := l.running, l.withdrawAll(ctx)
	l.mu.Unlock()
	if running != nil && err == nil {
		_, err = h.awaitEnd(ctx, running, worker.ErrSessionDeleted)
	}
	if err == nil {
		err = h.Store.DeleteSession(ctx, id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if errors.Is(l.gone, session.ErrNotFound) { // it was not lost meanwhile
			l.gone = nil
		}
		return err
	}
	l.topic.Close()
	h.metrics.forget(id)
	return nil
}

// withdrawAll ends all queued turns. Its mu is held.
func (l *live) withdrawAll(ctx context.Context) error {
	for len(l.queue) > 0 {
		if _, err := l.withdraw(ctx, len(l.queue)-1, worker.ErrSessionDeleted); err != nil {
			return err
		}
	}
	return nil
}
