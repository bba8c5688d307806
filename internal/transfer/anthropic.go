package transfer

import (
	"encoding/json"
	"strings"

	"loadline/internal/session"
)

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (b *builder) readAnthropic(d document) {
	if system, ok := d.head["system"]; ok {
		b.repair(0, session.RepairSystemDropped, "instructions of %d bytes were dropped: those of this server hold", len(system))
	}
	model := d.text("model")
	if model == "" {
		model = "imported"
	}
	for i, raw := range d.messages {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			b.repair(i, session.RepairMessageDropped, "the message cannot be read: %v", err)
			continue
		}
		blocks, err := blocksOf(m.Content)
		switch {
		case err != nil:
			b.repair(i, session.RepairMessageDropped, "its content cannot be read: %v", err)
		case m.Role == "assistant":
			b.answerBlocks(i, blocks, model)
		case m.Role == "user":
			b.userBlocks(i, blocks)
		default:
			b.repair(i, session.RepairMessageDropped, "a message of role %.100q was dropped", m.Role)
		}
	}
}

// blocksOf reads a content; a string is one block of text.
func blocksOf(content json.RawMessage) ([]block, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}, nil
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return nil, errNoText
	}
	return blocks, nil
}

func (b *builder) answerBlocks(i int, blocks []block, model string) {
	for _, part := range blocks {
		switch part.Type {
		case "text":
			b.assistant(i, part.Text, false)
		case "thinking", "redacted_thinking":
			b.reasoning(i, session.Reasoning{Text: part.Thinking, Signature: part.Signature, Redacted: part.Data, Provider: string(FormatAnthropic), Model: model})
		case "tool_use":
			b.call(i, part.ID, part.Name, argumentsOf(part.Input))
		default:
			b.repair(i, session.RepairPartDropped, "a part of type %.100q was dropped", part.Type)
		}
	}
}

// userBlocks reads a message of the user: results first, wherever they stand, then
// its texts as one.
func (b *builder) userBlocks(i int, blocks []block) {
	var texts []string
	results := false
	for _, part := range blocks {
		switch part.Type {
		case "tool_result":
			results = true
			b.result(result{index: i, id: part.ToolUseID, out: plainOutput("", b.text(i, part.Content), part.IsError)})
		case "text":
			texts = append(texts, part.Text)
		default:
			b.repair(i, session.RepairPartDropped, "a part of type %.100q was dropped: a history holds text", part.Type)
		}
	}
	if text := strings.Join(texts, "\n\n"); !results || !isBlank(text) {
		b.user(i, text)
	}
}
