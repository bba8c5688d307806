package worker

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"loadline/internal/session"
)

// past makes a history item by item.
type past struct{ items []session.Item }

func (p *past) add(item session.Item) int64 {
	item.N = int64(len(p.items) + 1)
	p.items = append(p.items, item)
	return item.N
}

func (p *past) user(text string) {
	p.add(session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: text}})
}

func (p *past) says(text string) {
	p.add(session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: text}})
}

func (p *past) thinks(text string) {
	p.add(session.Item{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: text, Provider: "scripted", Model: "m"}})
}

func (p *past) call(arguments string) int64 {
	return p.add(session.Item{Kind: session.KindToolCall, ToolCall: newToolCall("Read", arguments)})
}

func (p *past) result(callN int64, content string) {
	p.add(session.Item{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: callN, Tool: "Read", Summary: "read", Content: &content}})
}

// step is an answer with calls, and its results.
func (p *past) step(arguments string, contents ...string) {
	var calls []int64
	for range contents {
		calls = append(calls, p.call(arguments))
	}
	for i, content := range contents {
		p.result(calls[i], content)
	}
}

func (p *past) sums(text string, to int64) {
	p.add(session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: text, FromN: 1, ToN: to}})
}

// drawPast is any history, whole or broken.
func drawPast(t *rapid.T) []session.Item {
	var p past
	size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(200, 400), rapid.IntRange(0, 6000))
	text := func() string {
		return strings.Repeat(rapid.SampledFrom([]string{"x", "日", " ", "a\n"}).Draw(t, "text"), size.Draw(t, "size")/2)
	}
	for range rapid.IntRange(0, 25).Draw(t, "items") {
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0, 1:
			p.user(text())
		case 2:
			p.says(text())
		case 3:
			p.thinks(text())
		case 4:
			p.step(fmt.Sprintf(`{"a":%q,"n":1}`, text()), text(), text())
		case 5:
			p.call(rapid.SampledFrom([]string{"{", `{"a":1}`, `[]`}).Draw(t, "arguments"))
		case 6:
			p.result(rapid.Int64Range(1, int64(len(p.items)+1)).Draw(t, "call"), text())
		case 7:
			if len(p.items) > 0 {
				p.sums("before: "+text(), rapid.Int64Range(1, int64(len(p.items))).Draw(t, "to"))
			}
		}
	}
	p.user("input " + text())
	if rapid.Bool().Draw(t, "step") {
		p.step(`{"a":"b"}`, text(), text(), text())
	}
	return p.items
}
