package http

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

const eventsPath = "/v1/sessions/" + string(testSession) + "/events"

// sample holds events of each shape.
func sample() []session.Event {
	head := func(kind session.EventType, seq int64) session.Event {
		return session.Event{Type: kind, Seq: seq, SessionID: testSession, TurnID: testTurn, At: 1772357460000010}
	}
	turn := session.Turn{ID: testTurn, SessionID: testSession, State: session.TurnQueued, Input: "say <b>\n\"hi\"\u2028", Mode: session.ModeEnqueue, CreatedAt: 1772357460000010}
	queued, item, delta, started, reset := head(session.EventTurnQueued, 1), head(session.EventItem, 2), head(session.EventItemDelta, 2), head(session.EventToolStarted, 2), head(session.EventStreamReset, 0)
	queued.Turn = &turn
	item.Item = &session.Item{N: 1, SessionID: testSession, TurnID: testTurn, At: 1772357460000010, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "data: x\r\n\r\nid: 9\n"}}
	delta.Delta = &session.Delta{ItemN: 2, Kind: session.KindAssistantMessage, AtByte: 0, Text: "line\n\nline 😀", Offset: 15}
	started.Activity = &session.Activity{ItemN: 3, Tool: "Grep"}
	reset.Reset, reset.TurnID = &session.Reset{From: 0}, ""
	return []session.Event{queued, item, delta, started, reset}
}

func TestTranscript(t *testing.T) {
	sub := newScript(sample()[:2], sample()[2:])
	close(sub.events)
	w := ask(t, newTestServer(t, &fake{sub: sub}), "GET", eventsPath, "")
	golden := filepath.Join("testdata", "stream.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, w.Body.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), w.Body.String()); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Encoding": "", "Content-Length": ""} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	<-sub.closed
}

func TestCursorChoice(t *testing.T) {
	start, live := session.Cursor{Offset: -1}, session.Cursor{Offset: -1, Live: true}
	tests := []struct {
		name, query, header string
		want                session.Cursor
		refused             bool
	}{
		{"none", "", "", start, false},
		{"zero", "?after=0", "", start, false},
		{"empty", "?after=", "", start, false},
		{"seq", "?after=42", "", session.Cursor{Seq: 42, Offset: -1}, false},
		{"offset", "?after=42.7", "", session.Cursor{Seq: 42, Offset: 7}, false},
		{"now", "?after=now", "", live, false},
		{"header", "", "42.1375", session.Cursor{Seq: 42, Offset: 1375}, false},
		{"header before parameter", "?after=7", "42", session.Cursor{Seq: 42, Offset: -1}, false},
		{"header before now", "?after=now", "42", session.Cursor{Seq: 42, Offset: -1}, false},
		{"header before a bad parameter", "?after=x", "42", session.Cursor{Seq: 42, Offset: -1}, false},
		{"now in the header", "", "now", start, true},
		{"text in the header", "", "abc", start, true},
		{"bad header, good parameter", "?after=7", "abc", start, true},
		{"text", "?after=abc", "", start, true},
		{"negative", "?after=-1", "", start, true},
		{"two points", "?after=1.2.3", "", start, true},
		{"no offset", "?after=1.", "", start, true},
		{"no seq", "?after=.1", "", start, true},
		{"beyond int64", "?after=9223372036854775808", "", start, true},
		{"space", "?after=%201", "", start, true},
		{"malformed query", "?after=%", "", start, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{sub: ended()}
			w := ask(t, newTestServer(t, f), "GET", eventsPath+test.query, "", "Last-Event-ID: "+test.header)
			if test.refused {
				if w.Code != 400 || len(f.from) > 0 {
					t.Errorf("status %d after %v, want 400 and no subscription", w.Code, f.from)
				}
				return
			}
			if w.Code != 200 || len(f.from) != 1 || f.from[0] != test.want {
				t.Errorf("status %d, subscribed from %v, want %v", w.Code, f.from, test.want)
			}
		})
	}
}

func TestAcceptChoosesTheForm(t *testing.T) {
	tests := []struct {
		method, path, accept, want string
	}{
		{"GET", eventsPath, "", "text/event-stream"},
		{"GET", eventsPath, "*/*", "text/event-stream"},
		{"GET", eventsPath, "text/event-stream", "text/event-stream"},
		{"GET", eventsPath, "application/json", "application/json"},
		{"GET", eventsPath, "application/json, */*;q=0.5", "application/json"},
		{"GET", eventsPath, "application/json, text/event-stream", "text/event-stream"},
		{"GET", eventsPath, "application/json;q=0.5, text/event-stream;q=0.4", "application/json"},
		{"GET", eventsPath, "application/json;q=0", "text/event-stream"},
		{"GET", eventsPath, ";;, application/json", "application/json"},
		{"POST", turnsPath, "", "application/json"},
		{"POST", turnsPath, "*/*", "application/json"},
		{"POST", turnsPath, "text/event-stream", "text/event-stream"},
		{"POST", turnsPath, "Text/Event-Stream; charset=utf-8", "text/event-stream"},
		{"POST", turnsPath, "application/json, text/event-stream", "application/json"},
		{"POST", turnsPath, "text/event-stream, application/json;q=0.9", "text/event-stream"},
		{"POST", turnsPath, "text/event-stream-2", "application/json"},
	}
	for _, test := range tests {
		s := newTestServer(t, &fake{sub: ended()})
		body := map[string]string{"POST": `{"input":"a"}`}[test.method]
		w := ask(t, s, test.method, test.path, body, "Accept: "+test.accept)
		if got := w.Header().Get("Content-Type"); got != test.want {
			t.Errorf("%s with Accept %q: %d %s, want %s", test.method, test.accept, w.Code, got, test.want)
		}
	}
}

func TestTurnStreamNamesTheTurn(t *testing.T) {
	sub := newScript(sample()[:1])
	close(sub.events)
	w := ask(t, newTestServer(t, &fake{sub: sub, replayed: true}), "POST", turnsPath, `{"input":"a"}`, "Accept: text/event-stream")
	if w.Code != 200 || w.Header().Get("Location") != turnsPath+"/"+string(testTurn) || w.Header().Get("Idempotency-Replayed") != "true" || !strings.HasPrefix(w.Body.String(), "id: 1\nevent: turn.queued\n") {
		t.Errorf("answer %d, headers %v, %s", w.Code, w.Header(), w.Body)
	}
}

func TestEventPagesAreOfTheirOwn(t *testing.T) {
	f := &fake{events: sample()[:2]}
	s := newTestServer(t, f)
	w := ask(t, s, "GET", eventsPath+"?limit=1", "", "Accept: application/json")
	if w.Code != 200 || !strings.HasSuffix(w.Body.String(), `"next_cursor":"1"}`) {
		t.Errorf("first page: %d %s", w.Code, w.Body)
	}
	w = ask(t, s, "GET", eventsPath+"?limit=1&cursor=1", "", "Accept: application/json")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"type":"item"`) || strings.Contains(w.Body.String(), "next_cursor") {
		t.Errorf("last page: %d %s", w.Code, w.Body)
	}
	wantProblem(t, ask(t, s, "GET", eventsPath+"?after=1", "", "Accept: application/json"), codeInvalidParameter)
}

func TestHeadOfAStreamEnds(t *testing.T) {
	sub := newScript()
	w := ask(t, newTestServer(t, &fake{sub: sub}), "HEAD", eventsPath, "")
	if w.Code != 200 || w.Header().Get("Content-Type") != eventStream {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
	<-sub.closed
}
