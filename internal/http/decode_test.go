package http

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

func TestBadBodiesAreRefused(t *testing.T) {
	const turns, sessions = "/v1/sessions/" + string(testSession) + "/turns", "/v1/sessions"
	tests := []struct {
		name, path, body string
		code             code
		detail           string       // part of it
		errors           []fieldError // all of them
	}{
		{"empty", turns, " ", codeInvalidJSON, "after byte 1 of 1", nil},
		{"cut", turns, `{"input":"hel`, codeInvalidJSON, "after byte 13 of 13", nil},
		{"malformed", turns, `{"input":hello}`, codeInvalidJSON, "after byte 10 of 15", nil},
		{"trailing value", turns, `{"input":"a"} {}`, codeInvalidJSON, "after byte 15 of 16", nil},
		{"trailing text", turns, `{"input":"a"}x`, codeInvalidJSON, "after top-level value", nil},
		{"array", turns, `[]`, codeInvalidJSON, "must be a JSON object", nil},
		{"null", turns, `null`, codeInvalidJSON, "must be a JSON object", nil},
		{"string", turns, `"input"`, codeInvalidJSON, "must be a JSON object", nil},
		{"too deep", turns, strings.Repeat("[", 20000), codeInvalidJSON, "depth", nil},
		{"unknown field", turns, `{"input":"a","inputs":1}`, codeInvalidField, "", []fieldError{{"/inputs", "is unknown"}}},
		{"wrong case", turns, `{"Input":"a"}`, codeInvalidField, "", []fieldError{{"/input", "is missing: it must be a string that is not blank"}, {"/Input", "is unknown"}}},
		{"name to escape", turns, `{"input":"a","a/b~c":1}`, codeInvalidField, "", []fieldError{{"/a~1b~0c", "is unknown"}}},
		{"missing input", turns, `{}`, codeInvalidField, "", []fieldError{{"/input", "is missing: it must be a string that is not blank"}}},
		{"null input", turns, `{"input":null}`, codeInvalidField, "", []fieldError{{"/input", "must be a string"}}},
		{"input no string", turns, `{"input":["a"]}`, codeInvalidField, "", []fieldError{{"/input", "must be a string"}}},
		{"blank input", turns, `{"input":" \n\t\u00a0\u2003"}`, codeInvalidField, "", []fieldError{{"/input", "is blank: it must hold some text"}}},
		{"unknown mode", turns, `{"input":"a","mode":"push"}`, codeInvalidField, "", []fieldError{{"/mode", `must be one of ["enqueue" "reject" "interrupt" "steer"]`}}},
		{"empty mode", turns, `{"input":"a","mode":""}`, codeInvalidField, "", []fieldError{{"/mode", `must be one of ["enqueue" "reject" "interrupt" "steer"]`}}},
		{"steer nothing", turns, `{"input":"a","mode":"steer"}`, codeInvalidField, "", []fieldError{{"/expected_turn", `is missing: mode "steer" needs the id of the running turn`}}},
		{"steer no turn", turns, `{"input":"a","mode":"steer","expected_turn":"it"}`, codeInvalidField, "", []fieldError{{"/expected_turn", "must be the id of a turn"}}},
		{"expect without steering", turns, `{"input":"a","expected_turn":"trn_01940f3e8c0d7e52a9d13b7f60c4d8e2"}`, codeInvalidField, "", []fieldError{{"/expected_turn", `goes with mode "steer" only`}}},
		{"all at once", turns, `{"input":1,"mode":2,"x":3}`, codeInvalidField, "/input must be a string", []fieldError{{"/input", "must be a string"}, {"/mode", "must be a string"}, {"/x", "is unknown"}}},
		{"title no string", sessions, `{"title":7}`, codeInvalidField, "", []fieldError{{"/title", "must be a string"}}},
		{"title too long", sessions, `{"title":"` + strings.Repeat("é", maxTitleBytes/2) + `x"}`, codeInvalidField, "", []fieldError{{"/title", "has 16385 bytes, at most 16384 are allowed"}}},
		{"empty project", sessions, `{"project":""}`, codeInvalidField, "", []fieldError{{"/project", "must not be empty: leave it out for the default one"}}},
		{"metadata no object", sessions, `{"metadata":[]}`, codeInvalidField, "", []fieldError{{"/metadata", "must be an object of strings"}}},
		{"metadata with numbers", sessions, `{"metadata":{"a":1}}`, codeInvalidField, "", []fieldError{{"/metadata", "must be an object of strings"}}},
		{"metadata with null", sessions, `{"metadata":{"a":null}}`, codeInvalidField, "", []fieldError{{"/metadata", "must be an object of strings, none of which is null or has an empty name"}}},
		{"metadata without name", sessions, `{"metadata":{"":"a"}}`, codeInvalidField, "", []fieldError{{"/metadata", "must be an object of strings, none of which is null or has an empty name"}}},
		{"metadata too large", sessions, `{"metadata":{"a":"` + strings.Repeat("x", maxMetadataBytes) + `"}}`, codeInvalidField, "", []fieldError{{"/metadata", "has 1 names and 16385 bytes, at most 64 and 16384 are allowed"}}},
		{"metadata too many", sessions, manyNames(65), codeInvalidField, "", []fieldError{{"/metadata", "has 65 names and 195 bytes, at most 64 and 16384 are allowed"}}},
		{"turn field in a session", sessions, `{"input":"a"}`, codeInvalidField, "", []fieldError{{"/input", "is unknown"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{}
			w := ask(t, newTestServer(t, f), "POST", test.path, test.body)
			p := wantProblem(t, w, test.code)
			if w.Code != 400 || !strings.Contains(p.Detail, test.detail) {
				t.Errorf("answer %d %q, want 400 and %q", w.Code, p.Detail, test.detail)
			}
			if diff := cmp.Diff(test.errors, p.Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if len(f.created)+len(f.submitted) > 0 {
				t.Error("a refused request was carried out")
			}
		})
	}
}

func manyNames(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf(`"n%02d":""`, i))
	}
	return `{"metadata":{` + strings.Join(fields, ",") + `}}`
}

