package http

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loadline/internal/session"
)

const (
	uiPath   = "/v1/sessions/" + string(testSession) + "/ai-sdk"
	uiResume = uiPath + "/chat-1/stream"
	uiBody   = `{"id":"chat-1","trigger":"submit-message","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"go"}]}]}`
)

func TestUIMessageTranscript(t *testing.T) {
	events := rich()
	sub := newScript(events[:5], events[5:])
	close(sub.events)
	f := &fake{sub: sub}
	w := ask(t, newTestServer(t, f), "POST", uiPath, uiBody)
	golden(t, "aisdk.golden", w.Body.String())
	<-sub.closed
	got := f.submitted[0]
	if got.input != "go" || got.mode != session.ModeEnqueue || got.key == nil || !strings.HasPrefix(got.key.Key, "ai-sdk:") {
		t.Errorf("submitted %+v", got)
	}
	for name, want := range map[string]string{"Content-Type": eventStream, "X-Vercel-Ai-Ui-Message-Stream": "v1", "Location": turnsPath + "/" + string(testTurn)} {
		if w.Header().Get(name) != want {
			t.Errorf("%s = %q, want %q", name, w.Header().Get(name), want)
		}
	}
}

// Wherever a turn ends, nothing is open and one frame is the last.
func TestUIMessageEndsWhatIsOpen(t *testing.T) {
	events := rich()
	ends := map[session.TurnState]string{
		session.TurnCompleted:   `{"type":"finish","finishReason":"stop",`,
		session.TurnCancelled:   `{"type":"abort"}`,
		session.TurnFailed:      `{"type":"error","errorText":"no"}`,
		session.TurnInterrupted: `{"type":"error","errorText":"no"}`,
		"":                      `{"type":"error","errorText":"the stream broke off`, // no terminal event at all
	}
	for n := 1; n < len(events); n++ {
		for state, want := range ends {
			cut := events[:n:n]
			if state != "" {
				cut = append(cut, session.Event{Type: session.TerminalEvent(state), Turn: &session.Turn{State: state, Error: &session.TurnError{Code: session.CodeProviderError, Detail: "no"}}})
			}
			sub := newScript(cut)
			close(sub.events)
			w := ask(t, newTestServer(t, &fake{sub: sub, turns: []session.Turn{{ID: testTurn, SessionID: testSession}}}), "GET", uiResume, "")
			if _, err := readUIStream(w.Body.String()); err != nil || !strings.Contains(w.Body.String(), "data: "+want) {
				t.Errorf("after %d events and %q: %v, or it lacks %s\n%s", n, state, err, want, w.Body)
			}
		}
	}
}

// readUIStream plays a strict client: it returns the text of the message.
func readUIStream(body string) (text string, err error) {
	frames := strings.Split(body, "\n\n")
	if len(frames) < 3 || frames[len(frames)-1] != "" || frames[len(frames)-2] != "data: [DONE]" {
		return "", errors.New("it does not end with [DONE]")
	}
	open, calls, step := map[string]bool{}, map[string]bool{}, false
	for i, frame := range frames[:len(frames)-2] {
		var part uiPart
		line, _ := strings.CutPrefix(frame, "data: ")
		if err := json.Unmarshal([]byte(line), &part); err != nil {
			return "", err
		}
		kind, what, _ := strings.Cut(part.Type, "-")
		id := kind + part.ID
		var good bool
		switch {
		case part.Type == "start":
			good = i == 0
		case part.Type == "start-step":
			good, step = !step, true
		case part.Type == "finish-step":
			good, step = step && len(open) == 0, false
		case what == "start":
			good, open[id] = step && !open[id], true
		case what == "delta":
			good = open[id]
			var delta struct{ Delta string }
			_ = json.Unmarshal([]byte(line), &delta)
			if kind == "text" {
				text += delta.Delta
			}
		case what == "end":
			good = open[id]
			delete(open, id)
		case part.Type == "tool-input-available":
			good, calls[part.CallID] = step && !calls[part.CallID], true
		case strings.HasPrefix(part.Type, "tool-output"):
			good = calls[part.CallID]
		case part.Type == "data-restarted":
			text, good = "", len(open) == 0 && step
		case part.Type == "finish", part.Type == "abort", part.Type == "error", part.Type == "message-metadata":
			good = !step
		default:
			good = kind == "data"
		}
		if !good {
			return "", errors.New(frame + " comes at the wrong time")
		}
	}
	return text, nil
}

// wantText checks that w refuses in one line of text, and returns it.
func wantText(t testing.TB, w *httptest.ResponseRecorder, c code) string {
	t.Helper()
	p, text := newProblem(c, ""), w.Body.String()
	if w.Code != p.Status || !strings.HasPrefix(text, p.Title+": ") || len(text) < len(p.Title)+4 || strings.Contains(text, "\n") || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("answer %d %s, want a line of text for %s", w.Code, w.Body, c)
	}
	return text
}

