package anthropic

import (
	"encoding/json"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// The body of a request. The SDK's own types would take more than twice the time
// for a long history, and six bytes for a "<".
type (
	request struct {
		Model     string    `json:"model"`
		MaxTokens int64     `json:"max_tokens"`
		Stream    bool      `json:"stream"`
		System    []part    `json:"system,omitempty"`
		Tools     []tool    `json:"tools,omitempty"`
		Messages  []message `json:"messages"`
	}
	tool struct {
		Name         string          `json:"name"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl *cacheControl   `json:"cache_control,omitempty"`
	}
	message struct {
		Role    string `json:"role"`
		Content []part `json:"content"`
	}
	// part is a block of a message, of any type.
	part struct {
		Type         string          `json:"type"`
		Text         string          `json:"text,omitempty"`
		Thinking     *string         `json:"thinking,omitempty"`
		Signature    string          `json:"signature,omitempty"`
		Data         string          `json:"data,omitempty"`
		ID           string          `json:"id,omitempty"`
		Name         string          `json:"name,omitempty"`
		Input        json.RawMessage `json:"input,omitempty"`
		ToolUseID    string          `json:"tool_use_id,omitempty"`
		Content      string          `json:"content,omitempty"`
		IsError      bool            `json:"is_error,omitempty"`
		CacheControl *cacheControl   `json:"cache_control,omitempty"`
	}
	cacheControl struct {
		Type string `json:"type"`
	}
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// translate makes the body of a request. The API wants messages of user and
// assistant in turn, the results of an answer's calls first in the message after
// it, and no answer that ends with thinking.
func (p *Provider) translate(r llm.Request) request {
	var c conversation
	for _, it := range r.Items {
		if role, part, ok := p.part(it); ok {
			c.add(role, part)
		}
	}
	out := request{Model: p.model, MaxTokens: p.maxOutputTokens, Stream: true, Messages: c.messages}
	for _, spec := range r.Tools {
		out.Tools = append(out.Tools, tool{Name: spec.Name, Description: spec.Description, InputSchema: spec.Parameters})
	}
	if r.System != "" {
		out.System = []part{{Type: "text", Text: r.System}}
	}
	out.markForCache()
	return out
}

// part translates an item. It is not ok for reasoning that may not be sent.
func (p *Provider) part(it session.Item) (role string, _ part, ok bool) {
	switch it.Kind {
	case session.KindUserMessage:
		return roleUser, part{Type: "text", Text: it.UserMessage.Text}, true
	case session.KindSummary:
		return roleUser, part{Type: "text", Text: it.Summary.Text}, true
	case session.KindToolResult:
		r := it.ToolResult
		return roleUser, part{Type: "tool_result", ToolUseID: llm.CallID(r.CallN), Content: llm.ResultText(*r), IsError: r.Failed}, true
	case session.KindAssistantMessage:
		return roleAssistant, part{Type: "text", Text: it.AssistantMessage.Text}, true
	case session.KindToolCall:
		input := it.ToolCall.Arguments
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		return roleAssistant, part{Type: "tool_use", ID: llm.CallID(it.N), Name: it.ToolCall.Tool, Input: input}, true
	case session.KindReasoning:
		return p.thinking(it.Reasoning)
	}
	return "", part{}, false
}

// thinking gives reasoning back to the model that wrote it. The API takes none
// without its signature.
func (p *Provider) thinking(r *session.Reasoning) (role string, _ part, ok bool) {
	switch {
	case r.Provider != p.Name() || r.Model != p.model:
		return "", part{}, false
	case r.Redacted != "":
		return roleAssistant, part{Type: "redacted_thinking", Data: r.Redacted}, true
	case r.Signature != "":
		return roleAssistant, part{Type: "thinking", Thinking: &r.Text, Signature: r.Signature}, true
	}
	return "", part{}, false
}

// markForCache marks what the next request will begin with too: the tools, the
// system text and the messages up to the end. The API allows four marks, and looks
// for older ones no more than 20 parts before each; so the last message of the
// user but one, where the mark was one request ago, keeps its own.
func (r *request) markForCache() {
	mark := &cacheControl{Type: "ephemeral"}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].CacheControl = mark
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].CacheControl = mark
	}
	marks := 0
	for i := len(r.Messages) - 1; i >= 0 && marks < 2; i-- {
		if m := r.Messages[i]; m.Role == roleUser {
			m.Content[len(m.Content)-1].CacheControl = mark
			marks++
		}
	}
}

// conversation collects messages, merging neighbours of one role.
type conversation struct {
	messages []message
}

func (c *conversation) add(role string, p part) {
	if role == roleUser {
		c.endAnswer()
	}
	last := len(c.messages) - 1
	if last >= 0 && c.messages[last].Role == role {
		c.messages[last].Content = append(c.messages[last].Content, p)
		return
	}
	c.messages = append(c.messages, message{Role: role, Content: []part{p}})
}

// endAnswer takes thinking off the end of an answer, and the answer with it when
// there was nothing else.
func (c *conversation) endAnswer() {
	last := len(c.messages) - 1
	if last < 0 || c.messages[last].Role != roleAssistant {
		return
	}
	content := c.messages[last].Content
	for len(content) > 0 && (content[len(content)-1].Type == "thinking" || content[len(content)-1].Type == "redacted_thinking") {
		content = content[:len(content)-1]
	}
	c.messages[last].Content = content
	if len(content) == 0 {
		c.messages = c.messages[:last]
	}
}
