package openai

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	client "github.com/sashabaranov/go-openai"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

var update = flag.Bool("update", false, "write the golden files")

func history() llm.Request {
	content := "<p>\"1\"</p>\n"
	return llm.Request{
		System: "Be brief & exact.",
		Tools: []session.ToolSpec{
			{Name: "Read", Description: "Reads a file.", Parameters: []byte(`{"type": "object", "properties": {"path": {"type": "string"}}}`)},
			{Name: "Now", Description: "Tells the time."},
		},
		Items: []session.Item{
			{N: 1, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "Read <a> & b"}},
			{N: 2, Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "Two files.", Provider: "openai", Model: "some-model"}},
			{N: 3, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Arguments: []byte(`{"path":"a"}`)}},
			{N: 4, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Raw: `{"path":"b`}},
			{N: 5, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 3, Tool: "Read", Summary: "read 1 file", Content: &content}},
			{N: 6, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 4, Tool: "Read", Summary: "bad arguments", Failed: true}},
			{N: 7, Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "Named otherwise.", Provider: "openai", Model: "some-model", Signature: fieldReasoning}},
			{N: 8, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "One"}},
			{N: 9, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "of two."}},
			{N: 10, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "And?"}},
			{N: 11, Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "Alone.", Provider: "openai", Model: "some-model"}},
			{N: 12, Kind: session.KindSummary, Summary: &session.Summary{Text: "The model said nothing."}},
		},
	}
}

func TestRequestHasItsForm(t *testing.T) {
	p := New(Config{Name: "some-model"})
	body, withReasoning, err := p.encode(history())
	if err != nil || !withReasoning {
		t.Fatalf("encode: with reasoning = %v, error = %v", withReasoning, err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/request.json"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// What a request begins with is kept from one to the next, but never for other tools.
func TestRequestHasTheToolsItWasGiven(t *testing.T) {
	p := New(Config{Name: "some-model"})
	changed := history()
	changed.Tools = slices.Clone(changed.Tools)
	changed.Tools[0].Parameters = json.RawMessage(`{"type":"object","properties":{"other":{}}}`)
	none := history()
	none.Tools = nil
	for i, r := range []llm.Request{history(), changed, history(), none, none, history()} {
		got, _, errGot := p.encode(r)
		want, _, errWant := New(Config{Name: "some-model"}).encode(r)
		if errGot != nil || errWant != nil || !bytes.Equal(got, want) {
			t.Errorf("request %d: %s, %v, want %s, %v", i, got, errGot, want, errWant)
		}
	}
}

// A library of the protocol knows every field of the request but reasoning.
func TestRequestIsKnownToALibrary(t *testing.T) {
	r := history()
	r.Items = r.Items[:6]
	body, _, err := New(Config{Name: "some-model"}).encode(r)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var request client.ChatCompletionRequest
	if err := dec.Decode(&request); err != nil {
		t.Fatal(err)
	}
	last := request.Messages[len(request.Messages)-2]
	if !request.Stream || !request.StreamOptions.IncludeUsage || len(request.Tools) != 2 ||
		last.ToolCallID != "call_3" || last.Content != "read 1 file\n\n<p>\"1\"</p>\n" {
		t.Errorf("request = %+v", request)
	}
}

func TestRefusedReasoningIsNotSentAgain(t *testing.T) {
	server := llmtest.New(
		llmtest.Step{Status: http.StatusBadRequest, Body: "'messages.2': property 'reasoning_content' is unsupported"},
		llmtest.Step{Text: []string{"ok"}},
		llmtest.Step{Status: http.StatusBadRequest, Body: "unknown field reasoning"},
	)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := New(Config{BaseURL: server.URL(), Name: "some-model"})
	defer p.Close()
	for attempt, want := range []llm.Class{llm.ClassRetry, "", llm.ClassFail} {
		var class llm.Class
		if _, err := p.Ask(t.Context(), history(), func(llm.Delta) {}); err != nil {
			class = err.(*llm.Error).Class //nolint:errorlint // the contract is an *llm.Error itself
		}
		if class != want {
			t.Errorf("attempt %d: class = %q, want %q", attempt+1, class, want)
		}
		if has := strings.Contains(string(server.Requests()[attempt].Body), `"reasoning`); has != (attempt == 0) {
			t.Errorf("attempt %d: with reasoning = %v", attempt+1, has)
		}
	}
}

// OpenAI's newer models refuse the name that all compatible servers know.
func TestRequestBoundsTheAnswerUnderTheNameThatIsKnown(t *testing.T) {
	for baseURL, want := range map[string]string{
		"":                      `"max_completion_tokens":100}`,
		"http://127.0.0.1:1/v1": `"max_tokens":100}`,
	} {
		body, _, err := New(Config{BaseURL: baseURL, Name: "m", MaxOutputTokens: 100}).encode(history())
		head, _, _ := bytes.Cut(body, []byte(`,"messages"`))
		if err != nil || !bytes.HasSuffix(append(head, '}'), []byte(want)) || bytes.Count(head, []byte("100")) != 1 {
			t.Errorf("base URL %q: %s, %v, want %s at its end", baseURL, head, err, want)
		}
	}
}
