package http

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

func TestErrorsBecomeProblems(t *testing.T) {
	tests := []struct {
		err        error
		code       code
		status     int
		retryAfter bool
	}{
		{session.ErrNotFound, codeNotFound, 404, false},
		{session.ErrBusy, codeBusy, 409, false},
		{session.ErrQueueFull, codeQueueFull, 429, true},
		{session.ErrKeyReused, codeKeyReused, 422, false},
		{session.ErrUnknownProject, codeUnknownProject, 422, false},
		{session.ErrProjectRequired, codeProjectRequired, 400, false},
		{session.ErrStorage, codeStorage, 503, true},
		{session.ErrStopping, codeStopping, 503, true},
		{session.ErrStale, codeInternal, 500, false},
		{errDisk, codeInternal, 500, false},
	}
	for _, test := range tests {
		t.Run(string(test.code), func(t *testing.T) {
			f := &fake{err: fmt.Errorf("submit to %s: %w", testSession, test.err)}
			w := ask(t, newTestServer(t, f), "POST", sessionPath(testSession)+"/turns", `{"input":"hi"}`)
			p := wantProblem(t, w, test.code)
			if w.Code != test.status {
				t.Errorf("status = %d, want %d", w.Code, test.status)
			}
			if strings.Contains(w.Body.String(), "secret-path") {
				t.Errorf("detail %q shows the cause", p.Detail)
			}
			if got := w.Header().Get("Retry-After") != ""; got != test.retryAfter {
				t.Errorf("Retry-After is there: %v, want %v", got, test.retryAfter)
			}
		})
	}
}

func TestEveryRouteAnswersErrorsOfWhatIsBehindIt(t *testing.T) {
	s := newTestServer(t, &fake{err: fmt.Errorf("read: %w", errDisk), items: make([]session.Item, 1)})
	for _, r := range s.routes() {
		if !strings.HasPrefix(r.pattern, "/v1") {
			continue
		}
		t.Run(r.method+" "+r.pattern, func(t *testing.T) {
			body := map[string]string{"POST": `{"input":"hi"}`, "PATCH": `{}`}[r.method]
			if strings.HasSuffix(r.pattern, "/restore") {
				body = `{"version":1}`
			}
			if strings.HasSuffix(r.pattern, "/ag-ui") {
				body = aguiBody
			}
			if r.pattern == chatPath || r.pattern == modelsPath || r.pattern == "/v1/projects" {
				return // the first has an error form and tests of its own, behind the others nothing fails
			}
			if strings.HasSuffix(r.pattern, "/ai-sdk") {
				body = uiBody
			}
			if r.pattern == "/v1/sessions" {
				body = strings.ReplaceAll(body, `"input":"hi"`, "")
			}
			wantRefusal(t, r, ask(t, s, r.method, fill(r.pattern), body), codeInternal)
		})
	}
}

// fill puts ids into a pattern.
func fill(pattern string) string {
	return strings.NewReplacer("{session_id}", string(testSession), "{turn_id}", string(testTurn), "{n}", "1",
		"{project}", "default", "{name}", "preferences", "{dead_letter_id}", string(testLetter), "{file}", "page.js").Replace(pattern)
}

func TestInternalErrorsAreLogged(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(t, &fake{err: errDisk}, func(c *Config) { c.Log = zerolog.New(&log) })
	ask(t, s, "GET", sessionPath(testSession), "")
	if !strings.Contains(log.String(), "secret-path") || !strings.Contains(log.String(), `"route":"/v1/sessions/{session_id}"`) {
		t.Errorf("log %q does not name the cause and the route", log.String())
	}
}

func TestPanicIsAProblemWithoutStack(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(t, &fake{}, func(c *Config) {
		c.Log = zerolog.New(&log)
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret-path") })
	})
	w := ask(t, s, "GET", "/metrics", "")
	wantProblem(t, w, codeInternal)
	if strings.Contains(w.Body.String(), "secret-path") || strings.Contains(w.Body.String(), "goroutine") {
		t.Errorf("answer %s shows the panic", w.Body)
	}
	if !strings.Contains(log.String(), "secret-path") || !strings.Contains(log.String(), "problem_test.go") {
		t.Errorf("log %q does not show the panic and its stack", log.String())
	}
}

func TestPanicInMidAnswerCutsItOff(t *testing.T) {
	s := newTestServer(t, &fake{}, func(c *Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			panic("late")
		})
	})
	defer func() {
		if reason := recover(); reason != http.ErrAbortHandler {
			t.Errorf("panic = %v, want http.ErrAbortHandler", reason)
		}
	}()
	s.ServeHTTP(httptest.NewRecorder(), localRequest("GET", "/metrics"))
}

func localRequest(method, target string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost"
	return r
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	s := newTestServer(t, &fake{})
	for _, path := range []string{"/nothing", "/v1", "/v1/sessions/", "/v1/sessions/" + string(testSession) + "/x", "//v1/sessions", "/V1/sessions"} {
		wantProblem(t, ask(t, s, "GET", path, ""), codeNotFound)
	}
	tests := []struct{ method, path, allow string }{
		{"PUT", "/v1/sessions", "GET, HEAD, POST, OPTIONS"},
		{"DELETE", "/v1/sessions", "GET, HEAD, POST, OPTIONS"},
		{"POST", "/healthz", "GET, HEAD, OPTIONS"},
		{"GET", fill("/v1/sessions/{session_id}/turns/{turn_id}/cancel"), "POST, OPTIONS"},
		{"BREW", "/v1/sessions", "GET, HEAD, POST, OPTIONS"},
	}
	for _, test := range tests {
		w := ask(t, s, test.method, test.path, "")
		wantProblem(t, w, codeMethodNotAllowed)
		if got := w.Header().Get("Allow"); got != test.allow {
			t.Errorf("%s %s: Allow = %q, want %q", test.method, test.path, got, test.allow)
		}
	}
	w := ask(t, s, "OPTIONS", "/v1/sessions", "")
	if w.Code != 204 || w.Header().Get("Allow") == "" {
		t.Errorf("OPTIONS answers %d with Allow %q, want 204 and the methods", w.Code, w.Header().Get("Allow"))
	}
}
