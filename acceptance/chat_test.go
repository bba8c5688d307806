package acceptance

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	openai "github.com/sashabaranov/go-openai"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// withHeaders sends more headers with each request.
type withHeaders map[string]string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// chat is a client of OpenAI's API for a server.
func (c *client) chat(headers withHeaders) *openai.Client {
	config := openai.DefaultConfig("no key is needed")
	config.BaseURL, config.HTTPClient = c.url+"/v1", &http.Client{Transport: headers}
	return openai.NewClientWithConfig(config)
}

func asked(role, text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: role, Content: text}
}

func chatOf(messages ...openai.ChatCompletionMessage) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: "default", Messages: messages, StreamOptions: &openai.StreamOptions{IncludeUsage: true}}
}

// readChat reads a stream to its end.
func readChat(t *testing.T, stream *openai.ChatCompletionStream) (content, reasoning, finish string, usage *openai.Usage, err error) {
	t.Helper()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return content, reasoning, finish, usage, nil
		}
		if err != nil {
			return content, reasoning, finish, usage, err
		}
		for _, c := range chunk.Choices {
			content, reasoning, finish = content+c.Delta.Content, reasoning+c.Delta.ReasoningContent, finish+string(c.FinishReason)
		}
		if chunk.Usage != nil {
			usage = chunk.Usage
		}
	}
}

// roles are those of a request, with their texts.
func roles(r llmtest.Request) string {
	var all []string
	for _, m := range r.Messages {
		all = append(all, m.Role+": "+m.Text)
	}
	return strings.Join(all, "\n")
}

func TestChatProgramWithoutASession(t *testing.T) {
	p := launch(t, "", says("fine, thanks"), says("again the same"))
	history := chatOf(asked("system", "be a pirate"), asked("user", "hello"), asked("assistant", "ahoy"), asked("user", "how are you?"))
	answer, err := p.chat(nil).CreateChatCompletion(t.Context(), history)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Choices[0].Message.Content; got != "fine, thanks" || answer.Choices[0].FinishReason != openai.FinishReasonStop {
		t.Errorf("answer %+v", answer)
	}
	want := "user: hello\nassistant: ahoy\nuser: how are you?"
	if got := roles(p.model.Requests()[0]); got != want {
		t.Errorf("the model was asked %q, want %q", got, want)
	}
	if strings.Contains(p.model.Requests()[0].System, "pirate") {
		t.Error("the client gave instructions")
	}
	id := session.ID(answer.Header().Get("Loadline-Session"))
	if got := kinds(p.items(id)); got != "user_message assistant_message user_message assistant_message" {
		t.Errorf("the history holds %s", got)
	}
	again, err := p.chat(nil).CreateChatCompletion(t.Context(), chatOf(asked("user", "hi")))
	if err != nil || again.Header().Get("Loadline-Session") == string(id) {
		t.Errorf("a request without a session: %v, it made %v", err, again.Header())
	}
}

func TestChatProgramWithASession(t *testing.T) {
	p := launch(t, "", llmtest.Step{Reasoning: []string{"hm, ", "well"}, Text: []string{"let me ", "look"}, Calls: bashed("seq 9999", "exit 3").Calls, Usage: session.Usage{InputTokens: 10, OutputTokens: 4}},
		llmtest.Step{Text: []string{"many ", "numbers"}, Usage: session.Usage{InputTokens: 20, CachedInputTokens: 5, OutputTokens: 3}}, says("yes"))
	id := p.newSession()
	client := p.chat(withHeaders{"Loadline-Session": string(id), "Idempotency-Key": "one"})
	for range 2 { // the second time it is told again, and does not run again
		stream, err := client.CreateChatCompletionStream(t.Context(), chatOf(asked("user", "something that the server never saw"), asked("user", "count")))
		if err != nil {
			t.Fatal(err)
		}
		content, reasoning, finish, usage, err := readChat(t, stream)
		stream.Close()
		if err != nil || content != "let me look\n\nmany numbers" || reasoning != "hm, well" || finish != "stop" {
			t.Errorf("content %q, reasoning %q, finish %q, %v", content, reasoning, finish, err)
		}
		want := &openai.Usage{PromptTokens: 30, CompletionTokens: 7, TotalTokens: 37, PromptTokensDetails: &openai.PromptTokensDetails{CachedTokens: 5}}
		if diff := cmp.Diff(want, usage); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	}
	items := p.items(id)
	if got := kinds(items); got != "user_message reasoning assistant_message tool_call tool_call tool_result tool_result assistant_message" {
		t.Errorf("the history holds %s", got)
	}
	if r := results(items); r[0].Truncated == nil || !r[1].Failed {
		t.Errorf("results %+v", r)
	}
	p.stillFine(id)
}

