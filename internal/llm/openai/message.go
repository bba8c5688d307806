package openai

import (
	"loadline/internal/llm"
	"loadline/internal/session"
)

// messageBytes is about what a message needs beside its texts.
const messageBytes = 160

// sizeOf guesses how long the messages of a request become, from above.
func sizeOf(r llm.Request) int {
	size := len(r.System) + messageBytes
	for i := range r.Items {
		size += messageBytes
		switch item := &r.Items[i]; item.Kind {
		case session.KindUserMessage:
			size += len(item.UserMessage.Text)
		case session.KindAssistantMessage:
			size += len(item.AssistantMessage.Text)
		case session.KindToolCall:
			size += len(item.ToolCall.Arguments)
		case session.KindToolResult:
			size += len(item.ToolResult.Summary)
			if item.ToolResult.Content != nil {
				size += len(*item.ToolResult.Content)
			}
		}
	}
	return size + size/16 // what must be escaped
}

// writer writes the messages of a request. Consecutive items of an answer are one
// assistant message. A summary is the user's, and consecutive texts of the user are
// one message: so the templates of strict servers want it, that know no system
// message but the first and no two messages of one role.
type writer struct {
	provider      *Provider
	body          []byte
	messages      int
	withReasoning bool
	parts         []string // reused: the texts of a message
}

func (w *writer) add(text string)     { w.body = append(w.body, text...) }
func (w *writer) addText(text string) { w.body = session.AppendJSONText(w.body, text) }

func (w *writer) history(items []session.Item) {
	for i := 0; i < len(items); {
		end := endOfMessage(items, i)
		switch roleOf(items[i].Kind) {
		case "user":
			w.user(items[i:end])
		case "assistant":
			w.answer(items[i:end])
		case "tool":
			for ; i < end; i++ {
				w.result(items[i].ToolResult)
			}
		}
		i = end
	}
}

// endOfMessage finds the end of the run of items of one role from i on. An answer of
// reasoning alone does not part two texts of the user.
func endOfMessage(items []session.Item, i int) int {
	role := roleOf(items[i].Kind)
	end := i + 1
	for {
		next := end
		for role == "user" && next < len(items) && items[next].Kind == session.KindReasoning {
			next++
		}
		if next == len(items) || roleOf(items[next].Kind) != role {
			return end
		}
		end = next + 1
	}
}

func roleOf(k session.ItemKind) string {
	switch k {
	case session.KindUserMessage, session.KindSummary:
		return "user"
	case session.KindToolResult:
		return "tool"
	}
	return "assistant"
}

// open begins a message.
func (w *writer) open(role string) {
	if w.messages++; w.messages > 1 {
		w.add(",")
	}
	w.add(`{"role":"`)
	w.add(role)
	w.add(`","content":`)
}

// texts writes a message of nothing but text.
func (w *writer) texts(role string, texts ...string) {
	w.open(role)
	w.joined(texts)
	w.add("}")
}

func (w *writer) joined(texts []string) {
	w.add(`"`)
	for i, text := range texts {
		if i > 0 {
			w.addText(llm.ParagraphBreak)
		}
		w.addText(text)
	}
	w.add(`"`)
}

func (w *writer) user(items []session.Item) {
	texts := w.parts[:0]
	for i := range items {
		switch items[i].Kind {
		case session.KindSummary:
			texts = append(texts, items[i].Summary.Text)
		case session.KindUserMessage:
			texts = append(texts, items[i].UserMessage.Text)
		}
	}
	w.texts("user", texts...)
	w.parts = texts
}

func (w *writer) result(r *session.ToolResult) {
	w.open("tool")
	w.joined(llm.ResultTexts(*r))
	w.add(`,"tool_call_id":"`)
	w.body = llm.AppendCallID(w.body, r.CallN)
	w.add(`"}`)
}

// answer writes an assistant message. One of reasoning alone is left out: no service
// takes it.
func (w *writer) answer(items []session.Item) {
	texts := w.parts[:0]
	calls := 0
	for i := range items {
		switch items[i].Kind {
		case session.KindAssistantMessage:
			texts = append(texts, items[i].AssistantMessage.Text)
		case session.KindToolCall:
			calls++
		}
	}
	w.parts = texts
	if len(texts) == 0 && calls == 0 {
		return
	}
	w.open("assistant")
	if len(texts) == 0 {
		w.add("null")
	} else {
		w.joined(texts)
	}
	w.reasoning(items)
	if calls > 0 {
		w.calls(items)
	}
	w.add("}")
}

// reasoning writes what this provider and model thought, under the name that it came
// under.
func (w *writer) reasoning(items []session.Item) {
	for _, field := range []string{fieldReasoningContent, fieldReasoning} {
		open := false
		for i := range items {
			r := items[i].Reasoning
			if r == nil || r.Provider != name || r.Model != w.provider.model || r.Text == "" || fieldOf(r) != field || w.provider.withoutReasoning.Load() {
				continue
			}
			if !open {
				w.add(`,"` + field + `":"`)
				open, w.withReasoning = true, true
			}
			w.addText(r.Text)
		}
		if open {
			w.add(`"`)
		}
	}
}

func fieldOf(r *session.Reasoning) string {
	if r.Signature == fieldReasoning {
		return fieldReasoning
	}
	return fieldReasoningContent
}

func (w *writer) calls(items []session.Item) {
	next := `,"tool_calls":[`
	for i := range items {
		call := items[i].ToolCall
		if call == nil {
			continue
		}
		arguments := "{}"
		if len(call.Arguments) > 0 {
			arguments = string(call.Arguments)
		}
		w.add(next)
		w.add(`{"id":"`)
		w.body = llm.AppendCallID(w.body, items[i].N)
		w.add(`","type":"function","function":{"name":"`)
		w.addText(call.Tool)
		w.add(`","arguments":"`)
		w.addText(arguments)
		w.add(`"}}`)
		next = ","
	}
	w.add("]")
}
