// Package acceptance holds the cases that a user of Loadline relies on, each against
// the whole server: real HTTP, a real store on disk, a scripted model that is as
// strict as the real ones. The number of a case is in the name of its test.
package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline"
	"loadline/internal/host"
	api "loadline/internal/http"
	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

// patience bounds each wait of a test for something that will happen.
const patience = 20 * time.Second

// world is a server with all that it needs.
type world struct {
	t     *testing.T
	setup setup
	model *llmtest.Server
	log   *bytes.Buffer

	url   string
	host  *host.Host
	stop  func() // as a signal would; also at the end of the test
	store *store.Store
}

// setup says what is special about a world.
type setup struct {
	manifest string // TOML
	script   []llmtest.Step
	tools    []tool.Tool
	before   []worker.BeforeTool
	after    []worker.AfterTool
	drain    time.Duration
	dir      string // of the data; empty: a new one
}

func start(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, setup: s, model: llmtest.New(s.script...), log: &bytes.Buffer{}}
	if w.setup.dir == "" {
		w.setup.dir = t.TempDir()
	}
	if err := w.model.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.model.Close)
	w.boot()
	t.Cleanup(func() { w.stop() })
	return w
}

// restart stops the server and starts another on the same data.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.boot()
}

func (w *world) boot() {
	t := w.t
	t.Helper()
	file := filepath.Join(t.TempDir(), "loadline.toml")
	if err := os.WriteFile(file, []byte(w.setup.manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(zerolog.SyncWriter(w.log))
	db, err := store.Open(t.Context(), w.setup.dir, log)
	if err != nil {
		t.Fatal(err)
	}
	w.store = db
	registry := prometheus.NewRegistry()
	tools := tool.NewSet(w.setup.tools...)
	settings := m.Projects[m.DefaultProject()].Settings
	engine, err := worker.New(settings.Worker.ToolOutput, worker.Config{
		Provider: openai.New(openai.Config{BaseURL: w.model.URL(), Name: "scripted", IdleTimeout: time.Minute}),
		Tools:    tools, Before: w.setup.before, After: w.setup.after,
		Instructions: settings.Worker.Instructions,
		MaxSteps:     settings.Worker.MaxSteps, MaxCallsPerStep: settings.Worker.MaxCallsPerStep,
		MaxAttempts: settings.Model.MaxAttempts, RetryMaxWait: time.Duration(settings.Model.RetryMaxWait),
		ToolTimeout: time.Duration(settings.Worker.ToolTimeout),
		Metrics:     worker.NewMetrics(registry, tools.Names(), []string{"openai"}), Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	project := host.Project{Engine: engine, StallAfter: time.Duration(settings.Worker.StallAfter), InterruptOnRestart: settings.Worker.OnRestart == "interrupt"}
	streams := stream.NewMetrics(registry)
	w.host = host.New(host.Config{
		Store:    db,
		NewTopic: func(id session.ID, lastSeq int64) host.Topic { return topic{stream.NewTopic(id, lastSeq, db, streams)} },
		Projects: map[string]host.Project{"default": project}, DefaultProject: "default", Orphan: project,
		Registry: registry, Log: log,
	})
	server, err := api.New(api.Config{
		Sessions: sessions{w.host, db}, SessionLog: db, Turns: w.host, TurnLog: db, Streams: w.host, History: db,
		Projects: noProjects{}, Contract: loadline.Contract(),
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Log: log,
		Settings: m.Server,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	w.url = "http://" + listener.Addr().String()
	if err := w.host.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		w.host.Stop(w.setup.drain)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	}
}

type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }

type sessions struct {
	*host.Host
	store *store.Store
}

func (s sessions) Update(ctx context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error) {
	return s.store.UpdateSession(ctx, id, title, metadata)
}

type noProjects struct{}

func (noProjects) Tools(string) ([]api.Tool, error) { return nil, session.ErrUnknownProject }
func (noProjects) Manifest(string) (any, error)     { return nil, session.ErrUnknownProject }

// do sends a request with a JSON body, when there is one, and decodes the answer.
func (w *world) do(method, path string, body, into any, headers ...string) *http.Response {
	w.t.Helper()
	answer, text := w.send(method, path, body, headers...)
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			w.t.Fatalf("%s %s: %d %s: %v", method, path, answer.StatusCode, text, err)
		}
	}
	return answer
}

func (w *world) send(method, path string, body any, headers ...string) (*http.Response, []byte) {
	w.t.Helper()
	request := w.request(method, path, body, headers...)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer, text
}

func (w *world) request(method, path string, body any, headers ...string) *http.Request {
	w.t.Helper()
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, reader)
	if err != nil {
		w.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

func (w *world) newSession() session.ID {
	w.t.Helper()
	var s session.Session
	if answer := w.do("POST", "/v1/sessions", map[string]any{}, &s); answer.StatusCode != http.StatusCreated {
		w.t.Fatalf("create a session: %s", answer.Status)
	}
	return s.ID
}

// post submits a turn.
func (w *world) post(id session.ID, input string, headers ...string) session.Turn {
	w.t.Helper()
	var t session.Turn
	if answer := w.do("POST", fmt.Sprintf("/v1/sessions/%s/turns", id), map[string]any{"input": input}, &t, headers...); answer.StatusCode != http.StatusAccepted {
		w.t.Fatalf("post a turn: %s", answer.Status)
	}
	return t
}

// say submits a turn and waits for its end.
func (w *world) say(id session.ID, input string) session.Turn {
	w.t.Helper()
	return w.await(id, w.post(id, input).ID)
}

// await reads the stream until the turn has ended, and returns it in its final form.
func (w *world) await(id session.ID, turn session.TurnID) session.Turn {
	w.t.Helper()
	s := w.stream(id, "")
	defer s.close()
	for {
		ev := s.next()
		if ev.Type.Terminal() && ev.TurnID == turn {
			return *ev.Turn
		}
	}
}

func (w *world) items(id session.ID) []session.Item {
	w.t.Helper()
	var all []session.Item
	for cursor := ""; ; {
		var page struct {
			Data       []session.Item `json:"data"`
			NextCursor string         `json:"next_cursor"`
		}
		w.do("GET", fmt.Sprintf("/v1/sessions/%s/items?limit=200&cursor=%s", id, cursor), nil, &page)
		all = append(all, page.Data...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// results are the tool results of a history.
func results(items []session.Item) []session.ToolResult {
	var all []session.ToolResult
	for _, item := range items {
		if item.ToolResult != nil {
			all = append(all, *item.ToolResult)
		}
	}
	return all
}

func kinds(items []session.Item) []session.ItemKind {
	var all []session.ItemKind
	for _, item := range items {
		all = append(all, item.Kind)
	}
	return all
}

// metric is the value of one series, as /metrics shows it.
func (w *world) metric(series string) string {
	w.t.Helper()
	_, text := w.send("GET", "/metrics", nil)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "loadline_"+series+" "); ok {
			return value
		}
	}
	w.t.Fatalf("there is no series %s", series)
	return ""
}

// stillFine fails when the model refused a request for its form, or when the session
// does not take another turn.
func (w *world) stillFine(id session.ID) {
	w.t.Helper()
	w.model.Add(llmtest.Step{Text: []string{"fine"}})
	if turn := w.say(id, "and now?"); turn.State != session.TurnCompleted {
		w.t.Errorf("the next turn: %s %v", turn.State, turn.Error)
	}
	if problems := w.model.Problems(); len(problems) > 0 {
		w.t.Errorf("the model refused: %s", strings.Join(problems, "; "))
	}
	w.oneTerminalEach(id)
}

// oneTerminalEach checks the stored events: each turn has exactly one terminal event,
// and nothing after it.
func (w *world) oneTerminalEach(id session.ID) {
	w.t.Helper()
	ended := map[session.TurnID]bool{}
	for i, ev := range w.events(id) {
		if ev.Seq != int64(i+1) {
			w.t.Errorf("event %d has seq %d", i+1, ev.Seq)
		}
		if ended[ev.TurnID] {
			w.t.Errorf("%s of turn %s after its end", ev.Type, ev.TurnID)
		}
		ended[ev.TurnID] = ev.Type.Terminal()
	}
	if slices.Contains(slices.Collect(maps.Values(ended)), false) {
		w.t.Error("a turn has no terminal event")
	}
}

// events are the durable events of a session.
func (w *world) events(id session.ID) []session.Event {
	w.t.Helper()
	var all []session.Event
	for cursor := ""; ; {
		var page struct {
			Data       []session.Event `json:"data"`
			NextCursor string          `json:"next_cursor"`
		}
		w.do("GET", fmt.Sprintf("/v1/sessions/%s/events?limit=200&cursor=%s", id, cursor), nil, &page, "Accept", "application/json")
		all = append(all, page.Data...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// sse is one connection to a stream.
type sse struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Reader
	id     string // of the last event that had one
}

// stream opens a session's stream after an event id; empty means from the beginning.
func (w *world) stream(id session.ID, lastEventID string) *sse {
	w.t.Helper()
	headers := []string{"Accept", "text/event-stream"}
	if lastEventID != "" {
		headers = append(headers, "Last-Event-ID", lastEventID)
	}
	answer, err := http.DefaultClient.Do(w.request("GET", fmt.Sprintf("/v1/sessions/%s/events", id), nil, headers...))
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		w.t.Fatalf("open the stream: %s", answer.Status)
	}
	return &sse{t: w.t, answer: answer, lines: bufio.NewReader(answer.Body), id: lastEventID}
}

func (s *sse) close() { s.answer.Body.Close() }

// next is the next event; comments are passed over.
func (s *sse) next() session.Event {
	s.t.Helper()
	ev, err := s.read()
	if err != nil {
		s.t.Fatalf("the stream ended: %v", err)
	}
	return ev
}

func (s *sse) read() (ev session.Event, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return ev, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, ": "); {
		case line == "" && ev.Type != "":
			return ev, nil
		case name == "id":
			s.id = value
		case name == "data":
			if err := json.Unmarshal([]byte(value), &ev); err != nil {
				return ev, err
			}
		}
	}
}