func TestUIMessageRefuses(t *testing.T) {
	body := func(messages string) string { return `{"id":"c","messages":` + messages + `}` }
	parts := func(parts string) string { return body(`[{"id":"m","role":"user","parts":` + parts + `}]`) }
	tests := []struct {
		name, body, pointer string
		code                code
	}{
		{"no JSON", `{`, "", codeInvalidJSON},
		{"a list", `[]`, "", codeInvalidJSON},
		{"nothing", `{}`, "/messages", codeInvalidField},
		{"chat is a number", `{"id":1,"messages":[]}`, "/id", codeInvalidField},
		{"unknown trigger", `{"trigger":"resume-stream","messages":[]}`, "/trigger", codeInvalidField},
		{"messages are text", body(`"hi"`), "/messages", codeInvalidField},
		{"empty", body(`[]`), "/messages", codeInvalidField},
		{"message is null", body(`[null]`), "/messages/0", codeInvalidField},
		{"message is text", body(`["hi"]`), "/messages/0", codeInvalidField},
		{"an answer last", body(`[{"role":"user","parts":[{"type":"text","text":"a"}]},{"role":"assistant","parts":[]}]`), "/messages/1", codeInvalidField},
		{"no parts", body(`[{"role":"user","content":"hi"}]`), "/messages/0/parts", codeInvalidField},
		{"parts are text", body(`[{"role":"user","parts":"hi"}]`), "/messages/0", codeInvalidField},
		{"empty parts", parts(`[]`), "/messages/0/parts", codeInvalidField},
		{"blank text", parts(`[{"type":"text","text":" \n"}]`), "/messages/0/parts", codeInvalidField},
		{"data alone", parts(`[{"type":"data-x","data":{}}]`), "/messages/0/parts", codeInvalidField},
		{"file", parts(`[{"type":"text","text":"a"},{"type":"file","mediaType":"image/png","url":"data:,"}]`), "/messages/0/parts/1", codeInvalidField},
		{"unknown part", parts(`[{"type":"text","text":"a"},{"type":"hologram"}]`), "/messages/0/parts/1", codeInvalidField},
		{"part is null", parts(`[null]`), "/messages/0/parts/0", codeInvalidField},
		{"part is text", parts(`["a"]`), "/messages/0/parts/0", codeInvalidField},
		{"part without text", parts(`[{"type":"text"}]`), "/messages/0/parts/0", codeInvalidField},
		{"large input", parts(`[{"type":"text","text":"` + strings.Repeat("x", 1<<20+1) + `"}]`), "", codeBodyTooLarge},
		{"large body", parts(`[{"type":"text","text":"` + strings.Repeat("x", 2<<20+1) + `"}]`), "", codeBodyTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { wantRefused(t, uiPath, test.body, test.pointer, test.code) })
	}
}

func TestUIMessageLastInput(t *testing.T) {
	for _, test := range []struct{ name, messages, want string }{
		{"text", `[{"role":"user","parts":[{"type":"text","text":"hi"}]}]`, "hi"},
		{"parts", `[{"role":"user","parts":[{"type":"text","text":"a"},{"type":"data-mood","data":1},{"type":"text","text":"b"}]}]`, "a\n\nb"},
		{"unclean", `[{"role":"user","parts":[{"type":"text","text":"a\u0000"}]}]`, "a\ufffd"},
		{"history that is strange", `[7,{"role":"oracle"},{"role":"user","parts":[{"type":"text","text":"hi","state":"done"}],"metadata":{"a":1}}]`, "hi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := readUIRequest([]byte(`{"id":null,"more":[1],"messages":` + test.messages + `}`))
			if err != nil || request.Input != test.want {
				t.Errorf("input %q, %v, want %q", request.Input, err, test.want)
			}
		})
	}
}

// Which requests are the same one sent again, and which are meant to run again.
func TestUIMessageKeys(t *testing.T) {
	first := uiKey("c", triggerSubmit, "", "m")
	for _, test := range []struct {
		name string
		key  string
	}{
		{"another message", uiKey("c", triggerSubmit, "", "n")},
		{"another chat", uiKey("d", triggerSubmit, "", "m")},
		{"joined differently", uiKey("cm", triggerSubmit, "", "")},
		{"answered again", uiKey("c", triggerRegenerate, "a", "m")},
	} {
		if test.key == first {
			t.Errorf("%s has the same key", test.name)
		}
	}
	if first == "" || first != uiKey("c", triggerSubmit, "", "m") || len(first) > maxKeyBytes {
		t.Errorf("the key of a message is %q", first)
	}
	if a := uiKey("c", triggerRegenerate, "a", "m"); a == "" || a == uiKey("c", triggerRegenerate, "b", "m") {
		t.Errorf("the key of an answer that is replaced is %q", a)
	}
	for name, key := range map[string]string{
		"edited":                uiKey("c", triggerSubmit, "m", "m"),
		"answered again":        uiKey("c", triggerRegenerate, "", "m"),
		"answered from its own": uiKey("c", triggerRegenerate, "m", "m"),
		"without an id":         uiKey("c", triggerSubmit, "", ""),
	} {
		if key != "" {
			t.Errorf("a message %s has the key %q, want none", name, key)
		}
	}
}

func FuzzReadUIRequest(f *testing.F) {
	f.Add([]byte(uiBody))
	f.Add([]byte(`{"trigger":"regenerate-message","messageId":"a","messages":[{"role":"user","parts":[{"type":"data-x"},{"type":"text","text":"a"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := readUIRequest(body)
		if err != nil {
			if p := asProblem(err); p.Status != http.StatusBadRequest {
				t.Errorf("refused with %v", p)
			}
			return
		}
		if blank(request.Input) || session.Clean(request.Input) != request.Input {
			t.Errorf("took %+v", request)
		}
	})
}

func TestNothingToResume(t *testing.T) {
	w := ask(t, newTestServer(t, &fake{}), "GET", uiResume, "")
	if w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Errorf("answer %d %s, want 204", w.Code, w.Body)
	}
}
