package http

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/manifest"
	"loadline/internal/session"
)

const (
	testSession = session.ID("ses_01940f3e7a8b7c11b2a64f1d0c9e5a21")
	testTurn    = session.TurnID("trn_01940f3e8c0d7e52a9d13b7f60c4d8e2")
)

// submitted is what a fake was given for a turn.
type submitted struct {
	input string
	mode  session.Mode
	key   *session.SubmitKey
}

// fake stands for everything behind the handlers.
type fake struct {
	err      error // of every call; nil for none
	replayed bool
	sub      Subscription
	owner    string // the project of the session; empty means default

	mu        sync.Mutex // guards the fields below
	created   []session.Session
	updated   []session.Session
	submitted []submitted
	from      []session.Cursor

	sessions []session.Session // newest first
	turns    []session.Turn
	items    []session.Item
	events   []session.Event
	output   string // that is kept of every item
	shortBy  int    // entries that a list leaves out of what it was asked for

	remembered
}

func (f *fake) Create(_ context.Context, project, title string, metadata map[string]string) (session.Session, error) {
	s := session.Session{ID: testSession, Project: project, Title: title, Metadata: metadata, State: session.StateIdle, CreatedAt: 1, UpdatedAt: 1}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created = append(f.created, s)
	return s, f.err
}

func (f *fake) Update(_ context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error) {
	s := session.Session{ID: id, Title: orEmpty(title), Metadata: metadata, State: session.StateIdle, CreatedAt: 1, UpdatedAt: 1}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updated = append(f.updated, s)
	s.Metadata = map[string]string{}
	return s, f.err
}

func (f *fake) Delete(context.Context, session.ID) error { return f.err }

func (f *fake) Session(_ context.Context, id session.ID) (session.Session, error) {
	if id != testSession && f.err == nil {
		return session.Session{}, session.ErrNotFound
	}
	return session.Session{ID: id, Project: cmp.Or(f.owner, "default"), Metadata: map[string]string{}, State: session.StateIdle, CreatedAt: 1, UpdatedAt: 1}, f.err
}

func (f *fake) Sessions(_ context.Context, title string, before session.ID, limit int) ([]session.Session, error) {
	return cutList(f, f.sessions, limit, func(s session.Session) bool {
		return strings.Contains(s.Title, title) && (before == "" || s.ID < before)
	})
}

func (f *fake) Submit(_ context.Context, id session.ID, sub session.Submission, key *session.SubmitKey) (session.Turn, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.submitted = append(f.submitted, submitted{sub.Input, sub.Mode, key})
	return session.Turn{ID: testTurn, SessionID: id, State: session.TurnQueued, Input: sub.Input, Mode: sub.Mode, ExpectedTurn: sub.ExpectedTurn, CreatedAt: 1}, f.replayed, f.err
}

func (f *fake) SubmitAndFollow(ctx context.Context, id session.ID, sub session.Submission, key *session.SubmitKey) (session.Turn, bool, Subscription, error) {
	turn, replayed, err := f.Submit(ctx, id, sub, key)
	return turn, replayed, f.sub, err
}

func (f *fake) Cancel(_ context.Context, id session.ID, turn session.TurnID) (session.Turn, error) {
	return session.Turn{ID: turn, SessionID: id, State: session.TurnCancelled, Mode: session.ModeEnqueue, CreatedAt: 1}, f.err
}

func (f *fake) Turn(_ context.Context, id session.ID, turn session.TurnID) (session.Turn, error) {
	return session.Turn{ID: turn, SessionID: id, State: session.TurnRunning, Mode: session.ModeEnqueue, CreatedAt: 1}, f.err
}

func (f *fake) Turns(_ context.Context, _ session.ID, after session.TurnID, limit int) ([]session.Turn, error) {
	return cutList(f, f.turns, limit, func(t session.Turn) bool { return t.ID > after })
}

func (f *fake) Diagnose(_ context.Context, id session.ID) (session.Diagnosis, error) {
	return session.Diagnosis{
		SessionID: id, State: session.StateRunning, Generation: 1, LastSeq: 5, Items: 2,
		Running: &session.Pulse{TurnID: testTurn, LastSign: 1}, Queue: []session.TurnID{},
		OpenCalls:   []session.OpenCall{{N: 2, TurnID: testTurn, Tool: "Glob", Effect: session.EffectRead, At: 1}},
		NextRequest: session.NextRequest{Fits: true, LimitTokens: 100, Largest: []session.Contributor{{N: 1, Kind: session.KindUserMessage, Bytes: 40, SentBytes: 40}}},
	}, f.err
}

func (f *fake) OpenTurns(context.Context, session.ID) ([]session.Turn, error) {
	return f.turns, f.err
}