func TestChatProgramSeesFailures(t *testing.T) {
	p := launch(t, "", refuses(401, "who are you"), llmtest.Step{Text: []string{"half "}, StreamError: llmtest.StreamError{Type: "invalid_request_error", Message: "no more"}})
	id := p.newSession()
	client := p.chat(withHeaders{"Loadline-Session": string(id)})
	_, err := client.CreateChatCompletion(t.Context(), chatOf(asked("user", "a")))
	refused := &openai.APIError{}
	if !errors.As(err, &refused) || refused.HTTPStatusCode != http.StatusBadGateway || refused.Code != "provider_error" {
		t.Errorf("a refused request: %v", err)
	}
	stream, err := client.CreateChatCompletionStream(t.Context(), chatOf(asked("user", "b")))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	content, _, _, _, err := readChat(t, stream)
	if !errors.As(err, &refused) || refused.Code != "provider_error" || content != "half " {
		t.Errorf("after %q: %v", content, err)
	}
	_, err = p.chat(nil).CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "gpt-5", Messages: []openai.ChatCompletionMessage{asked("user", "a")}})
	if !errors.As(err, &refused) || refused.HTTPStatusCode != http.StatusNotFound || refused.Code != "model_not_found" || *refused.Param != "model" {
		t.Errorf("an unknown model: %v", err)
	}
	p.stillFine(id)
}

func TestChatProgramLeavesAndTheTurnGoesOn(t *testing.T) {
	gate := make(chan struct{})
	p := launch(t, "", llmtest.Step{Text: []string{"one ", "two"}, Gate: gate, GateAfter: 1})
	id := p.newSession()
	ctx, leave := context.WithCancel(t.Context())
	stream, err := p.chat(withHeaders{"Loadline-Session": string(id)}).CreateChatCompletionStream(ctx, chatOf(asked("user", "count")))
	if err != nil {
		t.Fatal(err)
	}
	for text := ""; text == ""; {
		chunk, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		text = chunk.Choices[0].Delta.Content
	}
	leave()
	stream.Close()
	close(gate)
	turn := p.await(id, pages[session.Turn](p.client, turnsOf(id))[0].ID)
	if last := p.items(id); turn.State != session.TurnCompleted || last[len(last)-1].AssistantMessage.Text != "one two" {
		t.Errorf("the turn is %s, its last item %+v", turn.State, last[len(last)-1])
	}
	p.stillFine(id)
}

func TestChatProgramSeesACancel(t *testing.T) {
	p := launch(t, "", llmtest.Step{Text: []string{"on ", "and "}, Endless: true})
	id := p.newSession()
	stream, err := p.chat(withHeaders{"Loadline-Session": string(id)}).CreateChatCompletionStream(t.Context(), chatOf(asked("user", "go")))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	p.cancel(id, pages[session.Turn](p.client, turnsOf(id))[0].ID)
	refused := &openai.APIError{}
	if _, _, _, _, err := readChat(t, stream); !errors.As(err, &refused) || refused.Code != "cancelled" {
		t.Errorf("the stream of a cancelled turn ends with %v", err)
	}
	p.stillFine(id)
}
