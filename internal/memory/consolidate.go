package memory

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/session"
)

const (
	// maxFolded bounds the records that one pass of consolidation is given.
	maxFolded = 100
	// maxFoldedBytes bounds their texts; the first of them is taken whatever its size.
	maxFoldedBytes = 128 << 10
	// foldRetryMax is the longest wait between two passes of which the first failed.
	foldRetryMax = time.Hour
)

// Documents is what consolidation reads and writes.
type Documents interface {
	// Document is a version of a document; 0 is the newest.
	Document(ctx context.Context, project string, name session.DocumentName, version int64) (session.Document, error)
	// Consolidate stores all of it or nothing. It fails with session.ErrConflict when
	// memory was changed meanwhile.
	Consolidate(ctx context.Context, done session.Consolidation) error
}

// OpenRecords are those that wait for consolidation.
type OpenRecords interface {
	OpenRecords(ctx context.Context, project string, after session.RecordID, limit int) ([]session.Record, error)
	OpenRecordsTotal(ctx context.Context, project string) (count, bytes int64, err error)
}

// ConsolidatorConfig is what a consolidator is made of.
type ConsolidatorConfig struct {
	Store interface {
		Documents
		OpenRecords
	}
	Projects map[string]Project // those that have memory
	// MaxParallel bounds the projects that are worked on at once.
	MaxParallel int
	// Secrets never get into documents.
	Secrets []string
	// Backoff is the wait after a first failure; it doubles up to an hour, each a half
	// more or less. 0 is ten seconds.
	Backoff  time.Duration
	Registry prometheus.Registerer
	Log      zerolog.Logger
}

// Consolidator folds the records of projects into their documents, one pass at a time
// in each. It is safe for concurrent use.
type Consolidator struct {
	ConsolidatorConfig
	mask    func(string) string
	metrics *foldMetrics
	slots   chan struct{} // one token for each pass that runs

	ctx    context.Context // of all passes; its cause says why they stop
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	stopping bool
	looking  map[string]bool // projects with a goroutine; true: it is to look once more
}

// NewConsolidator makes a consolidator. It does nothing before Staged is called.
func NewConsolidator(c ConsolidatorConfig) *Consolidator {
	if c.Backoff == 0 {
		c.Backoff = 10 * time.Second
	}
	k := &Consolidator{
		ConsolidatorConfig: c, mask: newMask(c.Secrets), metrics: newFoldMetrics(c.Registry),
		slots: make(chan struct{}, max(1, c.MaxParallel)), looking: map[string]bool{},
	}
	k.ctx, k.cancel = context.WithCancelCause(context.Background())
	return k
}

// Staged has a project looked at: when enough of its records are open they are
// consolidated. Staged does not wait for that. A project without memory is ignored.
func (k *Consolidator) Staged(project string) {
	p, on := k.Projects[project]
	k.mu.Lock()
	defer k.mu.Unlock()
	if !on || k.stopping {
		return
	}
	if _, running := k.looking[project]; running {
		k.looking[project] = true
		return
	}
	k.looking[project] = false
	k.work.Go(func() { k.keepFolding(project, &p) })
}

// Recover has all projects looked at.
func (k *Consolidator) Recover() {
	for project := range k.Projects {
		k.Staged(project)
	}
}

// Stop ends all passes, which change nothing then, and waits until they have, one
// second at most.
func (k *Consolidator) Stop() {
	k.mu.Lock()
	k.stopping = true
	k.mu.Unlock()
	k.cancel(errStopping)
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.work.Wait()
	}()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		k.Log.Error().Msg("a consolidation did not end in time; its records are folded after the next start")
	}
}

// keepFolding folds until a project has too few open records, and tries again after
// failures.
func (k *Consolidator) keepFolding(project string, p *Project) {
	f := &folder{consolidator: k, name: project, project: p}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.Multiplier, wait.MaxInterval = k.Backoff, 2, foldRetryMax
	for {
		err := f.foldAll(k.ctx, wait.Reset)
		if k.ctx.Err() != nil {
			return
		}
		if err != nil {
			pause := wait.NextBackOff()
			k.Log.Warn().Err(err).Str("project", project).Dur("wait", pause).Msg("consolidation failed; nothing was changed")
			if !k.sleep(pause) {
				return
			}
			continue
		}
		if !k.lookAgain(project) {
			return
		}
	}
}

// lookAgain reports whether records were staged meanwhile, and else lets go of the
// project.
func (k *Consolidator) lookAgain(project string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.looking[project] {
		k.looking[project] = false
		return true
	}
	delete(k.looking, project)
	return false
}

// sleep reports false when all must stop.
func (k *Consolidator) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.ctx.Done():
		return false
	}
}