func (f *fake) Item(_ context.Context, _ session.ID, n int64) (session.Item, error) {
	if n > int64(len(f.items)) || n < 1 {
		return session.Item{}, session.ErrNotFound
	}
	return f.items[n-1], f.err
}

func (f *fake) Items(_ context.Context, _ session.ID, after int64, limit int) ([]session.Item, error) {
	return cutList(f, f.items, limit, func(i session.Item) bool { return i.N > after })
}

func (f *fake) Events(_ context.Context, _ session.ID, after, upTo int64, limit int) ([]session.Event, error) {
	return cutList(f, f.events, limit, func(e session.Event) bool { return e.Seq > after && e.Seq <= upTo })
}

func (f *fake) Output(_ session.ID, _, keptBytes int64) (io.ReadSeekCloser, error) {
	if keptBytes != int64(len(f.output)) {
		return nil, session.ErrOutputGone
	}
	return closer{strings.NewReader(f.output)}, f.err
}

type closer struct{ io.ReadSeeker }

func (closer) Close() error { return nil }

func (f *fake) Subscribe(_ context.Context, _ session.ID, from session.Cursor) (Subscription, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from = append(f.from, from)
	return f.sub, f.err
}

func (f *fake) SubscribeTurn(context.Context, session.ID, session.TurnID) (Subscription, error) {
	return f.sub, f.err
}

func (f *fake) Tools(project string) ([]Tool, error) {
	return []Tool{{session.ToolSpec{Name: "Glob", Description: "lists files", Parameters: json.RawMessage(`{"type":"object"}`), Effect: session.EffectRead}, 16384}}, f.project(project)
}

func (f *fake) List() []Project {
	return []Project{{Name: "default", Permission: manifest.PermissionRead, Model: "demo/demo", Default: true}}
}

func (f *fake) Manifest(project string) (any, error) {
	return map[string]any{"worker": map[string]any{"max_steps": 50}}, f.project(project)
}

func (f *fake) project(name string) error {
	if name != "" && name != "default" {
		return session.ErrUnknownProject
	}
	return f.err
}

// cutList answers as a store does that bounds its answers in bytes: with fewer
// entries than asked for, though never with none while there are some.
func cutList[T any](f *fake, all []T, limit int, wanted func(T) bool) ([]T, error) {
	var found []T
	for _, entry := range all {
		if wanted(entry) && len(found) < max(1, limit-f.shortBy) {
			found = append(found, entry)
		}
	}
	return found, f.err
}

// newTestServer makes a server over f. change may alter its configuration.
func newTestServer(t testing.TB, f *fake, change ...func(*Config)) *Server {
	t.Helper()
	c := Config{
		Sessions: f, SessionLog: f, Turns: f, TurnLog: f, Streams: f, History: f, Outputs: f, Transfers: &transferring{err: f.err}, Projects: f, Memory: f, Extraction: f, Page: fakePage{},
		Contract: []byte("openapi: 3.1.0\n"),
		Metrics:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "# metrics\n") }),
		Log:      zerolog.Nop(),
		Settings: manifest.Server{Listen: "127.0.0.1:0", BodyMaxBytes: 1 << 20, ImportMaxBytes: 1 << 20},
	}
	for _, c2 := range change {
		c2(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fakePage has the two pages and one file.
type fakePage struct{ lost bool } // whether it has lost the file

func (p fakePage) Has(path string) bool {
	return path == "/" || path == "/docs" || path == "/assets/page.js" && !p.lost
}

func (fakePage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	if strings.HasPrefix(r.URL.Path, "/assets/") {
		h.Set("Content-Type", "text/javascript; charset=utf-8")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"page"`)
	_, _ = io.WriteString(w, "<!doctype html>")
}

// ask sends one request with headers "Name: value"; Host is one of them. The answer
// must be as the contract says.
func ask(t testing.TB, h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := askUnchecked(h, method, target, body, headers...)
	path, _, _ := strings.Cut(target, "?")
	if err := openContract(t).check(method, path, w.Code, w.Header(), w.Body.Bytes()); err != nil && method != http.MethodHead {
		t.Errorf("not as the contract says: %v", err)
	}
	return w
}

func askUnchecked(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	w := patient{httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	return w.ResponseRecorder
}

// patient is a recorder that, as real connections do, takes deadlines.
type patient struct{ *httptest.ResponseRecorder }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// wantProblem checks that w is a whole problem of this code, and returns it.
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, c code) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("answer %d %q is no problem: %v", w.Code, w.Body, err)
	}
	if p.Code != c || p.Status != w.Code || p.Title == "" || p.Detail == "" || p.Type != "urn:loadline:problem:"+string(c) {
		t.Errorf("answer %d %s, want a problem of code %s", w.Code, w.Body, c)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q, want application/problem+json", got)
	}
	return p
}

var errDisk = errors.New("disk on fire: secret-path")
