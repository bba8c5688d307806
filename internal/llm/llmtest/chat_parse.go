package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type chatRequest struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream"`
	Messages []chatMessage `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type chatMessage struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	ToolCallID       string          `json:"tool_call_id"`
	ToolCalls        []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (chat) parse(r *Request) error {
	var body chatRequest
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return fmt.Errorf("the body is not what it should be: %w", err)
	}
	r.Model = body.Model
	h := history{request: r, ids: map[string]bool{}}
	if err := checkHead(body.Model, body.Stream, len(body.Messages)); err != nil {
		return err
	}
	for _, tool := range body.Tools {
		if tool.Type != "function" {
			return fmt.Errorf("tools: unknown type %q", tool.Type)
		}
		if err := h.tool(tool.Function.Name, tool.Function.Parameters); err != nil {
			return err
		}
	}
	for i, m := range body.Messages {
		if err := h.chatMessage(i, m); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return h.end()
}

func (h *history) chatMessage(i int, m chatMessage) error {
	text, err := contentText(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "system", "developer":
		if i > 0 {
			return errors.New("a system message must be at the beginning")
		}
		if text == "" {
			return errors.New("content is missing")
		}
		h.request.System = text
		return nil
	case "user":
		return h.user(text)
	case "tool":
		return h.result(m.ToolCallID, text, false)
	case "assistant":
		h.assistant(text, m.ReasoningContent+m.Reasoning)
		for _, call := range m.ToolCalls {
			if call.Type != "function" {
				return fmt.Errorf("tool_calls: unknown type %q", call.Type)
			}
			if err := h.call(call.ID, call.Function.Name, call.Function.Arguments); err != nil {
				return err
			}
		}
		return h.assistantDone()
	}
	return fmt.Errorf("unknown role %q", m.Role)
}

// contentText reads content that is a string, or text parts, or null, which is "".
// Blank text is refused.
func contentText(content json.RawMessage) (string, error) {
	if len(content) == 0 || string(content) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(content, &text) != nil {
		var parts []struct{ Type, Text string }
		if err := json.Unmarshal(content, &parts); err != nil {
			return "", errors.New("content is neither a string nor an array of parts")
		}
		for _, part := range parts {
			if part.Type != "text" {
				return "", fmt.Errorf("content: unknown type %q", part.Type)
			}
			if strings.TrimSpace(part.Text) == "" {
				return "", errors.New("text content blocks must be non-empty")
			}
			text = appendText(text, part.Text)
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("text content must be non-empty")
	}
	return text, nil
}

// appendText puts blocks of text together, with a blank line between.
func appendText(text, more string) string {
	if text == "" {
		return more
	}
	return text + "\n\n" + more
}
