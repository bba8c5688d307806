// Package acceptance holds the cases that a user of Loadline relies on, each against
// the whole server: real HTTP, a real store on disk, a scripted model that is as
// strict as the real ones. The number of a case is in the name of its test.
package acceptance

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline"
	"loadline/internal/artifact"
	"loadline/internal/host"
	api "loadline/internal/http"
	"loadline/internal/llm"
	"loadline/internal/llm/anthropic"
	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/store/storetest"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/web"
	"loadline/internal/worker"
)

// providerKey is the key that the server is configured with.
const providerKey = "sk-test-PROVIDER-0001"

// world is a server with all that it needs, in the process of the test.
type world struct {
	*client
	setup    setup
	manifest *manifest.Manifest
	log      zerolog.Logger // shown when the test fails

	store   *store.Store
	outputs *artifact.Keeper
	host    *host.Host
	metrics *worker.Metrics
	memory  *memory.Extractor // nil when the manifest has none
	stop    func()            // as a signal would; also at the end of the test
}

// setup says what is special about a world.
type setup struct {
	manifest string // TOML
	protocol string // that the model is asked over: openai, the default, or anthropic
	script   []llmtest.Step
	tools    []tool.Tool
	before   []worker.BeforeTool
	after    []worker.AfterTool

	summariser *llmtest.Server // of old messages, started; nil: they are shortened by rule

	store    func(host.Store) host.Store // around that of the host; nil: as it is
	provider llm.Provider                // instead of the scripted model
	listener net.Listener                // instead of a loopback port; for one boot
	http     *http.Client                // that can dial it
}

// blankStore puts an empty store into a new folder.
var blankStore = storetest.Blank(func(folder string) error {
	s, err := store.Open(context.Background(), folder, zerolog.Nop())
	if err != nil {
		return err
	}
	return s.Close()
})

func start(t *testing.T, s setup) *world {
	t.Helper()
	c := newClient(t)
	if s.http != nil {
		c.http, c.patience = s.http, time.Hour // virtual ones
	} else {
		c.startModel(s.script)
	}
	w := &world{client: c, setup: s, log: zerolog.New(zerolog.SyncWriter(t.Output()))}
	file := filepath.Join(t.TempDir(), "loadline.toml")
	text := "[store]\ndir = \"data\"\n" + s.manifest
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.manifest, err = manifest.Load(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.manifest.Store.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	blankStore(t, w.manifest.Store.Dir)
	w.boot()
	t.Cleanup(func() { w.stop() })
	return w
}

// in is the same world for a part of its test.
func (w *world) in(t *testing.T) *world {
	part, c := *w, *w.client
	c.t, part.client = t, &c
	return &part
}

// restart stops the server and starts another on the same data.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.boot()
}

