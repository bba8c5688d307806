// Package host keeps the sessions that are alive: it runs one turn at a time in
// each, queues the others, cancels, recovers what a crash left, and stops. Each
// session has one owner, and every write of that owner carries its generation.
package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// Log is the durable log of sessions.
type Log interface {
	Append(ctx context.Context, b *session.Batch) error
	History(ctx context.Context, id session.ID) ([]session.Item, error)
	Steps(ctx context.Context, id session.ID, limit int) ([]session.Step, error) // the newest first
	TakeOver(ctx context.Context, id session.ID) (session.Lease, session.Session, error)
}

// Sessions makes and deletes sessions.
type Sessions interface {
	CreateSession(ctx context.Context, s session.Session, events ...session.Event) (session.Lease, error)
	Session(ctx context.Context, id session.ID) (session.Session, error)
	Owned(ctx context.Context, id session.ID) (s session.Session, generation int64, err error)
	DeleteSession(ctx context.Context, id session.ID) error
}

// Turns finds turns.
type Turns interface {
	Turn(ctx context.Context, id session.ID, turn session.TurnID) (session.Turn, error)
	OpenTurns(ctx context.Context, id session.ID) ([]session.Turn, error)
	Unfinished(ctx context.Context) ([]session.ID, error)
}

// Submissions finds turns by how they were submitted.
type Submissions interface {
	SubmitKey(ctx context.Context, id session.ID, key string) (session.SubmitKey, bool, error)
	QueuedSeq(ctx context.Context, id session.ID, turn session.TurnID) (int64, error)
}

// Store is all of it.
type Store interface {
	Log
	Sessions
	Turns
	Submissions
}

// Topic carries the events of one session to whoever reads its stream.
type Topic interface {
	Publish(events []session.Event)
	Emit(ev session.Event)
	Subscribe(c session.Cursor) Subscription
	Close()
}

// Subscription is one reader's place in a stream. It is an alias of an unnamed type,
// so that who passes it on need not know this package.
type Subscription = interface {
	// Next waits for the next events. It returns io.EOF when the stream is over and
	// session.ErrSlow when the reader lags too far. The slice is valid until the
	// next call.
	Next(ctx context.Context) ([]session.Event, error)
	Close()
}

// Project is how turns of a project are run.
type Project struct {
	Engine             *worker.Engine
	StallAfter         time.Duration // silence after which a running turn counts as wedged
	InterruptOnRestart bool          // instead of resuming
	// Recall tells what a session is told beside the instructions; it answers the same
	// for as long as the session lives. Nil for nothing.
	Recall func(ctx context.Context, id session.ID) (string, error)
}

// Config is what a host is made of.
type Config struct {
	Store    Store
	NewTopic func(id session.ID, lastSeq int64) Topic
	Projects map[string]Project
	// DefaultProject is that of sessions which name none; empty when there is none.
	DefaultProject string
	// Orphan runs turns of sessions whose project is not in Projects any more. It
	// fails them in words.
	Orphan Project
	// TurnEnded is called after each terminal commit; it must not block. May be nil.
	TurnEnded func(id session.ID)
	// MemoryLag tells what extraction has before it in a session. May be nil.
	MemoryLag func(ctx context.Context, id session.ID) (session.MemoryLag, error)
	Registry  prometheus.Registerer
	Log       zerolog.Logger
}

// Host owns the live sessions. It is safe for concurrent use.
type Host struct {
	Config
	metrics *metrics

	turns   sync.WaitGroup  // goroutines that run turns
	ctx     context.Context // of all turns; its cause says why they stop
	cancel  context.CancelCauseFunc
	abandon context.Context // ends when the disk is no longer waited for
	giveUp  context.CancelFunc

	mu       sync.Mutex // guards the fields below, and refs and idle of each live session
	stopping bool
	live     map[session.ID]*live
	idle     idleList
}

// New makes a host. It owns nothing until sessions are used or Recover is called.
func New(c Config) *Host {
	h := &Host{Config: c, live: map[session.ID]*live{}}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.abandon, h.giveUp = context.WithCancel(context.Background())
	h.metrics = newMetrics(c.Registry, h.countWedged)
	return h
}

// Create makes a session in a project. An empty project means the default one.
func (h *Host) Create(ctx context.Context, project, title string, metadata map[string]string) (session.Session, error) {
	s, err := h.newSession(project, title, metadata)
	if err != nil {
		return session.Session{}, err
	}
	lease, err := h.Store.CreateSession(ctx, s)
	if err != nil {
		return session.Session{}, err
	}
	h.adopt(s, lease)
	return s, nil
}

