package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

// Bad input is refused by name, and nothing comes of it.
func TestBadBodiesLeaveNothing(t *testing.T) {
	const maxBytes = 1 << 20 // server.body_max_bytes
	w := start(t, setup{})
	id := w.newSession()
	w.say(id, "hello")
	events := len(w.events(id))
	turns, sessions, one := turnsOf(id), "/v1/sessions", "/v1/sessions/"+string(id)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code                     string
	}{
		{"empty", "POST", turns, " ", 400, "invalid_json"},
		{"malformed", "POST", turns, `{"input":hello}`, 400, "invalid_json"},
		{"cut", "POST", turns, `{"input":"hel`, 400, "invalid_json"},
		{"two values", "POST", turns, `{"input":"a"}{"input":"b"}`, 400, "invalid_json"},
		{"a list", "POST", turns, `[{"input":"a"}]`, 400, "invalid_json"},
		{"too deep", "POST", turns, strings.Repeat(`{"input":`, 50_000), 400, "invalid_json"},
		{"unknown field", "POST", turns, `{"input":"a","stream":true}`, 400, "invalid_field"},
		{"unknown mode", "POST", turns, `{"input":"a","mode":"later"}`, 400, "invalid_field"},
		{"mode in the wrong case", "POST", turns, `{"input":"a","mode":"Enqueue"}`, 400, "invalid_field"},
		{"blank input", "POST", turns, `{"input":" \t\r\n\u00a0\u2028"}`, 400, "invalid_field"},
		{"empty input", "POST", turns, `{"input":""}`, 400, "invalid_field"},
		{"no input", "POST", turns, `{}`, 400, "invalid_field"},
		{"input that is no text", "POST", turns, `{"input":{"text":"a"}}`, 400, "invalid_field"},
		{"oversized", "POST", turns, `{"input":"` + strings.Repeat("x", maxBytes) + `"}`, 413, "body_too_large"},
		{"oversized by one byte", "POST", turns, `{"input":"` + strings.Repeat("x", maxBytes-11) + `"}`, 413, "body_too_large"},
		{"a MiB of emoji", "POST", turns, `{"input":"` + strings.Repeat("😀", maxBytes/4) + `"}`, 413, "body_too_large"},
		{"oversized and malformed", "POST", turns, strings.Repeat("{", maxBytes+1), 413, "body_too_large"},
		{"session with an unknown field", "POST", sessions, `{"name":"a"}`, 400, "invalid_field"},
		{"session in an unknown project", "POST", sessions, `{"project":"nope"}`, 422, "unknown_project"},
		{"session in a project without a name", "POST", sessions, `{"project":""}`, 400, "invalid_field"},
		{"session with numbers as metadata", "POST", sessions, `{"metadata":{"a":1}}`, 400, "invalid_field"},
		{"session that is no object", "POST", sessions, `"a"`, 400, "invalid_json"},
		{"change of what cannot be changed", "PATCH", one, `{"title":"b","project":"c"}`, 400, "invalid_field"},
		{"oversized title", "PATCH", one, `{"title":"` + strings.Repeat("x", 20_000) + `"}`, 400, "invalid_field"},
		{"cut change", "PATCH", one, `{"title":"b"`, 400, "invalid_json"},
	} {
		answer, text := w.ask(c.method, c.path, "", c.body, "Content-Type", "application/json")
		t.Run(c.name, func(t *testing.T) { wantProblem(t, answer, text, c.status, c.code) })
	}
	w.untouched(id, events)
	if got := pages[session.Session](w.client, sessions); len(got) != 1 || got[0].Title != "" {
		t.Errorf("sessions after all that: %+v", got)
	}
	w.stillFine(id)
}

// The largest input that fits runs, and is the same wherever it is read.
func TestLargestInputIsKeptWhole(t *testing.T) {
	input := strings.Repeat("😀", (1<<20-len(`{"input":""}`))/4)
	w := start(t, setup{manifest: window(2_000_000)})
	id := w.newSession()
	answer, text := w.ask("POST", turnsOf(id), "", `{"input":"`+input+`"}`, "Content-Type", "application/json", "Accept", "text/event-stream")
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "event: turn.completed\n") {
		t.Fatalf("the turn: %d %.300s", answer.StatusCode, text)
	}
	if got := w.model.Requests()[0].Messages[0].Text; got != input {
		t.Errorf("the model was sent %d bytes, want %d", len(got), len(input))
	}
	s := w.stream(id, "")
	streamed := s.until(func(ev session.Event) bool { return ev.Item != nil })
	s.close()
	w.restart()
	for name, item := range map[string]session.Item{"stream": *streamed.Item, "history": w.items(id)[0]} {
		if item.UserMessage == nil || item.UserMessage.Text != input {
			t.Errorf("the %s holds another text: %.100v", name, item)
		}
	}
	w.stillFine(id)
}

