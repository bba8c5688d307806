package llmtest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
)

func chatBody(messages string) string {
	return `{"model":"m","stream":true,"messages":[` + messages + `]}`
}

func messagesBody(messages string) string {
	return `{"model":"m","max_tokens":9,"stream":true,"messages":[` + messages + `]}`
}

// refusals are requests that real services refuse, with a word of the reason;
// without one the request is good.
func refusals() []struct{ name, path, body, want string } {
	user := `{"role":"user","content":"hi"}`
	chatCall := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{}"}}]}`
	chatCalls := `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"Read","arguments":"{}"}}]}`
	chatResult := `{"role":"tool","tool_call_id":"c1","content":"x"}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{}}]}`
	toolResult := `{"type":"tool_result","tool_use_id":"c1","content":"x"}`
	return []struct{ name, path, body, want string }{
		{"good", chatPath, chatBody(`{"role":"system","content":"s"},` + user + `,` + chatCall + `,` + chatResult), ""},
		{"parts", chatPath, chatBody(`{"role":"user","content":[{"type":"text","text":"hi"}]}`), ""},
		{"two results", chatPath, chatBody(user + `,` + chatCalls + `,` + chatResult + `,` + strings.Replace(chatResult, "c1", "c2", 1)), ""},
		{"no JSON", chatPath, `{"model"`, "body"},
		{"no model", chatPath, `{"stream":true,"messages":[` + user + `]}`, "model"},
		{"no stream", chatPath, `{"model":"m","messages":[` + user + `]}`, "stream"},
		{"no messages", chatPath, chatBody(""), "messages"},
		{"unknown role", chatPath, chatBody(`{"role":"robot","content":"x"}`), "unknown role"},
		{"late system", chatPath, chatBody(user + `,{"role":"system","content":"x"}`), "beginning"},
		{"blank text", chatPath, chatBody(`{"role":"user","content":" \n"}`), "non-empty"},
		{"blank part", chatPath, chatBody(`{"role":"user","content":[{"type":"text","text":""}]}`), "non-empty"},
		{"no content", chatPath, chatBody(`{"role":"user"}`), "missing"},
		{"silent assistant", chatPath, chatBody(user + `,{"role":"assistant","content":null},` + user), "neither"},
		{"orphan call", chatPath, chatBody(user + `,` + chatCall + `,` + user), "no result"},
		{"orphan call at the end", chatPath, chatBody(user + `,` + chatCall), "no result"},
		{"half of the results", chatPath, chatBody(user + `,` + chatCalls + `,` + chatResult), "no result"},
		{"assistant before the result", chatPath, chatBody(user + `,` + chatCall + `,{"role":"assistant","content":"x"},` + user), "no result"},
		{"orphan result", chatPath, chatBody(user + `,` + chatResult), "does not follow"},
		{"second result", chatPath, chatBody(user + `,` + chatCall + `,` + chatResult + `,` + chatResult), "does not follow"},
		{"results in wrong order", chatPath, chatBody(user + `,` + chatCalls + `,` + strings.Replace(chatResult, "c1", "c2", 1) + `,` + chatResult), "first"},
		{"blank result", chatPath, chatBody(user + `,` + chatCall + `,` + strings.Replace(chatResult, `"x"`, `""`, 1)), "non-empty"},
		{"call id twice", chatPath, chatBody(user + `,` + chatCall + `,` + chatResult + `,` + chatCall + `,` + chatResult), "two calls"},
		{"broken arguments", chatPath, chatBody(user + `,` + strings.Replace(chatCall, `"{}"`, `"{\"a"`, 1) + `,` + chatResult), "no JSON object"},
		{"array of arguments", chatPath, chatBody(user + `,` + strings.Replace(chatCall, `"{}"`, `"[]"`, 1) + `,` + chatResult), "no JSON object"},
		{"bad name", chatPath, chatBody(user + `,` + strings.Replace(chatCall, "Read", "Read it", 1) + `,` + chatResult), "match"},
		{"assistant last", chatPath, chatBody(user + `,{"role":"assistant","content":"x"}`), "last"},
		{"two tools of a name", chatPath, `{"model":"m","stream":true,"messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}},{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}]}`, "two"},
		{"no schema", chatPath, `{"model":"m","stream":true,"messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a"}}]}`, "schema"},

		{"good", messagesPath, messagesBody(user + `,` + use + `,{"role":"user","content":[` + toolResult + `,{"type":"text","text":"x"}]}`), ""},
		{"no max_tokens", messagesPath, `{"model":"m","stream":true,"messages":[` + user + `]}`, "max_tokens"},
		{"assistant first", messagesPath, messagesBody(`{"role":"assistant","content":"x"}`), "alternate"},
		{"user twice", messagesPath, messagesBody(user + `,` + user), "alternate"},
		{"system as a message", messagesPath, messagesBody(`{"role":"system","content":"x"}`), "unknown role"},
		{"blank text", messagesPath, messagesBody(`{"role":"user","content":[{"type":"text","text":" "}]}`), "non-empty"},
		{"empty content", messagesPath, messagesBody(`{"role":"user","content":[]}`), "non-empty"},
		{"orphan call", messagesPath, messagesBody(user + `,` + use + `,` + user), "no result"},
		{"text before the result", messagesPath, messagesBody(user + `,` + use + `,{"role":"user","content":[{"type":"text","text":"x"},` + toolResult + `]}`), "before text"},
		{"orphan result", messagesPath, messagesBody(`{"role":"user","content":[` + toolResult + `]}`), "does not follow"},
		{"unsigned thinking", messagesPath, messagesBody(user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"x"}]},` + user), "signature"},
		{"string input", messagesPath, messagesBody(user + `,` + strings.Replace(use, `"input":{}`, `"input":"{}"`, 1) + `,{"role":"user","content":[` + toolResult + `]}`), "no JSON object"},
		{"unknown block", messagesPath, messagesBody(`{"role":"user","content":[{"type":"song"}]}`), "no block of type"},
		{"five cache marks", messagesPath, messagesBody(`{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5), ",") + `]}`), "cache_control"},
	}
}