func (w *world) boot() {
	w.t.Helper()
	var err error
	if w.store, err = store.Open(w.t.Context(), w.manifest.Store.Dir, w.log); err != nil {
		w.t.Fatal(err)
	}
	w.openOutputs()
	registry := prometheus.NewRegistry()
	w.host = w.newHost(registry, w.setup.tools...)
	w.startMemory(registry)
	page, err := web.New()
	if err != nil {
		w.t.Fatal(err)
	}
	server, err := api.New(api.Config{
		Page:     page,
		Sessions: sessions{w.host, w.store, w.outputs}, SessionLog: w.store, Turns: w.host, TurnLog: w.store, Streams: w.host, History: w.store,
		Outputs: w.outputs, Projects: noProjects{}, Contract: loadline.Contract(),
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Log: w.log,
		Settings: w.manifest.Server,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	listener := w.setup.listener
	if listener == nil {
		if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			w.t.Fatal(err)
		}
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	w.url = "http://" + listener.Addr().String()
	if err := w.host.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if w.memory != nil {
		if err := w.memory.Recover(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	stopped := false
	w.stop = func() {
		if !stopped {
			stopped = true
			w.shutDown(server, served)
		}
	}
}

func (w *world) shutDown(server *api.Server, served <-chan error) {
	w.host.Stop(0)
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
	if err := <-served; err != nil {
		w.t.Errorf("serve: %v", err)
	}
	if w.memory != nil {
		w.memory.Stop()
	}
	w.outputs.Close()
	if err := w.store.Close(); err != nil {
		w.t.Errorf("close the store: %v", err)
	}
}

// newHost makes a host over the store. A second one may stand beside the first.
func (w *world) newHost(registry *prometheus.Registry, tools ...tool.Tool) *host.Host {
	w.t.Helper()
	settings := w.manifest.Projects[w.manifest.DefaultProject()].Settings
	set := tool.NewSet(tools...).With(w.outputs.Tool(w.store))
	w.metrics = worker.NewMetrics(registry, set.Names(), []string{"openai", "anthropic", "demo"})
	engine, err := worker.New(settings.Worker.ToolOutput, worker.Config{
		Provider: w.provider(), Tools: set, Before: w.setup.before, After: w.setup.after, Keeper: w.outputs,
		Window: windowOf(settings.Model), Budget: w.budget(settings.Model), Compaction: w.compaction(settings.Compaction),
		Instructions: settings.Worker.Instructions,
		MaxSteps:     settings.Worker.MaxSteps, MaxCallsPerStep: settings.Worker.MaxCallsPerStep,
		MaxAttempts: settings.Model.MaxAttempts, RetryMaxWait: time.Duration(settings.Model.RetryMaxWait),
		ToolTimeout: time.Duration(settings.Worker.ToolTimeout),
		Metrics:     w.metrics, Log: w.log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	project := host.Project{Engine: engine, StallAfter: time.Duration(settings.Worker.StallAfter), InterruptOnRestart: settings.Worker.OnRestart == "interrupt"}
	streams := stream.NewMetrics(registry)
	var stored host.Store = w.store
	if w.setup.store != nil {
		stored = w.setup.store(stored)
	}
	return host.New(host.Config{
		Store: stored,
		NewTopic: func(id session.ID, lastSeq int64) host.Topic {
			return topic{stream.NewTopic(id, lastSeq, w.store, streams)}
		},
		Projects: map[string]host.Project{"default": project}, DefaultProject: "default", Orphan: project,
		TurnEnded: func(id session.ID) {
			if w.memory != nil {
				w.memory.TurnEnded(id)
			}
		},
		Registry: registry, Log: w.log,
	})
}

func windowOf(m manifest.Model) llm.Window {
	return llm.Window{ContextTokens: m.ContextWindow, OutputTokens: m.MaxOutputTokens}
}

func (w *world) budget(m manifest.Model) *llm.Budget {
	if m.InputTokensPerMinute == 0 {
		return nil
	}
	return llm.NewBudget(m.InputTokensPerMinute)
}

// compaction asks a model of its own, when the world has one.
func (w *world) compaction(c manifest.Compaction) worker.Compaction {
	made := worker.Compaction{Window: windowOf(c.Model), Budget: w.budget(c.Model), MaxCalls: c.MaxCalls, SummaryBytes: c.SummaryMaxBytes}
	if w.setup.summariser != nil {
		made.Provider = openai.New(openai.Config{BaseURL: w.setup.summariser.URL(), Name: "summariser", IdleTimeout: time.Minute})
	}
	return made
}

// startMemory makes what reads sessions, when the manifest says so.
func (w *world) startMemory(registry *prometheus.Registry) {
	w.t.Helper()
	settings := w.manifest.Projects[w.manifest.DefaultProject()].Settings
	if !settings.Memory.Enabled {
		return
	}
	var err error
	w.memory, err = memory.NewExtractor(w.t.Context(), memory.Config{
		Store: w.store, Host: w.host, MaxParallel: settings.Memory.MaxParallel, Secrets: []string{providerKey}, Backoff: 5 * time.Millisecond,
		Projects: map[string]memory.Project{"default": {
			Name: "default", Settings: settings.Memory, Limits: settings.Worker.ToolOutput,
			Engine: worker.Config{Provider: w.provider(), ToolTimeout: time.Duration(settings.Worker.ToolTimeout), Metrics: w.metrics, Log: w.log},
		}},
		Registry: registry, Log: w.log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) provider() llm.Provider {
	switch {
	case w.setup.provider != nil:
		return w.setup.provider
	case w.setup.protocol == "anthropic":
		return anthropic.New(anthropic.Config{BaseURL: w.model.URL(), Name: "scripted", IdleTimeout: time.Minute})
	}
	return openai.New(openai.Config{BaseURL: w.model.URL(), Name: "scripted", IdleTimeout: time.Minute})
}

type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }

type sessions struct {
	*host.Host
	store   *store.Store
	outputs *artifact.Keeper
}

func (s sessions) Delete(ctx context.Context, id session.ID) error {
	if err := s.Host.Delete(ctx, id); err != nil {
		return err
	}
	s.outputs.Delete(id)
	return nil
}

func (s sessions) Update(ctx context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error) {
	return s.store.UpdateSession(ctx, id, title, metadata)
}

type noProjects struct{}

func (noProjects) Has(string) bool                  { return false }
func (noProjects) List() []api.Project              { return nil }
func (noProjects) Tools(string) ([]api.Tool, error) { return nil, session.ErrUnknownProject }
func (noProjects) Manifest(string) (any, error)     { return nil, session.ErrUnknownProject }
