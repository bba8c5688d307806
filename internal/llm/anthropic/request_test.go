package anthropic

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
)

var update = flag.Bool("update", false, "write the golden file")

const golden = "testdata/request.json"

// history has each kind of item, in each place where its translation differs.
func history() []session.Item {
	return []session.Item{
		user("list <b> the files"),
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "mine", Provider: "anthropic", Model: "m", Signature: "sig=="}},
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Provider: "anthropic", Model: "m", Redacted: "data=="}},
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Provider: "anthropic", Model: "m", Signature: "no text"}},
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "unsigned", Provider: "anthropic", Model: "m"}},
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "of another model", Provider: "anthropic", Model: "n", Signature: "x"}},
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "of another provider", Provider: "openai", Model: "m", Signature: "x"}},
		assistant("I look."),
		{N: 9, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Glob", Arguments: json.RawMessage(`{"pattern":"*","big":12345678901234567890}`)}},
		{N: 10, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Raw: `{"path":"x`}},
		{N: 11, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 9, Tool: "Glob", Summary: "2 files", Content: new("a\nb")}},
		{N: 12, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 10, Tool: "Read", Failed: true, Summary: "bad arguments"}},
		{Kind: session.KindSummary, Summary: &session.Summary{Text: "3 calls were dropped"}},
		assistant("Two files."),
		assistant("And no more."),
		user("thanks"),
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "alone", Provider: "anthropic", Model: "m", Signature: "sig"}},
		user("hello?"),
		assistant("Yes."),
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "at the end", Provider: "anthropic", Model: "m", Signature: "sig"}},
		user("good"),
	}
}

func TestRequestOnTheWire(t *testing.T) {
	p := New(Config{Name: "m"})
	got, err := session.EncodeJSON(p.translate(llm.Request{
		System: "Be brief.",
		Tools: []session.ToolSpec{
			{Name: "Glob", Description: "finds", Parameters: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"}},"additionalProperties":false}`)},
			{Name: "Read", Parameters: json.RawMessage(`{"type":"object"}`)},
		},
		Items: history(),
	}))
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), indented.String()); diff != "" {
		t.Errorf("the request is not that of %s (-want +got):\n%s", golden, diff)
	}
}

func TestMinimalRequestHasNothingEmpty(t *testing.T) {
	got, err := session.EncodeJSON(New(Config{Name: "m", MaxOutputTokens: 5}).translate(llm.Request{Items: []session.Item{user("hi")}}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
}

func TestCacheMarksMoveWithTheHistory(t *testing.T) {
	p := New(Config{Name: "m"})
	items := history()
	for n := 1; n <= len(items); n++ {
		if k := items[n-1].Kind; k != session.KindUserMessage && k != session.KindToolResult {
			continue
		}
		got, err := session.EncodeJSON(p.translate(llm.Request{System: "s", Tools: []session.ToolSpec{{Name: "A", Parameters: json.RawMessage(`{}`)}}, Items: items[:n]}))
		if err != nil {
			t.Fatal(err)
		}
		const mark = `"cache_control":{"type":"ephemeral"}`
		if marks := strings.Count(string(got), mark); marks < 3 || marks > 4 {
			t.Errorf("after %d items the request has %d cache marks, want 3 or 4", n, marks)
		}
	}
}

func user(s string) session.Item {
	return session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: s}}
}

func assistant(s string) session.Item {
	return session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: s}}
}
