package transfer

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// FuzzRead holds that whatever is imported, a strict service takes the history, no
// result is above its limit, and the history comes back when it is exported.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"F","arguments":"{}"}},{"id":"a","function":{"name":"","arguments":"["}}]},{"role":"tool","tool_call_id":"a","content":"\u0000"}]`,
		`{"system":"s","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":""},{"type":"tool_use","id":"a","name":"F","input":[]},{"type":"text","text":"x"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":" "}]}]}]}`,
		`{"input":[{"type":"function_call","call_id":"1","name":"F"},{"type":"function_call_output","call_id":"1","output":"r"}]}`,
		export(f, history(), 2),
	} {
		for _, format := range []string{"", "openai", "anthropic", "loadline"} {
			f.Add([]byte(seed), format)
		}
	}
	f.Fuzz(func(t *testing.T, document []byte, format string) {
		got, err := Read(document, Format(format), limit)
		if err != nil {
			return
		}
		checkSendable(t, got.Items)
		again, err := Read([]byte(export(t, got.Items, 7)), "", limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got.Items, again.Items); diff != "" {
			t.Errorf("what is exported comes back otherwise (-before +after):\n%s", diff)
		}
	})
}

// checkSendable asks as a worker would, which leaves out of requests only what a
// history may hold: reasoning of others, and raw arguments.
func checkSendable(t *testing.T, items []session.Item) {
	t.Helper()
	next := session.Item{N: int64(len(items) + 1), Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "go on"}}
	sent := slices.DeleteFunc(slices.Clone(items), func(item session.Item) bool { return item.Reasoning != nil })
	for i := range sent {
		if c := sent[i].ToolCall; c != nil && c.Arguments == nil {
			if c.Raw == "" {
				t.Errorf("call %d has no arguments", sent[i].N)
			}
			sent[i].ToolCall = &session.ToolCall{Tool: c.Tool, Arguments: json.RawMessage("{}")}
		}
		if r := sent[i].ToolResult; r != nil && r.Content != nil && len(*r.Content) > testLimit {
			t.Errorf("result %d has %d bytes", sent[i].N, len(*r.Content))
		}
	}
	if err := llmtest.Check(llm.Request{Items: append(sent, next)}); err != nil {
		t.Errorf("a strict service refuses the history: %v", err)
	}
}
