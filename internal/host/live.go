package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// gaugedSteps is how many of its last steps tell how large the requests of a session
// are.
const gaugedSteps = 64

// live is a session in memory. Whoever uses it holds a reference: a call in
// progress, a subscription, a running turn.
type live struct {
	host *Host
	id   session.ID
	refs int // guarded by the host's mu

	lastSign   atomic.Int64 // Unix microseconds of its last commit or delta
	stallAfter atomic.Int64 // microseconds of silence that its running turn may keep; 0 while none runs

	mu     sync.Mutex // guards the fields below; held through commits, so that events are published in order
	loaded bool
	gone   error // why nobody may use it any more: ErrNotFound when deleted, ErrStale when lost to another owner
	// unfinished says that turns of an earlier owner are still to be taken up.
	unfinished bool
	project    string
	topic      Topic
	lease      session.Lease // zero until this host has taken the session over
	running    *running
	queue      []session.Turn
	history    *worker.History // nil while not loaded
}

// running is a turn that runs now.
type running struct {
	turn   session.Turn
	cancel context.CancelCauseFunc
	asking context.Context // of its requests
	yield  context.CancelCauseFunc
	ended  chan struct{} // closed after the terminal commit, or when the turn is given up

	refused  chan struct{} // closed when the disk has refused its end; that is tried again
	refusing sync.Once     // closes refused
}

// endRefused reports whether the turn has come to an end that the disk refuses.
func (r *running) endRefused() bool {
	select {
	case <-r.refused:
		return true
	default:
		return false
	}
}

// acquire finds or loads a session and holds it. One that was lost to another owner
// is loaded anew.
func (h *Host) acquire(ctx context.Context, id session.ID) (*live, error) {
	for {
		l := h.find(id)
		err := l.load(ctx)
		if err == nil {
			return l, nil
		}
		h.release(l)
		if !errors.Is(err, session.ErrStale) {
			return nil, err
		}
	}
}

// find holds a session, which may not be loaded yet.
func (h *Host) find(id session.ID) *live {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok := h.live[id]
	if !ok {
		l = &live{host: h, id: id}
		h.live[id] = l
	}
	l.refs++
	h.idle.remove(l)
	return l
}

// load reads the session's head, once. Turns that an earlier owner left unfinished are
// taken up before anybody uses the session.
func (l *live) load(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		return l.gone
	}
	if !l.loaded {
		s, err := l.host.Store.Session(ctx, l.id)
		if err != nil {
			return err
		}
		l.fill(s)
	}
	if l.unfinished && l.host.begin() {
		defer l.host.turns.Done()
		return l.own(ctx)
	}
	return nil
}

func (l *live) fill(s session.Session) {
	l.project, l.topic, l.loaded = s.Project, l.host.NewTopic(l.id, s.LastSeq), true
	l.unfinished = hasOpenTurns(s)
}

func hasOpenTurns(s session.Session) bool { return s.State == session.StateRunning || s.Queued > 0 }

// adopt makes a session live that was just created.
func (h *Host) adopt(s session.Session, lease session.Lease) {
	l := &live{host: h, id: s.ID, refs: 1, lease: lease}
	if h.project(s.Project).Recall == nil {
		l.history = &worker.History{} // there is nothing to load
	}
	l.fill(s)
	h.mu.Lock()
	h.live[s.ID] = l
	h.mu.Unlock()
	h.release(l)
}

// release lets go of a session. One that nobody holds stays in memory for a while,
// within bounds.
func (h *Host) release(l *live) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.refs--
	if l.refs > 0 {
		return
	}
	l.mu.Lock()
	keep := l.loaded && l.gone == nil
	bytes := l.historyBytes()
	l.mu.Unlock()
	if !keep {
		h.forget(l)
		return
	}
	h.idle.add(l, bytes)
	for h.idle.over() {
		h.forget(h.idle.oldest())
	}
}

// own takes the session over, once, loads its history, and goes on with the turns
// that an earlier owner left unfinished. Its mu is held.
func (l *live) own(ctx context.Context) error {
	if err := l.takeOver(ctx); err != nil {
		return err
	}
	if l.history == nil {
		history, err := l.host.readHistory(ctx, l.id, l.project)
		if err != nil {
			return err
		}
		l.history = history
	}
	if !l.unfinished {
		return nil
	}
	open, err := l.host.Store.OpenTurns(ctx, l.id)
	if err != nil {
		return err
	}
	l.unfinished = false
	l.takeUp(open)
	return nil
}

// takeOver makes this host the session's owner, once. Its mu is held.
func (l *live) takeOver(ctx context.Context) error {
	if l.lease.Generation != 0 {
		return nil
	}
	lease, s, err := l.host.Store.TakeOver(ctx, l.id)
	if err != nil {
		return err
	}
	l.lease = lease
	l.unfinished = hasOpenTurns(s)
	return nil
}

// takeUp goes on with open turns: the running one first, if there is one, then the
// queued ones. Its mu is held.
func (l *live) takeUp(open []session.Turn) {
	if len(open) > 0 && open[0].State == session.TurnRunning {
		l.queue = open[1:]
		l.run(open[0], true)
		if len(l.queue) > 0 && l.queue[0].Mode == session.ModeInterrupt && l.queue[0].ID > open[0].ID {
			l.running.yield(worker.ErrSuperseded)
		}
		return
	}
	l.queue = open
	l.startNext()
}

// commit stores events and publishes them. Its mu is held.
func (l *live) commit(ctx context.Context, key *session.SubmitKey, events []session.Event) error {
	if err := l.append(ctx, &session.Batch{Lease: l.lease, Events: events, Key: key}, nil); err != nil {
		return err
	}
	l.sign()
	return nil
}

// append stores and publishes a batch, and calls stored, if any, between. When that shows that the session belongs to
// another owner, it is given up here. Its mu is held.
func (l *live) append(ctx context.Context, b *session.Batch, stored func()) error {
	err := l.host.Store.Append(ctx, b)
	switch {
	case err == nil:
		if stored != nil {
			stored()
		}
		l.topic.Publish(b.Events)
	case errors.Is(err, session.ErrStale):
		l.lose()
	}
	return err
}

// lose drops a session from memory that this host does not own, or not surely. Its
// streams end; who uses it next loads it and takes it over anew. Its mu is held.
func (l *live) lose() {
	l.queue, l.gone = nil, session.ErrStale
	l.topic.Close()
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	l.host.forget(l)
}

func (l *live) sign() { l.lastSign.Store(time.Now().UnixMicro()) }

// closeStreams ends all subscriptions.
func (h *Host) closeStreams() {
	for _, l := range h.held() {
		l.mu.Lock()
		if l.topic != nil {
			l.topic.Close()
		}
		l.mu.Unlock()
	}
}

// held lists the sessions that somebody uses now.
func (h *Host) held() []*live {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*live, 0, len(h.live))
	for _, l := range h.live {
		if l.refs > 0 {
			all = append(all, l)
		}
	}
	return all
}
