package openai

import (
	"encoding/json"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// fieldReasoning is the name under which some services stream reasoning, instead
// of reasoning_content. It is kept as the signature of the block, because they
// take it back under the same name only.
const fieldReasoning = "reasoning"

// chatRequest is a request without its messages, which are most of it and are
// written by hand: a long history is sent with each step.
type chatRequest struct {
	Model         string        `json:"model"`
	Tools         []tool        `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string           `json:"type"`
	Function session.ToolSpec `json:"function"`
}

// encode translates a request, and reports whether it holds reasoning.
func (p *Provider) encode(r llm.Request) (body []byte, withReasoning bool, err error) {
	t := translation{provider: p, messages: make([]message, 0, len(r.Items)+1)}
	if r.System != "" {
		t.messages = append(t.messages, message{role: "system", content: &r.System})
	}
	for i := range r.Items {
		t.add(&r.Items[i])
	}
	t.endAnswer()
	request := chatRequest{Model: p.model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}}
	for _, spec := range r.Tools {
		if len(spec.Parameters) == 0 {
			spec.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		request.Tools = append(request.Tools, tool{Type: "function", Function: spec})
	}
	body, err = session.EncodeJSON(request)
	if err != nil {
		return nil, false, err
	}
	body = append(body[:len(body)-1], `,"messages":[`...)
	for i := range t.messages {
		if i > 0 {
			body = append(body, ',')
		}
		body = t.messages[i].appendJSON(body)
	}
	return append(body, "]}"...), t.withReasoning, nil
}

// translation makes messages of items. Consecutive items of an answer are one
// assistant message. A summary is the user's, and consecutive texts of the user
// are one message: so the templates of strict servers want it, that know no system
// message but the first and no two messages of one role.
type translation struct {
	provider      *Provider
	messages      []message
	withReasoning bool
}

func (t *translation) add(item *session.Item) {
	switch item.Kind {
	case session.KindUserMessage:
		t.user(item.UserMessage.Text)
	case session.KindSummary:
		t.user(item.Summary.Text)
	case session.KindToolResult:
		t.endAnswer()
		text := llm.ResultText(*item.ToolResult)
		t.messages = append(t.messages, message{role: "tool", content: &text, callN: item.ToolResult.CallN})
	case session.KindAssistantMessage:
		m := t.answer()
		m.content = joined(m.content, item.AssistantMessage.Text)
	case session.KindReasoning:
		t.reasoning(item.Reasoning)
	case session.KindToolCall:
		arguments := "{}"
		if len(item.ToolCall.Arguments) > 0 {
			arguments = string(item.ToolCall.Arguments)
		}
		m := t.answer()
		m.calls = append(m.calls, toolCall{item.N, item.ToolCall.Tool, arguments})
	}
}

func (t *translation) user(text string) {
	t.endAnswer()
	if last := t.last(); last != nil && last.role == "user" {
		last.content = joined(last.content, text)
		return
	}
	t.messages = append(t.messages, message{role: "user", content: &text})
}

func (t *translation) reasoning(r *session.Reasoning) {
	p := t.provider
	if r.Provider != name || r.Model != p.model || r.Text == "" || p.withoutReasoning.Load() {
		return
	}
	t.withReasoning = true
	m := t.answer()
	if r.Signature == fieldReasoning {
		m.reasoning += r.Text
	} else {
		m.reasoningContent += r.Text
	}
}

// answer is the assistant message that the items of an answer go into.
func (t *translation) answer() *message {
	if last := t.last(); last != nil && last.role == "assistant" {
		return last
	}
	t.messages = append(t.messages, message{role: "assistant"})
	return t.last()
}

// endAnswer drops an answer that was reasoning only: no service takes it.
func (t *translation) endAnswer() {
	if last := t.last(); last != nil && last.role == "assistant" && last.content == nil && len(last.calls) == 0 {
		t.messages = t.messages[:len(t.messages)-1]
	}
}

func (t *translation) last() *message {
	if len(t.messages) == 0 {
		return nil
	}
	return &t.messages[len(t.messages)-1]
}

func joined(before *string, text string) *string {
	if before != nil {
		text = *before + "\n\n" + text
	}
	return &text
}
