package memory

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline/internal/host"
	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/store/storetest"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

const project = "default"

// world is a store, a host and an extractor, with a model in the test's own process
// unless the setup names another.
type world struct {
	t        testing.TB
	step     time.Duration // between two looks at something that will happen
	dir      string
	setup    setup
	store    *store.Store
	host     *host.Host
	memory   *Extractor
	model    *model
	registry *prometheus.Registry
	log      *logBuffer
	refuse   atomic.Pointer[error] // what the disk answers to commits of memory; nil: it takes them
}

type setup struct {
	settings func(*manifest.Memory)
	provider llm.Provider // of extraction
	talk     llm.Provider // of turns
	secrets  []string
	backoff  time.Duration
	staged   func(string)
	recall   bool // sessions are told the summary
	dir      string
	around   func(commit func() error) error // what happens around a commit of memory
}

// blankStore puts an empty store into a new folder.
var blankStore = storetest.Blank(func(folder string) error {
	s, err := store.Open(context.Background(), folder, zerolog.Nop())
	if err != nil {
		return err
	}
	return s.Close()
})

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, step: 2 * time.Millisecond, dir: t.TempDir(), setup: s, model: &model{}, log: &logBuffer{}}
	if s.dir != "" {
		w.dir = s.dir
	}
	if w.setup.provider == nil {
		w.setup.provider = w.model
	}
	if w.setup.talk == nil {
		w.setup.talk = says("ok")
	}
	if w.setup.backoff == 0 {
		w.setup.backoff = time.Millisecond
	}
	w.boot()
	t.Cleanup(func() { w.shutDown() })
	return w
}

func (w *world) boot() {
	w.t.Helper()
	var err error
	log := zerolog.New(w.log)
	blankStore(w.t, w.dir)
	if w.store, err = store.Open(w.t.Context(), w.dir, log); err != nil {
		w.t.Fatal(err)
	}
	w.registry = prometheus.NewRegistry()
	metrics := worker.NewMetrics(w.registry, []string{SubmitTool}, []string{"fake", "openai"})
	settings := manifest.Default().Settings
	settings.Memory.Enabled = true
	settings.Memory.ExtractThresholdBytes = 1
	if w.setup.settings != nil {
		w.setup.settings(&settings.Memory)
	}
	common := worker.Config{
		Provider: w.setup.talk, Tools: tool.NewSet(), MaxSteps: 8, MaxCallsPerStep: 64, MaxAttempts: 4,
		RetryMaxWait: time.Second, ToolTimeout: time.Minute, RecallMaxBytes: settings.Memory.RecallMaxBytes, Metrics: metrics, Log: log,
	}
	engine, err := worker.New(settings.Worker.ToolOutput, common)
	if err != nil {
		w.t.Fatal(err)
	}
	streams := stream.NewMetrics(w.registry)
	w.host = host.New(host.Config{
		Store:    w.store,
		NewTopic: func(id session.ID, last int64) host.Topic { return topic{stream.NewTopic(id, last, w.store, streams)} },
		Projects: map[string]host.Project{project: w.recalls(host.Project{Engine: engine}), "off": {Engine: engine}}, DefaultProject: project,
		TurnEnded: func(id session.ID) { w.memory.TurnEnded(id) }, Registry: w.registry, Log: log,
	})
	common.Provider = w.setup.provider
	w.memory, err = NewExtractor(w.t.Context(), Config{
		Store: w.store, Host: refusingHost{w}, MaxParallel: settings.Memory.MaxParallel, Secrets: w.setup.secrets, Backoff: w.setup.backoff,
		Projects: map[string]Project{project: {Name: project, Settings: settings.Memory, Limits: settings.Worker.ToolOutput, Engine: common}},
		Staged:   w.setup.staged, Registry: w.registry, Log: log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) shutDown() {
	w.host.Stop(0)
	w.memory.Stop()
	if err := w.store.Close(); err != nil {
		w.t.Errorf("close the store: %v", err)
	}
}

func (w *world) restart() {
	w.t.Helper()
	w.shutDown()
	w.boot()
	if err := w.memory.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }

// refusingHost is the host, on a disk that can be full.
type refusingHost struct{ w *world }

func (h refusingHost) Commit(ctx context.Context, id session.ID, b *session.Batch, stored func()) error {
	if err := h.w.refuse.Load(); err != nil {
		return *err
	}
	commit := func() error { return h.w.host.Commit(ctx, id, b, stored) }
	if h.w.setup.around != nil {
		return h.w.setup.around(commit)
	}
	return commit()
}

type logBuffer struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// say runs a turn to its end.
func (w *world) say(id session.ID, input string) {
	w.t.Helper()
	turn, _, err := w.host.Submit(w.t.Context(), id, session.Submission{Input: input, Mode: session.ModeEnqueue}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the turn ends", func() bool {
		got, err := w.store.Turn(w.t.Context(), id, turn.ID)
		return err == nil && got.State.Ended()
	})
}

// eventually waits for something that will happen.
func (w *world) eventually(what string, happened func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(10_000 * w.step)
	for !happened() {
		if time.Now().After(deadline) {
			w.t.Fatalf("it did not happen: %s\n%s", what, w.log)
		}
		<-time.After(w.step)
	}
}

// idle waits until nothing is worked on.
func (w *world) idle() {
	w.t.Helper()
	w.eventually("memory is idle", func() bool {
		w.memory.mu.Lock()
		defer w.memory.mu.Unlock()
		return len(w.memory.jobs) == 0
	})
}

// passesAre waits until a session has had so many passes.
func (w *world) passesAre(id session.ID, n int) []session.Pass {
	w.t.Helper()
	var passes []session.Pass
	w.eventually(fmt.Sprintf("pass %d", n), func() bool {
		passes = w.passes(id)
		return len(passes) >= n
	})
	return passes
}

func (w *world) passes(id session.ID) []session.Pass {
	w.t.Helper()
	passes, err := w.store.Passes(w.t.Context(), id, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return passes
}

func (w *world) backlog(id session.ID) session.Backlog {
	w.t.Helper()
	b, err := w.store.Backlog(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) records() []session.Record {
	w.t.Helper()
	records, err := w.store.Records(w.t.Context(), project, "", "", "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

// notices are the events of memory in a session.
func (w *world) notices(id session.ID) (all []session.Extract) {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), id, 0, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, ev := range events {
		if ev.Extract != nil {
			all = append(all, *ev.Extract)
		}
	}
	return all
}

// metric is one series as /metrics shows it.
func (w *world) metric(series string) string {
	w.t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for text := range strings.Lines(answer.Body.String()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(text), "loadline_memory_"+series+" "); ok {
			return value
		}
	}
	w.t.Fatalf("there is no series %s", series)
	return ""
}

func (w *world) runs(o session.Outcome) string {
	return w.metric(fmt.Sprintf("extract_runs_total{outcome=%q}", o))
}

// settle brings the work on one session to its end: it is asked for, and goes on
// until nothing is left.
func (w *world) settle(id session.ID) {
	w.t.Helper()
	if _, err := w.memory.Extract(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
	w.idle()
}