func TestIDsThatNameNothingAreNotFound(t *testing.T) {
	w := start(t, setup{})
	id, other, gone := w.newSession(), w.newSession(), w.newSession()
	turn := w.say(id, "hello")
	foreign := w.say(other, "hello")
	w.ask("DELETE", "/v1/sessions/"+string(gone), "", "")
	json := []string{"Content-Type", "application/json"}
	body := map[string]string{"POST": `{"input":"a"}`, "PATCH": `{"title":"a"}`}
	notFound := func(method, path string) {
		t.Helper()
		sent := body[method]
		if strings.HasSuffix(path, "/cancel") {
			sent = ""
		}
		answer, text := w.ask(method, path, "", sent, json...)
		wantProblem(t, answer, text, http.StatusNotFound, "not_found")
	}
	for _, bad := range []string{string(gone), "ses_00000000000000000000000000000000", string(turn.ID), "ses_", "ses_" + strings.Repeat("g", 32), strings.ToUpper(string(id)), string(id) + "0", "x", "%00", "..%2f..", strings.Repeat("s", 5000)} {
		at := "/v1/sessions/" + bad
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			notFound(method, at)
		}
		for _, path := range []string{"/turns", "/turns/" + string(turn.ID), "/items", "/items/1", "/events"} {
			notFound("GET", at+path)
		}
		notFound("POST", at+"/turns")
		notFound("POST", at+"/turns/"+string(turn.ID)+"/cancel")
	}
	for _, bad := range []string{string(foreign.ID), "trn_00000000000000000000000000000000", string(id), "x", "1"} {
		notFound("GET", turnsOf(id)+"/"+bad)
		notFound("POST", turnsOf(id)+"/"+bad+"/cancel")
	}
	for _, bad := range []string{"0", "3", "-1", "01", "1.0", "9223372036854775807", "9223372036854775808", "x"} {
		notFound("GET", fmt.Sprintf("/v1/sessions/%s/items/%s", id, bad))
	}
	for _, s := range []session.ID{id, other} {
		w.stillFine(s)
	}
}

func TestPagesAtTheirEdges(t *testing.T) {
	w := start(t, setup{})
	id := w.newSession()
	empty := w.newSession()
	for range 3 {
		w.say(id, "hello") // each of them two items, five events
	}
	items, events, turns := fmt.Sprintf("/v1/sessions/%s/items", id), fmt.Sprintf("/v1/sessions/%s/events", id), turnsOf(id)
	all := w.turnIDs(turns)
	for _, c := range []struct {
		path string
		size int  // of the page
		more bool // it has a next_cursor
	}{
		{items + "?limit=1", 1, true},
		{items + "?limit=5", 5, true},
		{items + "?limit=6", 6, false}, // exactly all of them
		{items + "?limit=200", 6, false},
		{items + "?cursor=", 6, false},
		{items + "?limit=5&cursor=1", 5, false},
		{items + "?limit=4&cursor=1", 4, true},
		{items + "?cursor=5", 1, false},
		{items + "?cursor=6", 0, false},
		{items + "?cursor=9223372036854775807", 0, false},
		{events + "?limit=200", len(w.events(id)), false},
		{fmt.Sprintf("%s?limit=%d", events, len(w.events(id))), len(w.events(id)), false},
		{fmt.Sprintf("%s?limit=%d", events, len(w.events(id))-1), len(w.events(id)) - 1, true},
		{turns + "?limit=2", 2, true},
		{turns + "?limit=3", 3, false},
		{turns + "?cursor=" + all[0], 2, false},
		{turns + "?cursor=" + all[2], 0, false},
		{turns + "?cursor=trn_ffffffffffffffffffffffffffffffff", 0, false},
		{turns + "?cursor=trn_00000000000000000000000000000000", 3, false},
		{"/v1/sessions?limit=1", 1, true},
		{"/v1/sessions?limit=2", 2, false},
		{"/v1/sessions?cursor=" + string(empty), 1, false},
		{"/v1/sessions?cursor=" + string(id), 0, false},
		{fmt.Sprintf("/v1/sessions/%s/items", empty), 0, false},
		{fmt.Sprintf("/v1/sessions/%s/events", empty), 0, false},
		{turnsOf(empty), 0, false},
	} {
		var page struct {
			Data       []any
			NextCursor *string `json:"next_cursor"`
		}
		answer := w.do("GET", c.path, nil, &page, "Accept", "application/json")
		if answer.StatusCode != http.StatusOK || page.Data == nil || len(page.Data) != c.size || (page.NextCursor != nil) != c.more {
			t.Errorf("GET %s: %d, %d entries, next %v; want %d entries and more %v", c.path, answer.StatusCode, len(page.Data), page.NextCursor, c.size, c.more)
		}
	}
	for _, list := range []string{"/v1/sessions", turns, items, events} {
		for _, query := range []string{"limit=0", "limit=201", "limit=-1", "limit=", "limit=1e2", "limit=%31%30%30%30", "limit=99999999999999999999", "limit=%zz"} {
			answer, text := w.ask("GET", list+"?"+query, "", "", "Accept", "application/json")
			wantProblem(t, answer, text, http.StatusBadRequest, "invalid_parameter")
		}
		for _, cursor := range []string{"abc", "-1", "1.5", "+1", "%201", "9223372036854775808", "now", "%00", "ses_", strings.Repeat("1", 1000)} {
			answer, text := w.ask("GET", list+"?cursor="+cursor, "", "", "Accept", "application/json")
			wantProblem(t, answer, text, http.StatusBadRequest, "invalid_cursor")
		}
	}
	answer, text := w.ask("GET", turns+"?cursor="+string(id), "", "")
	wantProblem(t, answer, text, http.StatusBadRequest, "invalid_cursor")
	w.stillFine(id)
}

