package stream

import "loadline/internal/session"

// eventBytes is what an entry costs beside the texts it carries, roughly.
const eventBytes = 512

// weight estimates the memory that ev holds, in bytes.
func weight(ev *session.Event) int64 {
	n := eventBytes
	switch {
	case ev.Turn != nil:
		n += len(ev.Turn.Input)
	case ev.Item != nil:
		n += itemBytes(ev.Item)
	case ev.Activity != nil:
		n += len(ev.Activity.Text)
	case ev.Retry != nil:
		n += len(ev.Retry.Reason)
	case ev.Extract != nil:
		n += len(ev.Extract.Text)
	}
	return int64(n)
}

func itemBytes(item *session.Item) int {
	switch {
	case item.UserMessage != nil:
		return len(item.UserMessage.Text)
	case item.AssistantMessage != nil:
		return len(item.AssistantMessage.Text)
	case item.Reasoning != nil:
		return len(item.Reasoning.Text) + len(item.Reasoning.Signature) + len(item.Reasoning.Redacted)
	case item.ToolCall != nil:
		return len(item.ToolCall.Arguments) + len(item.ToolCall.Raw)
	case item.ToolResult != nil && item.ToolResult.Content != nil:
		return len(*item.ToolResult.Content)
	case item.Summary != nil:
		return len(item.Summary.Text)
	}
	return 0
}