func TestGoodBodiesReachTheHost(t *testing.T) {
	tests := []struct {
		name, body string
		want       submitted
	}{
		{"plain", `{"input":"hi"}`, submitted{"hi", session.ModeEnqueue, nil}},
		{"mode", `{"input":"hi","mode":"reject"}`, submitted{"hi", session.ModeReject, nil}},
		{"last duplicate counts", `{"input":1,"input":"hi"}`, submitted{"hi", session.ModeEnqueue, nil}},
		{"space around", " \n{\"input\": \"hi\"} \n", submitted{"hi", session.ModeEnqueue, nil}},
		{"NUL", `{"input":"a\u0000b"}`, submitted{"a\uFFFDb", session.ModeEnqueue, nil}},
		{"lone surrogate", `{"input":"a\ud800b"}`, submitted{"a\uFFFDb", session.ModeEnqueue, nil}},
		{"bad bytes", "{\"input\":\"a\xff\xfeb\"}", submitted{"a\uFFFD\uFFFDb", session.ModeEnqueue, nil}},
		{"inner space stays", `{"input":"  hi \n"}`, submitted{"  hi \n", session.ModeEnqueue, nil}},
		{"a MiB of emoji", `{"input":"` + strings.Repeat("😀", (1<<20-12)/4) + `"}`, submitted{strings.Repeat("😀", (1<<20-12)/4), session.ModeEnqueue, nil}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{}
			w := ask(t, newTestServer(t, f), "POST", sessionPath(testSession)+"/turns", test.body)
			if w.Code != 202 || w.Header().Get("Location") != sessionPath(testSession)+"/turns/"+string(testTurn) {
				t.Fatalf("answer %d %.200s, Location %q", w.Code, w.Body, w.Header().Get("Location"))
			}
			if len(f.submitted) != 1 || f.submitted[0] != test.want {
				t.Errorf("submitted %.200v, want %.200v", f.submitted, test.want)
			}
		})
	}
}

