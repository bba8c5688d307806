package openai

import (
	"encoding/json"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	fieldReasoningContent = "reasoning_content"
	// fieldReasoning is the name under which some services stream reasoning instead.
	// It is kept as the signature of the block, because they take it back under the
	// same name only.
	fieldReasoning = "reasoning"
)

// chatRequest is a request without its messages, which are most of it and are
// written by hand: a long history is sent with each step.
type chatRequest struct {
	Model         string        `json:"model"`
	Tools         []tool        `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`

	MaxTokens           int64 `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64 `json:"max_completion_tokens,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// encode translates a request, and reports whether it holds reasoning.
func (p *Provider) encode(r llm.Request) (body []byte, withReasoning bool, err error) {
	request := chatRequest{Model: p.model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		MaxTokens: p.maxTokens, MaxCompletionTokens: p.maxCompletionTokens}
	for _, spec := range r.Tools {
		if len(spec.Parameters) == 0 {
			spec.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		request.Tools = append(request.Tools, tool{Type: "function", Function: function{spec.Name, spec.Description, spec.Parameters}})
	}
	body, err = session.EncodeJSON(request)
	if err != nil {
		return nil, false, err
	}
	w := writer{provider: p, body: make([]byte, 0, len(body)+sizeOf(r))}
	w.body = append(append(w.body, body[:len(body)-1]...), `,"messages":[`...)
	if r.System != "" {
		w.texts("system", r.System)
	}
	w.history(r.Items)
	return append(w.body, "]}"...), w.withReasoning, nil
}