// newSession is a session that is not stored yet.
func (h *Host) newSession(project, title string, metadata map[string]string) (session.Session, error) {
	project, err := h.chooseProject(project)
	if err != nil {
		return session.Session{}, err
	}
	if h.isStopping() {
		return session.Session{}, session.ErrStopping
	}
	if metadata == nil {
		metadata = map[string]string{}
	}
	now := session.Now()
	return session.Session{ID: session.NewID(), Project: project, Title: title, Metadata: metadata, State: session.StateIdle, CreatedAt: now, UpdatedAt: now}, nil
}

func (h *Host) chooseProject(name string) (string, error) {
	if name == "" {
		name = h.DefaultProject
	}
	if name == "" {
		return "", session.ErrProjectRequired
	}
	if _, ok := h.Projects[name]; !ok {
		return "", session.ErrUnknownProject
	}
	return name, nil
}

func (h *Host) project(name string) Project {
	if p, ok := h.Projects[name]; ok {
		return p
	}
	return h.Orphan
}

// Subscribe reads a session's stream from a cursor on.
func (h *Host) Subscribe(ctx context.Context, id session.ID, c session.Cursor) (Subscription, error) {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	return &subscription{Subscription: l.topic.Subscribe(c), release: sync.OnceFunc(func() { h.release(l) })}, nil
}

// SubmitAndFollow submits a turn like Submit and reads the events of
// that turn alone, from its turn.queued on; the subscription is over after the
// turn's terminal event.
func (h *Host) SubmitAndFollow(ctx context.Context, id session.ID, submission session.Submission, key *session.SubmitKey) (t session.Turn, replayed bool, sub Subscription, err error) {
	// Who is there before the turn is stored need not read it back from the log.
	whole, err := h.Subscribe(ctx, id, session.Cursor{Offset: -1, Live: true})
	if err != nil {
		return session.Turn{}, false, nil, err
	}
	t, replayed, err = h.Submit(ctx, id, submission, key)
	if err == nil && !replayed {
		return t, false, &turnSubscription{Subscription: whole, turn: t.ID}, nil
	}
	whole.Close()
	if err == nil {
		sub, err = h.SubscribeTurn(ctx, id, t.ID)
	}
	return t, replayed, sub, err
}

// SubscribeTurn reads the events of one turn alone, from its turn.queued on; the
// subscription is over after the turn's terminal event.
func (h *Host) SubscribeTurn(ctx context.Context, id session.ID, turn session.TurnID) (Subscription, error) {
	queuedSeq, err := h.Store.QueuedSeq(ctx, id, turn)
	if err != nil {
		return nil, err
	}
	whole, err := h.Subscribe(ctx, id, session.Cursor{Seq: queuedSeq - 1, Offset: -1})
	if err != nil {
		return nil, err
	}
	return &turnSubscription{Subscription: whole, turn: turn}, nil
}

// begin reports whether turns may still start, and if so keeps Stop waiting until
// h.turns.Done is called.
func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopping {
		h.turns.Add(1)
	}
	return !h.stopping
}

func (h *Host) isStopping() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stopping
}

// Recover takes over the sessions that have an unfinished turn and goes on with
// them, as their project says. It returns when all of them are running, queued or
// ended again; one that fails is logged and reported, the others go on.
func (h *Host) Recover(ctx context.Context) error {
	ids, err := h.Store.Unfinished(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range ids {
		if err := h.recoverSession(ctx, id); err != nil {
			h.Log.Error().Err(err).Str("session", string(id)).Msg("session cannot be recovered")
			failed = append(failed, err)
		}
	}
	if len(ids) > 0 {
		h.Log.Info().Int("sessions", len(ids)-len(failed)).Msg("unfinished turns taken up again")
	}
	return errors.Join(failed...)
}

// Stop refuses new turns, lets running ones go on for drain, then ends them as
// interrupted; queued turns stay queued for the next start. Streams are closed. It
// returns within drain and 4 s.
func (h *Host) Stop(drain time.Duration) {
	h.mu.Lock()
	h.stopping = true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.turns.Wait()
	}()
	if !waitFor(done, drain) {
		h.cancel(worker.ErrServerStopping)
		if !waitFor(done, 3*time.Second) {
			h.giveUp()
			if !waitFor(done, time.Second) {
				h.Log.Error().Msg("a turn did not end in time; it is recovered at the next start")
			}
		}
	}
	h.cancel(worker.ErrServerStopping)
	h.giveUp()
	h.closeStreams()
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
