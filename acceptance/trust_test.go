package acceptance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"loadline"
	"loadline/internal/session"
)

// route is one of the contract's, with real ids in its path.
type route struct {
	method, path string
	open         bool // needs no key
}

// routes are all of the contract's.
func (c *client) routes(id session.ID, turn session.TurnID) []route {
	t := c.t
	t.Helper()
	_, page := c.ask("GET", "/", "", "")
	file := regexp.MustCompile(`/assets/([^"]+)`).FindStringSubmatch(page)
	if file == nil {
		t.Fatalf("the page names none of its files: %.400s", page)
	}
	var contract struct {
		Paths map[string]map[string]yaml.Node
	}
	if err := yaml.Unmarshal(loadline.Contract(), &contract); err != nil {
		t.Fatal(err)
	}
	var all []route
	for path, operations := range contract.Paths {
		filled := strings.NewReplacer("{session_id}", string(id), "{turn_id}", string(turn), "{n}", "1", "{chat_id}", "chat", "{file}", file[1]).Replace(path)
		for method, node := range operations {
			var operation struct{ Security []map[string]any }
			if method == "parameters" {
				continue
			}
			if err := node.Decode(&operation); err != nil {
				t.Fatal(err)
			}
			all = append(all, route{strings.ToUpper(method), filled, slices.ContainsFunc(operation.Security, isEmpty)})
		}
	}
	if len(all) < 19 {
		t.Fatalf("the contract has %d routes", len(all))
	}
	return all
}

func isEmpty(m map[string]any) bool { return len(m) == 0 }

// ask sends a request whose body and Host are given as they are.
func (c *client) ask(method, path, host, body string, headers ...string) (*http.Response, string) {
	c.t.Helper()
	request := c.request(method, path, nil, headers...)
	if body != "" {
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	if host != "" {
		request.Host = host
	}
	answer, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer, string(text)
}

// wantProblem fails unless an answer refuses in the form of RFC 9457, and says what
// is wrong.
func wantProblem(t *testing.T, answer *http.Response, text string, status int, code string) {
	t.Helper()
	var problem struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	err := json.Unmarshal([]byte(text), &problem)
	if err != nil || answer.Header.Get("Content-Type") != "application/problem+json" || answer.StatusCode != status ||
		problem.Status != status || problem.Code != code || problem.Title == "" || problem.Detail == "" || problem.Type == "" {
		t.Errorf("%s %s: %d %.400s; want %d %s", answer.Request.Method, answer.Request.URL, answer.StatusCode, text, status, code)
	}
}

// wantRefusal fails unless an answer refuses and says why: in the form of RFC 9457,
// or on routes for clients of others in the form that these show.
func wantRefusal(t *testing.T, answer *http.Response, text string, status int, code, why string) {
	t.Helper()
	path := answer.Request.URL.Path
	switch {
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/models"):
		var refused struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(text), &refused); err != nil || answer.StatusCode != status || refused.Error.Message == "" || refused.Error.Type == "" {
			t.Errorf("%s: %d %.400s; want %d in the form of OpenAI", path, answer.StatusCode, text, status)
		}
	case strings.Contains(path, "/ai-sdk"), strings.HasSuffix(path, "/ag-ui"):
		if answer.StatusCode != status || !strings.Contains(text, why) {
			t.Errorf("%s: %d %.400s; want %d and a line that says %q", path, answer.StatusCode, text, status, why)
		}
	default:
		wantProblem(t, answer, text, status, code)
	}
}

// untouched fails when a session has got a turn, or lost what it had.
func (c *client) untouched(id session.ID, events int) {
	c.t.Helper()
	if got := len(c.events(id)); got != events {
		c.t.Errorf("the session has %d events, want %d", got, events)
	}
}

