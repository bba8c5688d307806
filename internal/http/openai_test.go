package http

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

const chatBody = `{"model":"default","messages":[{"role":"user","content":"go"}]}`

// wantFailure checks that w is a refusal in the form of OpenAI, of this code.
func wantFailure(t testing.TB, w *httptest.ResponseRecorder, code string) openAIError {
	t.Helper()
	var f openAIFailure
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
		t.Fatalf("answer %d %q: %v", w.Code, w.Body, err)
	}
	if f.Error.Code != code || f.Error.Message == "" || f.Error.Type == "" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answer %d %s, want an error of code %s", w.Code, w.Body, code)
	}
	return f.Error
}

// wantRefusal checks that w refuses in the form of its route.
func wantRefusal(t testing.TB, r route, w *httptest.ResponseRecorder, c code) {
	t.Helper()
	if r.pattern == chatPath || r.pattern == modelsPath {
		wantFailure(t, w, string(c))
		return
	}
	if strings.Contains(r.pattern, "/ai-sdk") || strings.HasSuffix(r.pattern, "/ag-ui") {
		wantText(t, w, c)
		return
	}
	wantProblem(t, w, c)
}

func scripted(events []session.Event) *script {
	sub := newScript(events)
	close(sub.events)
	return sub
}

func TestChatTranscript(t *testing.T) {
	body := strings.Replace(chatBody, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)
	w := ask(t, newTestServer(t, &fake{sub: scripted(rich())}), "POST", chatPath, body)
	golden(t, "openai.golden", w.Body.String())
	if w.Header().Get("Content-Type") != eventStream || w.Header().Get(sessionHeader) != string(testSession) || w.Header().Get("Location") == "" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestChatWholeAnswer(t *testing.T) {
	w := ask(t, newTestServer(t, &fake{sub: scripted(rich())}), "POST", chatPath, chatBody)
	golden(t, "openai.json", w.Body.String()+"\n")
	if w.Code != 200 || w.Header().Get(sessionHeader) != string(testSession) {
		t.Errorf("answer %d, headers %v", w.Code, w.Header())
	}
}

// gathered is the text of a stream, as a client puts it together.
func gathered(t *testing.T, body string) (content, reasoning, finish, failure string) {
	t.Helper()
	text, done := strings.CutSuffix(body, "data: [DONE]\n\n")
	if !done {
		t.Fatalf("the stream does not end with [DONE]: %q", body)
	}
	for frame := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
				}
				Finish string `json:"finish_reason"`
			}
			Error struct{ Code string }
		}
		must(t, json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &chunk))
		failure += chunk.Error.Code
		for _, c := range chunk.Choices {
			content, reasoning, finish = content+c.Delta.Content, reasoning+c.Delta.Reasoning, finish+c.Finish
		}
	}
	return content, reasoning, finish, failure
}

// Wherever a turn ends, both forms tell the same: its text, or why there is none.
func TestChatFormsAgree(t *testing.T) {
	var events []session.Event
	for _, ev := range rich() { // without a restart: what was streamed of a void text stays
		void := ev.Delta != nil && ev.Delta.Text == "half an"
		if ev.Type != session.EventStepRestarted && !void {
			events = append(events, ev)
		}
	}
	cut := session.Event{Type: session.EventItem, Item: &session.Item{N: 10, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "cut", Incomplete: true}}}
	failed := func(state session.TurnState, code session.ErrorCode) session.Event {
		return session.Event{Type: session.TerminalEvent(state), Turn: &session.Turn{State: state, Error: &session.TurnError{Code: code, Detail: "why"}}}
	}
	last := len(events) - 1
	tests := []struct {
		name    string
		events  []session.Event
		status  int
		finish  string
		failure string
	}{
		{"all", events, 200, "stop", ""},
		{"cut", append(append(events[:last:last], cut), events[last]), 200, "length", ""},
		{"provider", append(events[:5:5], failed(session.TurnFailed, session.CodeProviderError)), 502, "", "provider_error"},
		{"empty", append(events[:5:5], failed(session.TurnFailed, session.CodeEmptyResponse)), 502, "", "empty_response"},
		{"too large", append(events[:5:5], failed(session.TurnFailed, session.CodeRequestTooLarge)), 413, "", "request_too_large"},
		{"steps", append(events[:5:5], failed(session.TurnFailed, session.CodeStepLimit)), 500, "", "step_limit"},
		{"storage", append(events[:5:5], failed(session.TurnFailed, session.CodeStorage)), 503, "", "storage"},
		{"cancelled", append(events[:5:5], failed(session.TurnCancelled, session.CodeCancelled)), 409, "", "cancelled"},
		{"stopping", append(events[:5:5], failed(session.TurnInterrupted, session.CodeServerStopping)), 503, "", "server_stopping"},
		{"broken off", events[:5], 503, "", "stream_broken"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			streamed := ask(t, newTestServer(t, &fake{sub: scripted(test.events)}), "POST", chatPath, strings.Replace(chatBody, "{", `{"stream":true,`, 1))
			content, reasoning, finish, failure := gathered(t, streamed.Body.String())
			if finish != test.finish || failure != test.failure {
				t.Errorf("streamed: finish %q, failure %q, want %q, %q", finish, failure, test.finish, test.failure)
			}
			whole := ask(t, newTestServer(t, &fake{sub: scripted(test.events)}), "POST", chatPath, chatBody)
			if whole.Code != test.status {
				t.Errorf("whole: %d %s, want %d", whole.Code, whole.Body, test.status)
			}
			if test.failure != "" {
				wantFailure(t, whole, test.failure)
				if whole.Header().Get("X-Should-Retry") != "false" {
					t.Error("a client may try again, though the turn has run")
				}
				return
			}
			var c chatCompletion
			must(t, json.Unmarshal(whole.Body.Bytes(), &c))
			want := []string{c.Choices[0].Message.Content, c.Choices[0].Message.ReasoningContent, c.Choices[0].FinishReason}
			if diff := cmp.Diff(want, []string{content, reasoning, finish}); diff != "" {
				t.Errorf("(-whole +streamed):\n%s", diff)
			}
		})
	}
}

