package llmtest

import (
	"fmt"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// Check is the strictness of the scripted model as a function: it returns what a
// strict service would refuse a request for, in the form in which workers build it.
// It does not look at the size.
func Check(r llm.Request) error {
	h := history{request: &Request{}, ids: map[string]bool{}}
	for _, spec := range r.Tools {
		if err := h.tool(spec.Name, spec.Parameters); err != nil {
			return err
		}
	}
	for i := 0; i < len(r.Items); {
		n, err := h.items(r.Items[i:])
		if err != nil {
			return fmt.Errorf("item %d at place %d of %d: %w", r.Items[i].N, i+1, len(r.Items), err)
		}
		i += n
	}
	return h.end()
}

// items reads one message off the beginning of items, which is how many it took.
func (h *history) items(items []session.Item) (taken int, err error) {
	switch first := items[0]; first.Kind {
	case session.KindUserMessage:
		text, err := solid(first.UserMessage.Text)
		if err != nil {
			return 0, err
		}
		return 1, h.user(text)
	case session.KindSummary:
		text, err := solid(first.Summary.Text)
		if err != nil {
			return 0, err
		}
		return 1, h.user(text)
	case session.KindToolResult:
		r := first.ToolResult
		text := r.Summary
		if r.Content != nil {
			text += *r.Content
		}
		if text, err = solid(text); err != nil {
			return 0, err
		}
		return 1, h.result(itemID(r.CallN), text, r.Failed)
	}
	return h.answer(items)
}

// answer reads an assistant message: all items that follow each other and are the
// model's own.
func (h *history) answer(items []session.Item) (taken int, err error) {
	h.assistant("", "")
	for _, item := range items {
		switch item.Kind {
		case session.KindAssistantMessage:
			text, err := solid(item.AssistantMessage.Text)
			if err != nil {
				return 0, err
			}
			h.last().Text += text
		case session.KindReasoning:
			h.last().Reasoning += item.Reasoning.Text
		case session.KindToolCall:
			if err := h.call(itemID(item.N), item.ToolCall.Tool, string(item.ToolCall.Arguments)); err != nil {
				return 0, err
			}
		default:
			return taken, h.assistantDone()
		}
		taken++
	}
	return taken, h.assistantDone()
}

func itemID(n int64) string { return fmt.Sprintf("call_%d", n) }

func solid(text string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("text %q is blank", text)
	case session.Clean(text) != text:
		return "", fmt.Errorf("text of %d bytes is not clean", len(text))
	}
	return text, nil
}