func (c *client) turnIDs(path string) []string {
	c.t.Helper()
	var ids []string
	for _, turn := range pages[session.Turn](c, path) {
		ids = append(ids, string(turn.ID))
	}
	return ids
}

// The cursor of a session that has been deleted goes on where it was.
func TestPagesGoOnWithoutTheirCursor(t *testing.T) {
	w := start(t, setup{})
	var want []session.ID
	for range 6 {
		want = append([]session.ID{w.newSession()}, want...)
	}
	var got []session.ID
	for cursor := ""; ; {
		var page struct {
			Data       []session.Session
			NextCursor string `json:"next_cursor"`
		}
		w.do("GET", "/v1/sessions?limit=2&cursor="+cursor, nil, &page)
		for _, s := range page.Data {
			got = append(got, s.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
		w.ask("DELETE", "/v1/sessions/"+cursor, "", "")
		w.newSession()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

func TestBadCursorsOfAStream(t *testing.T) {
	w := start(t, setup{})
	id := w.newSession()
	w.say(id, "hello")
	path := fmt.Sprintf("/v1/sessions/%s/events", id)
	for _, cursor := range []string{"abc", "-1", "1.", ".1", "1.-1", "1.2.3", "1.x", "01", "1.01", "0x1", "1e3", "9223372036854775808", "1.9223372036854775808", "1,5", "null", strings.Repeat("9", 1000)} {
		answer, text := w.ask("GET", path, "", "", "Last-Event-ID", cursor)
		wantProblem(t, answer, text, http.StatusBadRequest, "invalid_cursor")
		answer, text = w.ask("GET", path+"?after="+cursor, "", "")
		wantProblem(t, answer, text, http.StatusBadRequest, "invalid_cursor")
		answer, text = w.ask("GET", path+"?after=0", "", "", "Last-Event-ID", cursor) // the header wins
		wantProblem(t, answer, text, http.StatusBadRequest, "invalid_cursor")
	}
	answer, text := w.ask("GET", path, "", "", "Last-Event-ID", "now") // only ?after= may say it
	wantProblem(t, answer, text, http.StatusBadRequest, "invalid_cursor")
	for cursor, from := range map[string]int64{"999": 0, "9223372036854775807": 0, "999.5": 0, "3.1": -1, "3": -1} {
		s := w.stream(id, cursor)
		first := s.next()
		s.close()
		if reset := first.Type == session.EventStreamReset; reset != (from == 0) || reset && first.Reset.From != from || !reset && first.Seq != 4 {
			t.Errorf("after %s the stream begins with %+v", cursor, first)
		}
	}
	w.stillFine(id)
}