func TestA31OtherSitesGetNothing(t *testing.T) {
	w := start(t, setup{manifest: "[server]\nallowed_origins = [\"https://app.test\"]\n"})
	id := w.newSession()
	turn := w.say(id, "hello")
	events := len(w.events(id))
	all := w.routes(id, turn.ID)

	// (i) What a form of another site can send.
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json"} {
		answer, text := w.ask("POST", turnsOf(id), "", `{"input":"from elsewhere"}`, "Content-Type", contentType, "Origin", "http://evil.test")
		wantProblem(t, answer, text, http.StatusForbidden, "cross_origin")
	}
	answer, text := w.ask("POST", turnsOf(id), "", `{"input":"no JSON"}`, "Content-Type", "text/plain")
	wantProblem(t, answer, text, http.StatusUnsupportedMediaType, "unsupported_media_type")

	// (ii) A name of another that was made to point here.
	port := w.url[strings.LastIndex(w.url, ":"):]
	for _, host := range []string{"evil.test" + port, "evil.test", "127.0.0.1.evil.test" + port} {
		for _, r := range all {
			answer, text := w.ask(r.method, r.path, host, "")
			wantRefusal(t, answer, text, http.StatusMisdirectedRequest, "misdirected_host", "allowed_hosts")
		}
	}

	// (iii) No other origin may read, with or without a preflight.
	for _, origin := range []string{"http://evil.test", "null", "https://app.test.evil.test", "http://app.test"} {
		for _, r := range all {
			answer, _ := w.ask("OPTIONS", r.path, "", "", "Origin", origin, "Access-Control-Request-Method", r.method, "Access-Control-Request-Headers", "authorization")
			for name := range answer.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("preflight of %s for %s %s: %s is %q", origin, r.method, r.path, name, answer.Header.Get(name))
				}
			}
		}
		answer, _ := w.ask("GET", "/v1/sessions", "", "", "Origin", origin)
		if got := answer.Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s may read: %q", origin, got)
		}
	}
	w.untouched(id, events)

	// (iv) An allowed origin can do all of it.
	own := []string{"Origin", "https://app.test"}
	answer, _ = w.ask("OPTIONS", turnsOf(id), "", "", append(own, "Access-Control-Request-Method", "POST")...)
	if answer.StatusCode != http.StatusNoContent || answer.Header.Get("Access-Control-Allow-Origin") != "https://app.test" || !strings.Contains(answer.Header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight of an allowed origin: %d %v", answer.StatusCode, answer.Header)
	}
	stream := w.postStream(id, "from the app", own...)
	if got := stream.answer.Header.Get("Access-Control-Allow-Origin"); got != "https://app.test" {
		t.Errorf("the app may not read its turn: %q", got)
	}
	if all := stream.rest(); len(all) == 0 || all[len(all)-1].Type != session.EventTurnCompleted {
		t.Errorf("the turn of the app: %v", all)
	}
	w.stillFine(id)
}

func TestA31KeysOpenWhatHoldsData(t *testing.T) {
	const key = "lk_TEST"
	w := start(t, setup{manifest: fmt.Sprintf("[server.keys]\nalice = \"sha256:%x\"\n", sha256.Sum256([]byte(key)))})
	known := []string{"Content-Type", "application/json", "Authorization", "Bearer " + key}
	_, text := w.ask("POST", "/v1/sessions", "", "{}", known...)
	var s session.Session
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.ID == "" {
		t.Fatalf("a session with a key: %s", text)
	}
	_, text = w.ask("POST", turnsOf(s.ID), "", `{"input":"hi"}`, append(known, "Accept", "text/event-stream")...)
	if !strings.Contains(text, "event: turn.completed\n") {
		t.Errorf("a turn with a key: %s", text)
	}
	var turn session.Turn
	_, data, _ := strings.Cut(text, `"turn":`)
	if err := json.NewDecoder(strings.NewReader(data)).Decode(&turn); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.routes(s.ID, turn.ID) {
		for _, authorization := range []string{"", "Bearer", "Bearer lk_OTHER", "Basic " + key, key} {
			headers := []string{"Content-Type", "application/json"}
			if authorization != "" {
				headers = append(headers, "Authorization", authorization)
			}
			answer, text := w.ask(r.method, r.path, "", "", headers...)
			switch {
			case r.open && answer.StatusCode != http.StatusOK:
				t.Errorf("%s %s is open, but answers %d %.200s", r.method, r.path, answer.StatusCode, text)
			case r.open && (strings.Contains(text, string(s.ID)) || strings.Contains(text, "alice")):
				t.Errorf("%s %s is open and holds data: %.400s", r.method, r.path, text)
			case !r.open:
				wantRefusal(t, answer, text, http.StatusUnauthorized, "unauthorized", "key")
			}
		}
	}
	// Nothing was done without the key: the session is there, with its one turn.
	_, text = w.ask("GET", turnsOf(s.ID), "", "", known...)
	if strings.Count(text, `"state":"completed"`) != 1 {
		t.Errorf("turns after all that: %s", text)
	}
}