func TestServerRefusesWhatRealServicesRefuse(t *testing.T) {
	for _, test := range refusals() {
		t.Run(test.path+" "+test.name, func(t *testing.T) {
			server := llmtest.New(llmtest.Step{Text: []string{"ok"}})
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, test.path, strings.NewReader(test.body)))
			problems := server.Problems()
			if test.want == "" {
				if w.Code != http.StatusOK || len(problems) > 0 || !strings.Contains(w.Body.String(), `"ok"`) {
					t.Errorf("status = %d, problems = %q, body = %s", w.Code, problems, w.Body)
				}
				return
			}
			if w.Code != http.StatusBadRequest || len(problems) != 1 || !strings.Contains(problems[0], test.want) {
				t.Errorf("status = %d, problems = %q, want one with %q", w.Code, problems, test.want)
			}
		})
	}
}

func TestServerRefusesLongRequests(t *testing.T) {
	for path, want := range map[string]string{chatPath: "context_length_exceeded", messagesPath: "prompt is too long"} {
		server := llmtest.New()
		server.MaxBodyBytes = 100
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(strings.Repeat("x", 101))))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) || len(server.Problems()) > 0 || len(server.Requests()) != 1 {
			t.Errorf("%s: status = %d, problems = %q, body = %s", path, w.Code, server.Problems(), w.Body)
		}
	}
}

// Another client of the protocol reads what the server streams.
func TestServerSpeaksToAnotherClient(t *testing.T) {
	server := llmtest.New(llmtest.Step{
		Text: []string{"Hel", "lo"}, Calls: []llmtest.Call{{Tool: "Read", Arguments: `{"path":"a"}`, Pieces: 3}},
		Usage: session.Usage{InputTokens: 9, CachedInputTokens: 4, OutputTokens: 2},
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	config := openai.DefaultConfig("")
	config.BaseURL = server.URL() + "/v1"
	client := &http.Client{}
	defer client.CloseIdleConnections()
	config.HTTPClient = client
	stream, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(t.Context(), openai.ChatCompletionRequest{
		Model: "m", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hi"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text, arguments, finish string
	var usage *openai.Usage
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
			finish += string(choice.FinishReason)
			for _, call := range choice.Delta.ToolCalls {
				arguments += call.Function.Name + call.Function.Arguments
			}
		}
		usage = chunk.Usage
	}
	if text != "Hello" || arguments != `Read{"path":"a"}` || finish != "tool_calls" {
		t.Errorf("text = %q, call = %q, finish = %q", text, arguments, finish)
	}
	if usage == nil || usage.PromptTokens != 9 || usage.PromptTokensDetails.CachedTokens != 4 || usage.CompletionTokens != 2 {
		t.Errorf("usage = %+v", usage)
	}
}

func TestServerAnswersWhenTheScriptHasRunOut(t *testing.T) {
	server := llmtest.New(llmtest.Step{Text: []string{"first"}})
	server.Add(llmtest.Step{Reply: func(r llmtest.Request) llmtest.Step {
		return llmtest.Step{Text: []string{"echo " + r.Messages[0].Text}}
	}})
	for _, want := range []string{"first", "echo hi", "run out", "run out"} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequest(http.MethodPost, chatPath, strings.NewReader(chatBody(`{"role":"user","content":"hi"}`))))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("answer = %s, want %q", w.Body, want)
		}
	}
}

func TestServerIsNoOtherService(t *testing.T) {
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodGet, chatPath, nil),
		httptest.NewRequest(http.MethodPost, "/v1/models", strings.NewReader("{}")),
	} {
		w := httptest.NewRecorder()
		llmtest.New().ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s %s: status = %d, want 404", r.Method, r.URL, w.Code)
		}
	}
}
