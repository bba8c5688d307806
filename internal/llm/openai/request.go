package openai

import (
	"bytes"
	"encoding/json"
	"slices"

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
	beginning, err := p.encodeBeginning(r.Tools)
	if err != nil {
		return nil, false, err
	}
	w := writer{provider: p, body: make([]byte, 0, len(beginning)+sizeOf(r))}
	w.body = append(w.body, beginning...)
	if r.System != "" {
		w.texts("system", r.System)
	}
	w.history(r.Items)
	return append(w.body, "]}"...), w.withReasoning, nil
}

// beginning is a request up to its messages.
type beginning struct {
	tools []session.ToolSpec
	body  []byte
}

// encodeBeginning writes a request up to its messages. The last one is kept: the tools
// are the same from step to step, and take longer to encode than a short history.
func (p *Provider) encodeBeginning(tools []session.ToolSpec) ([]byte, error) {
	if last := p.lastBeginning.Load(); last != nil && slices.EqualFunc(last.tools, tools, sameTool) {
		return last.body, nil
	}
	request := chatRequest{Model: p.model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		MaxTokens: p.maxTokens, MaxCompletionTokens: p.maxCompletionTokens}
	for _, spec := range tools {
		if len(spec.Parameters) == 0 {
			spec.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		request.Tools = append(request.Tools, tool{Type: "function", Function: function{spec.Name, spec.Description, spec.Parameters}})
	}
	body, err := session.EncodeJSON(request)
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1], `,"messages":[`...)
	p.lastBeginning.Store(&beginning{tools, body})
	return body, nil
}

func sameTool(a, b session.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}
