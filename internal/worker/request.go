package worker

import (
	"encoding/json"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
)

// lostResult answers a call whose result the history lacks. No turn of ours leaves
// one open; a history that came from elsewhere may.
const lostResult = "The result of this call was lost. Whether it ran is unknown."

// request is the history as the model may be asked with it. It alone guarantees what
// providers refuse to do without: each call has exactly one result, results follow
// the calls of their answer in call order, no text is blank, no reasoning goes to a
// model that did not write it, and no arguments are sent back that are not JSON.
func (e *Engine) request(history []session.Item, recall string) llm.Request {
	b := builder{provider: e.Provider.Name(), model: e.Provider.Model(), out: make([]session.Item, 0, len(history))}
	for i := 0; i < len(history); {
		if !ofAnswer(history[i].Kind) {
			b.single(history[i])
			i++
			continue
		}
		end := i
		for end < len(history) && ofAnswer(history[end].Kind) {
			end++
		}
		results := end
		for results < len(history) && history[results].Kind == session.KindToolResult {
			results++
		}
		b.answer(history[i:end], history[end:results])
		i = results
	}
	return llm.Request{System: e.system(recall), Tools: e.Tools.Specs(), Items: b.out}
}

// system is the instructions, and what the session recalls, cut like a result.
func (e *Engine) system(recall string) string {
	if blank(recall) {
		return e.Instructions
	}
	told, _ := truncate(recall, 0, max(e.RecallMaxBytes, manifest.MinLimitBytes))
	return strings.TrimPrefix(e.Instructions+"\n\n"+told, "\n\n")
}

type builder struct {
	provider, model string
	out             []session.Item
}

// ofAnswer reports whether the model wrote items of this kind.
func ofAnswer(k session.ItemKind) bool {
	return k == session.KindAssistantMessage || k == session.KindReasoning || k == session.KindToolCall
}

// single adds an item between answers. A result there has lost its call.
func (b *builder) single(item session.Item) {
	switch item.Kind {
	case session.KindUserMessage:
		if !blank(item.UserMessage.Text) {
			b.out = append(b.out, item)
		}
	case session.KindSummary:
		if !blank(item.Summary.Text) {
			b.out = append(b.out, item)
		}
	}
}

// answer adds an answer and the results of its calls. One of reasoning alone says
// nothing and is left out.
func (b *builder) answer(answer, results []session.Item) {
	start := len(b.out)
	var said bool
	for _, item := range answer {
		switch item.Kind {
		case session.KindReasoning:
			if r := item.Reasoning; r.Provider != b.provider || r.Model != b.model || blank(r.Text) && r.Signature == "" && r.Redacted == "" {
				continue
			}
		case session.KindAssistantMessage:
			if blank(item.AssistantMessage.Text) {
				continue
			}
			said = true
		case session.KindToolCall:
			if item.ToolCall.Arguments == nil {
				item.ToolCall = &session.ToolCall{Tool: item.ToolCall.Tool, Arguments: json.RawMessage("{}")}
			}
			said = true
		}
		b.out = append(b.out, item)
	}
	if !said {
		b.out = b.out[:start]
		return
	}
	for _, call := range answer {
		if call.Kind == session.KindToolCall {
			b.out = append(b.out, resultOf(call, results))
		}
	}
}

// resultOf finds the result of a call, or makes one up that says it was lost.
func resultOf(call session.Item, results []session.Item) session.Item {
	for _, result := range results {
		if result.ToolResult.CallN == call.N {
			return result
		}
	}
	call.Kind, call.ToolResult = session.KindToolResult, &session.ToolResult{
		CallN: call.N, Tool: call.ToolCall.Tool, Failed: true,
		Summary: call.ToolCall.Tool + ": result lost", Content: session.Text(lostResult),
	}
	call.ToolCall = nil
	return call
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
