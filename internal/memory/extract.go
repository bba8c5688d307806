package memory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/session"
)

const (
	// maxRecovered is how many sessions the start takes up at once; the others follow.
	maxRecovered = 256
	// stopTimeout bounds how long Stop waits for passes to end.
	stopTimeout = time.Second
)

// Config is what an extractor is made of.
type Config struct {
	Store    Store
	Host     Host
	Projects map[string]Project // those that have memory
	// MaxParallel bounds the passes that run at once.
	MaxParallel int
	// Secrets never leave: they are masked in what a model is sent and in records.
	Secrets []string
	// Backoff is the wait after a first failure; it doubles up to ten minutes, each
	// a half more or less. 0 is one second.
	Backoff time.Duration
	// Staged is called when records of a project were staged; it must not block. May
	// be nil.
	Staged   func(project string)
	Registry prometheus.Registerer
	Log      zerolog.Logger
}

// Extractor reads the histories of sessions past their pointers and stages records.
// It is safe for concurrent use.
type Extractor struct {
	Config
	mask    func(string) string
	gate    *gate
	metrics *metrics
	slots   chan struct{} // one token for each pass that runs

	ctx    context.Context // of all passes; its cause says why they stop
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu       sync.Mutex // guards the fields below, and the wishes of each job
	freed    *sync.Cond // when a job is gone, or all must stop
	stopping bool
	jobs     map[session.ID]*job
}

// NewExtractor makes an extractor. It reads nothing before TurnEnded, Extract,
// Redrive or Recover is called.
func NewExtractor(ctx context.Context, c Config) (*Extractor, error) {
	if c.MaxParallel < 1 {
		return nil, errors.New("memory: no pass may run at all")
	}
	made, succeeded, err := c.Store.LastDeadLetter(ctx)
	if err != nil {
		return nil, err
	}
	x := &Extractor{
		Config: c, mask: newMask(c.Secrets), gate: newGate(made, succeeded),
		slots: make(chan struct{}, c.MaxParallel), jobs: map[session.ID]*job{},
	}
	x.freed = sync.NewCond(&x.mu)
	x.ctx, x.cancel = context.WithCancelCause(context.Background())
	x.metrics = newMetrics(c.Registry, x)
	return x, nil
}

// TurnEnded has a session looked at: when what came after its pointer is enough, it
// is read. TurnEnded does not wait for that.
func (x *Extractor) TurnEnded(id session.ID) {
	if len(x.Projects) > 0 {
		_, _ = x.wish(id, func(*job) {}) // while all stops there is nothing to do
	}
}

// Extract reads what came after a session's pointer now, however little it is, and
// also when a failed pass waits for its next try. It does not wait for the outcome.
func (x *Extractor) Extract(ctx context.Context, id session.ID) (session.ExtractStart, error) {
	b, err := x.Store.Backlog(ctx, id)
	if err != nil {
		return "", err
	}
	if _, on := x.Projects[b.Project]; !on {
		return session.ExtractOff, nil
	}
	if b.Items == 0 {
		return session.ExtractNothing, nil
	}
	return x.wish(id, func(j *job) { j.asked = true })
}

// Redrive reads what a dead letter has set aside once more. It does not wait for the
// outcome: the letter is gone when all of it was read. It fails with
// session.ErrNotFound when there is no such letter.
func (x *Extractor) Redrive(ctx context.Context, id session.DeadLetterID) (session.ExtractStart, error) {
	letter, err := x.Store.DeadLetter(ctx, id)
	if err != nil {
		return "", err
	}
	if _, on := x.Projects[letter.Project]; !on {
		return session.ExtractOff, nil
	}
	return x.wish(letter.SessionID, func(j *job) { j.addLetter(id) })
}

// Recover takes up, in the background, the sessions whose backlog an earlier process
// has left.
func (x *Extractor) Recover(ctx context.Context) error {
	var all []session.ID
	for name, p := range x.Projects {
		ids, err := x.Store.Backlogs(ctx, name, int64(p.Settings.ExtractThresholdBytes))
		if err != nil {
			return err
		}
		all = append(all, ids...)
	}
	if len(all) == 0 {
		return nil
	}
	x.Log.Info().Int("sessions", len(all)).Msg("backlogs of memory are taken up")
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.stopping {
		x.work.Go(func() { x.takeUp(all) })
	}
	return nil
}

// takeUp begins with some sessions and goes on as others are done.
func (x *Extractor) takeUp(ids []session.ID) {
	for _, id := range ids {
		x.mu.Lock()
		for len(x.jobs) >= maxRecovered && !x.stopping {
			x.freed.Wait()
		}
		x.mu.Unlock()
		x.TurnEnded(id)
	}
}

// Held is how many sessions cannot go forward because a dead letter was made a short
// time ago and nothing has succeeded since.
func (x *Extractor) Held() int { return x.gate.holds() }

// Stop ends all passes, whose pointers hold, and waits until they have, one second
// at most.
func (x *Extractor) Stop() {
	x.mu.Lock()
	x.stopping = true
	x.freed.Broadcast()
	x.mu.Unlock()
	x.cancel(errStopping)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.work.Wait()
	}()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		x.Log.Error().Msg("a pass of memory did not end in time; its items are read again after the next start")
	}
}
