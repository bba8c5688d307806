package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/worker"
)

// archive is a store with records, and a consolidator over it.
type archive struct {
	t        *testing.T
	store    *store.Store
	model    *model
	folding  *Consolidator
	registry *prometheus.Registry
	setup    func(*ConsolidatorConfig, *Project)
	log      *logBuffer
	lease    session.Lease
	staged   int
}

func newArchive(t *testing.T, setup func(*ConsolidatorConfig, *Project)) *archive {
	t.Helper()
	return newArchiveIn(t, t.TempDir(), setup)
}

func newArchiveIn(t *testing.T, dir string, setup func(*ConsolidatorConfig, *Project)) *archive {
	t.Helper()
	a := &archive{t: t, model: &model{}, setup: setup, log: &logBuffer{}}
	var err error
	blankStore(t, dir)
	if a.store, err = store.Open(t.Context(), dir, zerolog.New(a.log)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.folding.Stop()
		a.store.Close()
	})
	if a.lease, err = a.store.CreateSession(t.Context(), session.Session{ID: session.NewID(), Project: project}); err != nil {
		t.Fatal(err)
	}
	a.boot()
	return a
}

// boot begins anew, as after a restart.
func (a *archive) boot() {
	a.registry = prometheus.NewRegistry()
	settings := manifest.Default().Settings
	settings.Memory.ConsolidationThresholdRecords = 2
	p := Project{Name: project, Settings: settings.Memory, Limits: settings.Worker.ToolOutput, Consolidation: worker.Config{
		Provider: a.model, MaxCallsPerStep: 64, RetryMaxWait: time.Second, ToolTimeout: time.Minute,
		Metrics: worker.NewMetrics(a.registry, ToolNames(), []string{"fake"}), Log: zerolog.New(a.log),
	}}
	c := ConsolidatorConfig{Store: a.store, MaxParallel: 2, Backoff: time.Millisecond, Registry: a.registry, Log: zerolog.New(a.log)}
	if a.setup != nil {
		a.setup(&c, &p)
	}
	c.Projects = map[string]Project{project: p}
	a.folding = NewConsolidator(c)
}

// stage stores records with these claims. Nobody is told.
func (a *archive) stage(claims ...string) {
	a.t.Helper()
	x := &session.Extracted{}
	for _, claim := range claims {
		a.staged++
		x.Records = append(x.Records, session.Record{ID: session.NewRecordID(a.lease.SessionID, 1, 1, a.staged), Project: project, SessionID: a.lease.SessionID,
			Kind: session.RecordPreference, Claim: claim, Why: "it matters", Evidence: []int64{1}, CreatedAt: session.Now()})
	}
	notice := session.Event{Type: session.EventMemoryExtract, SessionID: a.lease.SessionID, At: session.Now(), Extract: &session.Extract{Outcome: "staged"}}
	if err := a.store.Append(context.Background(), &session.Batch{Lease: a.lease, Events: []session.Event{notice}, Extracted: x}); err != nil {
		a.t.Fatal(err)
	}
}

// fold has the project looked at and waits until nothing is worked on.
func (a *archive) fold() {
	a.t.Helper()
	a.folding.Staged(project)
	a.idle()
}

func (a *archive) idle() {
	a.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.folding.work.Wait()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		a.t.Fatalf("consolidation does not come to rest\n%s", a.log)
	}
}

// text is what a document says, and its version; 0 when there is none.
func (a *archive) text(name session.DocumentName) (string, int64) {
	a.t.Helper()
	d, err := a.store.Document(a.t.Context(), project, name, 0)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		a.t.Fatal(err)
	}
	return d.Text, d.Version
}

// states are the records with their states and reasons, by their numbers.
func (a *archive) states() []string {
	a.t.Helper()
	records, err := a.store.Records(a.t.Context(), project, "", "", "", 1000)
	if err != nil {
		a.t.Fatal(err)
	}
	states := []string{}
	for _, r := range records {
		states = append(states, strings.TrimSpace(fmt.Sprintf("%d %s %s", r.N, r.State, r.Reason)))
	}
	return states
}

// runs is how many passes have ended so, as /metrics shows it.
func (a *archive) runs(o foldOutcome) string {
	return a.metric(fmt.Sprintf("loadline_memory_consolidation_runs_total{outcome=%q}", o))
}

func (a *archive) metric(series string) string {
	a.t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return value
		}
	}
	a.t.Fatalf("there is no series %s", series)
	return ""
}

// does is an answer with several calls: names and arguments.
func does(namesAndArguments ...any) reply {
	var blocks []llm.Block
	for i := 0; i < len(namesAndArguments); i += 2 {
		arguments, _ := json.Marshal(namesAndArguments[i+1])
		blocks = append(blocks, llm.Block{Kind: session.KindToolCall, Tool: namesAndArguments[i].(string), Text: string(arguments)})
	}
	return reply{answer: llm.Answer{Blocks: blocks, Stop: llm.StopEnd}}
}

type fields map[string]any

// finishing closes records: numbers and reasons.
func finishing(numbersAndReasons ...any) fields {
	closed := []fields{}
	for i := 0; i < len(numbersAndReasons); i += 2 {
		closed = append(closed, fields{"record": numbersAndReasons[i], "reason": numbersAndReasons[i+1]})
	}
	return fields{"records": closed}
}

// discarding closes all records that a request shows.
func discarding() reply {
	return reply{make: func(r llm.Request) reply {
		var all []any
		for _, n := range shownRecords(r) {
			all = append(all, n, "discarded")
		}
		return does(finishTool, finishing(all...))
	}}
}

// shownRecords are the numbers of the records in a request.
func shownRecords(r llm.Request) (numbers []int64) {
	for line := range strings.Lines(r.Items[0].UserMessage.Text) {
		var shown foldedRecord
		if json.Unmarshal([]byte(line), &shown) == nil && shown.N > 0 {
			numbers = append(numbers, shown.N)
		}
	}
	return numbers
}
