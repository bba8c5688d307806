package transfer

import (
	"encoding/json"
	"strings"

	"loadline/internal/session"
)

// chatMessage is a message of a chat completion, or an item of a response.
type chatMessage struct {
	Role    string          `json:"role"`
	Name    string          `json:"name"`
	Content json.RawMessage `json:"content"`
	Refusal string          `json:"refusal"`

	Reasoning string       `json:"reasoning_content"`
	Calls     []chatCall   `json:"tool_calls"`
	OldCall   chatFunction `json:"function_call"`
	CallID    string       `json:"tool_call_id"`

	// Of items of a response.
	Type      string          `json:"type"`
	ItemID    string          `json:"call_id"`
	Arguments json.RawMessage `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (b *builder) readOpenAI(d document) {
	for i, raw := range d.messages {
		var m chatMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			b.repair(i, session.RepairMessageDropped, "the message cannot be read: %v", err)
			continue
		}
		b.chatMessage(i, m)
	}
}

func (b *builder) chatMessage(i int, m chatMessage) {
	switch {
	case m.Type == "function_call":
		// Each call of a response is an item of its own; they are one answer until
		// a result comes.
		b.closeIfAnswered()
		b.call(b.sameAnswer(i), m.ItemID, m.Name, argumentsOf(m.Arguments))
	case m.Type == "function_call_output":
		b.result(result{index: i, id: m.ItemID, out: plainOutput("", b.text(i, m.Output), false)})
	case m.Role == "system" || m.Role == "developer":
		b.repair(i, session.RepairSystemDropped, "instructions of %d bytes were dropped: those of this server hold", len(m.Content))
	case m.Role == "user":
		b.user(i, b.text(i, m.Content))
	case m.Role == "assistant":
		b.chatAnswer(i, m)
	case m.Role == "tool":
		b.result(result{index: i, id: m.CallID, tool: toolOf(m.Name), out: plainOutput(m.Name, b.text(i, m.Content), false)})
	case m.Role == "function":
		b.result(result{index: i, id: "function " + m.Name, tool: toolOf(m.Name), out: plainOutput(m.Name, b.text(i, m.Content), false)})
	default:
		b.repair(i, session.RepairMessageDropped, "a message of role %.100q and type %.100q was dropped", m.Role, m.Type)
	}
}

// sameAnswer is the index of the open answer, or i when there is none.
func (b *builder) sameAnswer(i int) int {
	if len(b.calls) > 0 {
		return b.message
	}
	return i
}

func toolOf(name string) string {
	if name == "" {
		return ""
	}
	return toolName(name)
}

func (b *builder) chatAnswer(i int, m chatMessage) {
	text := strings.TrimSpace(b.text(i, m.Content) + "\n\n" + m.Refusal)
	if m.Reasoning != "" {
		b.reasoning(i, session.Reasoning{Text: m.Reasoning, Provider: string(FormatOpenAI), Model: "imported"})
	}
	if text != "" || len(m.Calls) == 0 && m.OldCall.Name == "" {
		b.assistant(i, text, false)
	}
	for _, c := range m.Calls {
		b.call(i, c.ID, c.Function.Name, argumentsOf(c.Function.Arguments))
	}
	if m.OldCall.Name != "" {
		b.call(i, "function "+m.OldCall.Name, m.OldCall.Name, argumentsOf(m.OldCall.Arguments))
	}
}

// text is the text of a content: a string, or the texts of its parts. Other parts
// are dropped.
func (b *builder) text(i int, content json.RawMessage) string {
	var text string
	if len(content) == 0 || json.Unmarshal(content, &text) == nil { // null is no text
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		b.repair(i, session.RepairPartDropped, "a content cannot be read: %v", errNoText)
		return ""
	}
	var texts []string
	for _, part := range parts {
		switch part.Type {
		case "text", "input_text", "output_text", "refusal":
			texts = append(texts, part.Text)
		default:
			b.repair(i, session.RepairPartDropped, "a part of type %.100q was dropped: a history holds text", part.Type)
		}
	}
	return strings.Join(texts, "\n\n")
}