func TestSessionFieldsReachTheHost(t *testing.T) {
	f := &fake{}
	s := newTestServer(t, f)
	w := ask(t, s, "POST", "/v1/sessions", `{"project":"docs","title":"a\u0000","metadata":{"k\u0000":"v\u0000","<":"&"}}`)
	if w.Code != 201 || w.Header().Get("Location") != sessionPath(testSession) || !strings.Contains(w.Body.String(), `"<":"&"`) {
		t.Errorf("answer %d %s, Location %q", w.Code, w.Body, w.Header().Get("Location"))
	}
	ask(t, s, "POST", "/v1/sessions", `{}`)
	ask(t, s, "PATCH", sessionPath(testSession), `{"metadata":{}}`)
	ask(t, s, "PATCH", sessionPath(testSession), `{"title":""}`)
	type fields struct {
		project, title string
		metadata       map[string]string
	}
	var got []fields
	for _, s := range append(f.created, f.updated...) {
		got = append(got, fields{s.Project, s.Title, s.Metadata})
	}
	want := []fields{
		{"docs", "a\uFFFD", map[string]string{"k\uFFFD": "v\uFFFD", "<": "&"}},
		{"", "", map[string]string{}},
		{"", "", map[string]string{}},
		{"", "", nil},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(fields{})); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestOtherMediaTypesAreRefused(t *testing.T) {
	tests := []struct {
		name, header string
		ok           bool
	}{
		{"JSON", "Content-Type: application/json", true},
		{"upper case", "Content-Type: Application/JSON", true},
		{"charset", "Content-Type: application/json; charset=UTF-8", true},
		{"other charset", "Content-Type: application/json; charset=latin1", false},
		{"text", "Content-Type: text/plain", false},
		{"form", "Content-Type: application/x-www-form-urlencoded", false},
		{"near miss", "Content-Type: application/jsonp", false},
		{"malformed", "Content-Type: application/json; charset", false},
		{"none", "Content-Type: ", false},
		{"gzip", "Content-Encoding: gzip", false},
		{"identity", "Content-Encoding: identity", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{}
			w := ask(t, newTestServer(t, f), "POST", sessionPath(testSession)+"/turns", `{"input":"a"}`, test.header)
			if test.ok {
				if w.Code != 202 {
					t.Errorf("answer %d %s, want 202", w.Code, w.Body)
				}
				return
			}
			wantProblem(t, w, codeUnsupportedMedia)
			if w.Code != 415 || len(f.submitted) > 0 {
				t.Errorf("status %d and %d turns, want 415 and none", w.Code, len(f.submitted))
			}
		})
	}
}

func TestLargeBodiesAreRefused(t *testing.T) {
	s := newTestServer(t, &fake{}, func(c *Config) { c.Settings.BodyMaxBytes = 100 })
	fits := `{"input":"` + strings.Repeat("x", 88) + `"}`
	if w := ask(t, s, "POST", sessionPath(testSession)+"/turns", fits); w.Code != 202 {
		t.Errorf("a body of exactly the limit: %d %s", w.Code, w.Body)
	}
	wantProblem(t, ask(t, s, "POST", sessionPath(testSession)+"/turns", fits+" "), codeBodyTooLarge)
	wantProblem(t, ask(t, s, "POST", sessionPath(testSession)+"/turns", fits+" ", "Expect: 100-continue"), codeBodyTooLarge)
}

// A client that sends all before it reads gets the answer, not a reset connection.
func TestLargeBodyIsAnsweredOverARealConnection(t *testing.T) {
	server := httptest.NewServer(newTestServer(t, &fake{}, func(c *Config) { c.Settings.BodyMaxBytes = 1024 }))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const bodyBytes = 7 << 20 // more than the buffers of both ends hold
	head := fmt.Sprintf("POST %s/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", sessionPath(testSession), bodyBytes)
	if _, err := conn.Write(append([]byte(head), make([]byte, bodyBytes)...)); err != nil {
		t.Fatalf("the server stopped reading: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 413 {
		t.Errorf("status = %d, want 413", response.StatusCode)
	}
}

func TestBrokenBodyIsRefused(t *testing.T) {
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(`{"inp`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	r.Header.Set("Content-Type", "application/json")
	_, err := readBody(httptest.NewRecorder(), r, 100)
	if p := asProblem(err); p.Code != codeInvalidJSON || !strings.Contains(p.Detail, "after 5 bytes") {
		t.Errorf("readBody = %v, want %s after 5 bytes", err, codeInvalidJSON)
	}
}

func TestSlowBodyTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes()
		s := newTestServer(t, &fake{})
		defer serve(t, s, listener)()
		started := time.Now()
		client, answer := listener.dial(t, "POST "+sessionPath(testSession)+"/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		defer client.Close()
		response, err := http.ReadResponse(bufio.NewReader(answer), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != 408 || time.Since(started) != readTimeout {
			t.Errorf("status %d after %s, want 408 after %s", response.StatusCode, time.Since(started), readTimeout)
		}
	})
}

// serve serves connections until the returned function is called.
func serve(t testing.TB, s *Server, l *pipes) (stop func()) {
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
}
