package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const maxCacheMarks = 4

type messagesRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name         string          `json:"name"`
		Schema       json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
}

type messageBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	IsError      bool            `json:"is_error"`
	CacheControl json.RawMessage `json:"cache_control"`
}

func (messages) parse(r *Request) error {
	var body messagesRequest
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return fmt.Errorf("the body is not what it should be: %w", err)
	}
	r.Model = body.Model
	h := history{request: r, ids: map[string]bool{}}
	if err := checkHead(body.Model, body.Stream, len(body.Messages)); err != nil {
		return err
	}
	if body.MaxTokens < 1 {
		return errors.New("max_tokens: must be above 0")
	}
	marks, err := h.messagesHead(body)
	if err != nil {
		return err
	}
	for i, m := range body.Messages {
		blocks, err := messageBlocksOf(m.Content)
		if err == nil {
			err = h.message(i, m.Role, blocks)
		}
		if err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
		for _, block := range blocks {
			marks += mark(block.CacheControl)
		}
	}
	if marks > maxCacheMarks {
		return fmt.Errorf("a maximum of %d blocks with cache_control may be provided, found %d", maxCacheMarks, marks)
	}
	return h.end()
}

// messagesHead reads the tools and the system text, and counts their cache marks.
func (h *history) messagesHead(body messagesRequest) (marks int, err error) {
	for _, tool := range body.Tools {
		if err := h.tool(tool.Name, tool.Schema); err != nil {
			return 0, err
		}
		marks += mark(tool.CacheControl)
	}
	system, err := messageBlocksOf(body.System)
	if err != nil {
		return 0, fmt.Errorf("system: %w", err)
	}
	for _, block := range system {
		h.request.System = appendText(h.request.System, block.Text)
		marks += mark(block.CacheControl)
	}
	return marks, nil
}

func mark(cacheControl json.RawMessage) int {
	if len(cacheControl) == 0 || string(cacheControl) == "null" {
		return 0
	}
	return 1
}

func (h *history) message(i int, role string, blocks []messageBlock) error {
	want := []string{"user", "assistant"}[i%2]
	switch {
	case role != "user" && role != "assistant":
		return fmt.Errorf("unknown role %q", role)
	case role != want:
		return fmt.Errorf("roles must alternate, beginning with the user: want %s", want)
	case len(blocks) == 0:
		return errors.New("content must be non-empty")
	case role == "user":
		return h.userBlocks(blocks)
	}
	return h.assistantBlocks(blocks)
}

func (h *history) userBlocks(blocks []messageBlock) error {
	text := ""
	for _, block := range blocks {
		switch {
		case block.Type == "text":
			text = appendText(text, block.Text)
		case block.Type == "tool_result" && text != "":
			return errors.New("results must come before text")
		case block.Type == "tool_result":
			content, err := contentText(block.Content)
			if err != nil {
				return err
			}
			if err := h.result(block.ToolUseID, content, block.IsError); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a user message has no block of type %q", block.Type)
		}
	}
	if text != "" {
		return h.user(text)
	}
	return h.settled()
}

func (h *history) assistantBlocks(blocks []messageBlock) error {
	h.assistant("", "")
	for _, block := range blocks {
		switch block.Type {
		case "text":
			h.last().Text = appendText(h.last().Text, block.Text)
		case "thinking":
			if block.Signature == "" {
				return errors.New("thinking without a signature")
			}
			h.last().Reasoning += block.Thinking
		case "redacted_thinking":
			if block.Data == "" {
				return errors.New("redacted thinking without data")
			}
		case "tool_use":
			if err := h.call(block.ID, block.Name, string(block.Input)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("an assistant message has no block of type %q", block.Type)
		}
	}
	return h.assistantDone()
}

// messageBlocksOf reads content that is a string or blocks. Blank text is refused.
func messageBlocksOf(content json.RawMessage) ([]messageBlock, error) {
	if len(content) == 0 || string(content) == "null" {
		return nil, nil
	}
	var blocks []messageBlock
	var text string
	if json.Unmarshal(content, &text) == nil {
		blocks = []messageBlock{{Type: "text", Text: text}}
	} else if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, errors.New("content is neither a string nor an array of blocks")
	}
	for _, block := range blocks {
		if block.Type == "text" && strings.TrimSpace(block.Text) == "" {
			return nil, errors.New("text content blocks must be non-empty")
		}
	}
	return blocks, nil
}
