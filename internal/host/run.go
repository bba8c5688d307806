package host

import (
	"context"
	"errors"
	"time"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// startRetryMax is the longest wait between two tries to store that a queued turn
// has started.
const startRetryMax = 5 * time.Second

// run starts the goroutine of a started turn. Its mu is held.
func (l *live) run(t session.Turn, resumed bool) {
	h := l.host
	ctx, cancel := context.WithCancelCause(h.ctx)
	project := h.project(l.project)
	if resumed && project.InterruptOnRestart {
		cancel(worker.ErrServerKilled)
	}
	r := &running{turn: t, cancel: cancel, ended: make(chan struct{}), refused: make(chan struct{})}
	r.asking, r.yield = context.WithCancelCause(ctx)
	l.running = r
	l.sign()
	l.stallAfter.Store(project.StallAfter.Microseconds())
	h.hold(l)
	h.turns.Go(func() {
		defer h.release(l)
		defer cancel(nil)
		_, err := project.Engine.Run(ctx, h.abandon, &sink{l, r}, l.history, t, resumed)
		l.finish(r, err)
	})
}

// hold adds a reference to a session that is held already.
func (h *Host) hold(l *live) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.refs++
}

// finish takes up the next turn, or gives the session up when its turn was lost.
func (l *live) finish(r *running, err error) {
	if err == nil && l.host.TurnEnded != nil {
		l.host.TurnEnded(l.id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.host.Log.Error().Err(err).Str("session", string(l.id)).Str("turn", string(r.turn.ID)).Msg("turn given up")
		l.giveUp(r)
		return
	}
	if l.running == nil {
		l.startNext()
	}
}

// giveUp drops a session from memory whose turn could not be brought to its end. Who
// uses the session next takes it over anew, and takes that turn up again.
func (l *live) giveUp(r *running) {
	if l.running == r {
		close(r.ended)
	}
	l.running = nil
	l.stallAfter.Store(0)
	l.lose()
}

// startNext starts the first queued turn, when there is one. When that cannot be
// stored it is tried again later; until then the turn stays queued. Its mu is held.
func (l *live) startNext() {
	if len(l.queue) == 0 || l.gone != nil || l.host.isStopping() {
		return
	}
	t := l.queue[0]
	l.queue = l.queue[1:]
	_, err := l.start(context.Background(), t, nil, nil)
	switch {
	case err == nil:
	case errors.Is(err, session.ErrStorage):
		l.queue = append([]session.Turn{t}, l.queue...)
		l.startLater()
	default:
		l.host.Log.Error().Err(err).Str("session", string(l.id)).Str("turn", string(t.ID)).Msg("queued turn cannot be started")
		l.lose()
	}
}

func (l *live) startLater() {
	h := l.host
	h.Log.Error().Str("session", string(l.id)).Msg("the start of a queued turn cannot be stored; trying again")
	h.hold(l)
	h.turns.Go(func() {
		defer h.release(l)
		timer := time.NewTimer(startRetryMax)
		defer timer.Stop()
		select {
		case <-h.ctx.Done():
			return
		case <-timer.C:
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.running == nil {
			l.startNext()
		}
	})
}

// recoverSession takes over a session with unfinished turns.
func (h *Host) recoverSession(ctx context.Context, id session.ID) error {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer h.release(l)
	if !h.begin() {
		return session.ErrStopping
	}
	defer h.turns.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own(ctx)
}

// sink is where a running turn puts its events.
type sink struct {
	live *live
	run  *running
}

// Commit stores and publishes. With a turn's terminal event the session is idle, so
// that whoever has read that event finds it so.
func (s *sink) Commit(ctx context.Context, events []session.Event) error {
	l := s.live
	last := &events[len(events)-1]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != s.run {
		return session.ErrStale
	}
	batch := session.Batch{Lease: l.lease, Events: events}
	if err := l.host.Store.Append(ctx, &batch); err != nil {
		if last.Type.Terminal() && errors.Is(err, session.ErrStorage) {
			s.run.refusing.Do(func() { close(s.run.refused) })
		}
		return err
	}
	l.sign()
	if last.Type.Terminal() {
		l.running = nil
		l.stallAfter.Store(0)
		l.host.metrics.ended(*last.Turn)
	}
	l.topic.Publish(batch.Events)
	if last.Type.Terminal() {
		close(s.run.ended)
	}
	return nil
}

// Emit publishes.
func (s *sink) Emit(ev session.Event) {
	s.live.lastSign.Store(int64(ev.At))
	s.live.topic.Emit(ev)
}