func TestChatRefuses(t *testing.T) {
	with := func(more string) string { return strings.Replace(chatBody, "{", "{"+more+",", 1) }
	messages := func(m string) string { return `{"model":"default","messages":` + m + `}` }
	tests := []struct {
		name, body string
		headers    []string
		err        error
		status     int
		code       string
		param      string
		owner      string
	}{
		{"no JSON", `{`, nil, nil, 400, "invalid_json", "", ""},
		{"no model", `{"messages":[{"role":"user","content":"go"}]}`, nil, nil, 400, "invalid_field", "model", ""},
		{"unknown model", strings.Replace(chatBody, "default", "gpt-5", 1), nil, nil, 404, "model_not_found", "model", ""},
		{"no messages", `{"model":"default"}`, nil, nil, 400, "invalid_field", "messages", ""},
		{"image", messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`), nil, nil, 400, "invalid_field", "messages.0.content.0", ""},
		{"result last", messages(`[{"role":"user","content":"a"},{"role":"tool","content":"a"}]`), nil, nil, 400, "invalid_field", "messages.1", ""},
		{"two choices", with(`"n":2`), nil, nil, 400, "invalid_field", "n", ""},
		{"JSON wanted", with(`"response_format":{"type":"json_object"}`), nil, nil, 400, "invalid_field", "response_format", ""},
		{"sound wanted", with(`"modalities":["text","audio"]`), nil, nil, 400, "invalid_field", "modalities", ""},
		{"call wanted", with(`"tools":[],"tool_choice":"required"`), nil, nil, 400, "invalid_field", "tool_choice", ""},
		{"one call wanted", with(`"tool_choice":{"type":"function"}`), nil, nil, 400, "invalid_field", "tool_choice", ""},
		{"stream is text", with(`"stream":"yes"`), nil, nil, 400, "invalid_field", "stream", ""},
		{"key without session", chatBody, []string{"Idempotency-Key: a"}, nil, 400, "invalid_parameter", "", ""},
		{"malformed session", chatBody, []string{"Loadline-Session: x"}, nil, 404, "not_found", "", ""},
		{"unknown session", chatBody, []string{"Loadline-Session: ses_01940f3e7a8b7c11b2a64f1d0c9e5a22"}, nil, 404, "not_found", "", ""},
		{"session of another project", chatBody, []string{"Loadline-Session: " + string(testSession)}, nil, 400, "invalid_field", "model", "other"},
		{"not JSON", chatBody, []string{"Content-Type: text/plain"}, nil, 415, "unsupported_media_type", "", ""},
		{"stopping", chatBody, nil, session.ErrStopping, 503, "stopping", "", ""},
		{"disk", chatBody, nil, errDisk, 500, "internal", "", ""},
		{"foreign page", chatBody, []string{"Origin: http://evil.test"}, nil, 403, "cross_origin", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{err: test.err, owner: test.owner}
			w := ask(t, newTestServer(t, f), "POST", chatPath, test.body, test.headers...)
			if e := wantFailure(t, w, test.code); e.Param != test.param || w.Code != test.status {
				t.Errorf("answer %d %s, want %d, param %q", w.Code, w.Body, test.status, test.param)
			}
			if len(f.submitted) > 0 || strings.Contains(w.Body.String(), "secret-path") {
				t.Errorf("submitted %+v, answer %s", f.submitted, w.Body)
			}
		})
	}
}

func TestModelsAreProjects(t *testing.T) {
	w := ask(t, newTestServer(t, &fake{}), "GET", modelsPath, "")
	if want := `{"object":"list","data":[{"id":"default","object":"model","created":0,"owned_by":"loadline"}]}`; w.Body.String() != want {
		t.Errorf("models are %d %s, want %s", w.Code, w.Body, want)
	}
	s := newTestServer(t, &fake{}, func(c *Config) { c.Settings.Keys = map[string]string{"anna": digest("secret")} })
	if e := wantFailure(t, ask(t, s, "GET", modelsPath, ""), "unauthorized"); e.Type != "authentication_error" {
		t.Errorf("without a key: %+v", e)
	}
	if w := ask(t, s, "GET", modelsPath, "", "Authorization: Bearer secret"); w.Code != 200 {
		t.Errorf("with a key: %d", w.Code)
	}
}

func TestChatLetsPass(t *testing.T) {
	more := `{"temperature":2,"max_tokens":5,"tools":[{"type":"function"}],"tool_choice":"auto","n":1,"user":"a","stop":null,"stream":null,` +
		`"response_format":{"type":"text"},"modalities":["text"],"logit_bias":{},`
	w := ask(t, newTestServer(t, &fake{sub: scripted(rich())}), "POST", chatPath, strings.Replace(chatBody, "{", more, 1))
	if w.Code != 200 {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
}

func FuzzReadChat(f *testing.F) {
	f.Add([]byte(chatBody))
	f.Add([]byte(`{"model":"m","n":1,"stream_options":{},"messages":[{"role":"assistant"},{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"system"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		chat, err := readChat(body)
		if err != nil {
			if p, status := openAIProblem(asProblem(err)); status != http.StatusBadRequest || p.Error.Message == "" {
				t.Errorf("refused with %d %+v", status, p)
			}
			return
		}
		if blank(chat.Input) || session.Clean(chat.Input) != chat.Input || chat.project == "" {
			t.Errorf("took %+v", chat)
		}
	})
}
