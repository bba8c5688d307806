package http

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool/tooltest"
)

// message posts or resumes a turn, and reads the whole message.
func (w *whole) message(method, path, body string) (text string, response *http.Response) {
	w.t.Helper()
	response = w.open(method, path, body)
	stream, err := io.ReadAll(response.Body)
	must(w.t, err)
	if text, err = readUIStream(string(stream)); err != nil {
		w.t.Errorf("%v\n%.3000s", err, stream)
	}
	return text, response
}

// A client leaves in the middle of a text; the turn goes on, and who resumes has all
// of it. The same message sent again is the same turn.
func TestUIMessageIsResumed(t *testing.T) {
	w := startWhole(t, tooltest.Returning("Big", strings.Repeat("日", 50_000)), tooltest.Panicking("Broken", "secret"))
	path := w.newSession()
	gate := make(chan struct{})
	w.model.Add(
		llmtest.Step{Reasoning: []string{"hm"}, Text: []string{"let me see. "}, Calls: []llmtest.Call{{Tool: "Big", Arguments: `{}`}, {Tool: "Broken", Arguments: `[`}}},
		llmtest.Step{Text: []string{"one 日", "two 😀", "three"}, Gate: gate, GateAfter: 2})
	first := w.open("POST", path+"/ai-sdk", uiBody)
	readUntil(t, first.Body, "one 日")
	first.Body.Close()
	resumed := w.open("GET", path+"/ai-sdk/chat-1/stream", "")
	seen := readUntil(t, resumed.Body, "one 日")
	close(gate)
	rest, err := io.ReadAll(resumed.Body)
	must(t, err)
	const want = "let me see. one 日two 😀three"
	if text, err := readUIStream(seen + string(rest)); err != nil || text != want {
		t.Errorf("resumed: %q, %v, want %q\n%.3000s", text, err, want, seen+string(rest))
	}
	for _, part := range []string{`"type":"data-truncated","id":"call_4"`, `"type":"tool-output-error","toolCallId":"call_5"`, `"type":"reasoning-delta"`} {
		if !strings.Contains(seen, part) {
			t.Errorf("the message lacks %s", part)
		}
	}
	text, again := w.message("POST", path+"/ai-sdk", uiBody)
	if text != want || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("sent again: %q, %v", text, again.Header)
	}
	w.model.Add(llmtest.Step{Text: []string{"anew"}})
	regenerate := strings.Replace(uiBody, triggerSubmit, triggerRegenerate, 1)
	if text, _ := w.message("POST", path+"/ai-sdk", regenerate); text != "anew" {
		t.Errorf("answered again: %q", text)
	}
	var turns page[session.Turn]
	w.do(200, &turns, "GET", path+"/turns", "")
	if len(turns.Data) != 2 || turns.Data[0].State != session.TurnCompleted || turns.Data[1].Input != "go" {
		t.Errorf("turns %+v, want two", turns.Data)
	}
	w.do(204, nil, "GET", path+"/ai-sdk/chat-1/stream", "")
	w.do(422, nil, "POST", path+"/ai-sdk", strings.Replace(uiBody, `"go"`, `"stop"`, 1))
}

func readUntil(t *testing.T, r io.Reader, want string) string {
	t.Helper()
	var seen strings.Builder
	for b := make([]byte, 4096); !strings.Contains(seen.String(), want); {
		n, err := r.Read(b)
		must(t, err)
		seen.Write(b[:n])
	}
	return seen.String()
}

// An answer breaks off and is asked for again: the text of the first attempt is void.
func TestUIMessageRestarts(t *testing.T) {
	w := startWhole(t)
	path := w.newSession()
	w.model.Add(llmtest.Step{Text: slices.Repeat([]string{"half "}, 20), CutAfterBytes: 1000, Abort: true}, llmtest.Step{Text: []string{"whole"}})
	response := w.open("POST", path+"/ai-sdk", uiBody)
	void := readUntil(t, response.Body, "data-restarted")
	rest, err := io.ReadAll(response.Body)
	must(t, err)
	if text, err := readUIStream(void + string(rest)); err != nil || text != "whole" || !strings.Contains(void, `"delta":"half`) {
		t.Errorf("the text is %q, %v, want the second one\n%s", text, err, void)
	}
}

// A message enters the running turn; then the server stops.
func TestUIMessageIsSteeredAndInterrupted(t *testing.T) {
	slow, stuck := tooltest.NewBlocking("Slow"), tooltest.NewBlocking("Stuck")
	w := startWhole(t, slow, stuck)
	path := w.newSession()
	w.model.Add(llmtest.Step{Calls: []llmtest.Call{{Tool: "Slow"}}}, llmtest.Step{Text: []string{"so it is"}, Calls: []llmtest.Call{{Tool: "Stuck"}}})
	response := w.open("POST", path+"/ai-sdk", uiBody)
	entered(t, slow)
	running := response.Header.Get("Location")
	w.do(202, nil, "POST", path+"/turns", `{"input":"and <b>quick</b>","mode":"steer","expected_turn":"`+running[strings.LastIndex(running, "/")+1:]+`"}`)
	slow.Release()
	seen := readUntil(t, response.Body, `"so it is"`)
	entered(t, stuck)
	w.host.Stop(0)
	rest, err := io.ReadAll(response.Body)
	must(t, err)
	if _, err := readUIStream(seen + string(rest)); err != nil {
		t.Errorf("%v\n%s%s", err, seen, rest)
	}
	for _, want := range []string{`{"type":"data-input","data":{"text":"and <b>quick</b>"}}`, `"type":"tool-output-error"`, `"state":"interrupted"`, `"type":"error"`} {
		if !strings.Contains(seen+string(rest), want) {
			t.Errorf("the message lacks %s\n%s%s", want, seen, rest)
		}
	}
}
