package http

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline"
	"loadline/internal/host"
	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/store/storetest"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

const patience = 20 * time.Second // for what happens at once on an idle machine

// whole is a complete server: real HTTP on a port of its own, a real store, the real
// engine, and a scripted model. What it answers must be as the contract says.
type whole struct {
	t      *testing.T
	model  *llmtest.Server
	budget *llm.Budget
	store  *store.Store
	host   *host.Host
	url    string
	seen   map[session.EventType]bool // that streams have carried
}

// blankStore puts an empty store into a new folder.
var blankStore = storetest.Blank(func(folder string) error {
	s, err := store.Open(context.Background(), folder, zerolog.Nop())
	if err != nil {
		return err
	}
	return s.Close()
})

func blankFolder(t *testing.T) string {
	dir := t.TempDir()
	blankStore(t, dir)
	return dir
}

func startWhole(t *testing.T, tools ...tool.Tool) *whole {
	t.Helper()
	w := &whole{t: t, model: llmtest.New(), budget: llm.NewBudget(2_000_000), seen: map[session.EventType]bool{}}
	must(t, w.model.Start())
	t.Cleanup(w.model.Close)
	log := zerolog.Nop()
	db, err := store.Open(t.Context(), blankFolder(t), log)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	w.store = db
	registry, set, settings := prometheus.NewRegistry(), tool.NewSet(tools...), manifest.Default()
	engine, err := worker.New(settings.Worker.ToolOutput, worker.Config{
		Provider: openai.New(openai.Config{BaseURL: w.model.URL(), Name: "scripted", IdleTimeout: patience}),
		Budget:   w.budget, Tools: set, MaxSteps: 10, MaxCallsPerStep: 8, MaxAttempts: 2, RetryMaxWait: time.Second, ToolTimeout: patience,
		Metrics: worker.NewMetrics(registry, set.Names(), []string{"openai"}), Log: log,
	})
	must(t, err)
	project, metrics := host.Project{Engine: engine, StallAfter: time.Minute}, stream.NewMetrics(registry)
	w.host = host.New(host.Config{
		Store:    db,
		NewTopic: func(id session.ID, lastSeq int64) host.Topic { return topic{stream.NewTopic(id, lastSeq, db, metrics)} },
		Projects: map[string]host.Project{"default": project}, DefaultProject: "default", Orphan: project, Registry: registry, Log: log,
	})
	server, err := New(Config{
		Sessions: updater{w.host, db}, SessionLog: db, Turns: w.host, TurnLog: db, Streams: w.host, History: db, Projects: &fake{},
		Memory: db, Extraction: w.newExtractor(registry),
		Contract: loadline.Contract(), Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Log: log, Settings: settings.Server,
	})
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.url = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		w.host.Stop(0)
		must(t, server.Shutdown(context.WithoutCancel(t.Context())))
		must(t, <-served)
	})
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }

type updater struct {
	*host.Host
	store *store.Store
}

func (u updater) Update(ctx context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error) {
	return u.store.UpdateSession(ctx, id, title, metadata)
}

// open sends a request with headers "Name: value".
func (w *whole) open(method, path, body string, headers ...string) *http.Response {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	must(w.t, err)
	r.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	must(w.t, err)
	w.t.Cleanup(func() { response.Body.Close() })
	return response
}

// do sends a request, wants a status, and decodes the answer unless into is nil.
func (w *whole) do(status int, into any, method, path, body string, headers ...string) http.Header {
	w.t.Helper()
	response := w.open(method, path, body, headers...)
	text, err := io.ReadAll(response.Body)
	must(w.t, err)
	path, _, _ = strings.Cut(path, "?")
	if err := openContract(w.t).check(method, path, response.StatusCode, response.Header, text); err != nil {
		w.t.Errorf("not as the contract says: %v", err)
	}
	if response.StatusCode != status {
		w.t.Fatalf("%s %s: %d %.300s, want %d", method, path, response.StatusCode, text, status)
	}
	if into != nil {
		must(w.t, json.Unmarshal(text, into))
	}
	return response.Header
}

func (w *whole) newSession() string {
	w.t.Helper()
	var s session.Session
	w.do(201, &s, "POST", "/v1/sessions", `{}`)
	return sessionPath(s.ID)
}

// received is an event as a reader gets it.
type received struct {
	session.Event
	id string
}

// events reads a stream of a response; it ends when the stream or the test does.
func (w *whole) events(response *http.Response) func() (received, error) {
	w.t.Helper()
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != eventStream {
		w.t.Fatalf("answer %d %s, want a stream", response.StatusCode, response.Header.Get("Content-Type"))
	}
	lines := bufio.NewReader(response.Body)
	return func() (received, error) {
		var ev received
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return ev, err
			}
			name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
			switch string(name) {
			case "id":
				ev.id = string(value)
			case "data":
				if err := openContract(w.t).validate("/components/schemas/Event", value); err != nil {
					w.t.Errorf("event %.300s is not as the contract says: %v", value, err)
				}
				must(w.t, json.Unmarshal(value, &ev.Event))
				w.seen[ev.Type] = true
			case "":
				if ev.Type != "" {
					return ev, nil
				}
			}
		}
	}
}

// until reads events up to the first that is wanted.
func until(t *testing.T, next func() (received, error), wanted func(received) bool) (all []received) {
	t.Helper()
	for {
		ev, err := next()
		if err != nil {
			t.Fatalf("the stream ended after %d events: %v", len(all), err)
		}
		if all = append(all, ev); wanted(ev) {
			return all
		}
	}
}

func terminal(ev received) bool { return ev.Type.Terminal() }

// say posts a turn and reads it to its end, which must be in this state.
func (w *whole) say(path, input string, want session.TurnState, steps ...llmtest.Step) []received {
	w.t.Helper()
	w.model.Add(steps...)
	next := w.events(w.open("POST", path+"/turns", `{"input":`+strconv.Quote(input)+`}`, "Accept: text/event-stream"))
	all := until(w.t, next, terminal)
	if ev, err := next(); !errors.Is(err, io.EOF) {
		w.t.Errorf("after the end of the turn comes %v, %v", ev, err)
	}
	if got := all[len(all)-1].Turn; got.State != want || got.Error == nil != (want == session.TurnCompleted) {
		w.t.Fatalf("turn %q ended %s %v, want %s", input, got.State, got.Error, want)
	}
	return all
}
