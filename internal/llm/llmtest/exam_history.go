package llmtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// longHistory has an item of every kind, in every neighbourhood that a worker
// makes.
func longHistory() []session.Item {
	return []session.Item{
		{N: 1, Kind: session.KindSummary, Summary: &session.Summary{Text: "Earlier we met."}},
		userItem(2, "Read a and b"),
		{N: 3, Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "of another model", Provider: "x", Model: "y", Signature: "sig"}},
		{N: 4, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "I read both."}},
		callItem(5, session.ToolCall{Tool: "Read", Arguments: []byte(`{"path":"<a>"}`)}),
		callItem(6, session.ToolCall{Tool: "Read", Raw: `{"path":"b`}),
		callItem(7, session.ToolCall{Tool: "Read", Arguments: []byte(`{}`)}),
		resultItem(8, session.ToolResult{CallN: 5, Tool: "Read", Summary: "read 1 file", Content: session.Text("<a> & \"b\"\n日本")}),
		resultItem(9, session.ToolResult{CallN: 6, Tool: "Read", Failed: true, Summary: "bad arguments"}),
		resultItem(10, session.ToolResult{CallN: 7, Tool: "Read", Summary: "read 0 bytes", Content: session.Text(" \n")}),
		{N: 11, Kind: session.KindSummary, Summary: &session.Summary{Text: "Only the first calls were run."}},
		callItem(12, session.ToolCall{Tool: "Read", Arguments: []byte(`{"path":"c"}`)}),
		resultItem(13, session.ToolResult{CallN: 12, Tool: "Read", Summary: "read 1 file"}),
		{N: 14, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "It is", Incomplete: true}},
		userItem(15, "Go on"),
		{N: 16, Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "alone", Provider: "x", Model: "y"}},
		userItem(17, "Please"),
		callItem(18, session.ToolCall{Tool: "Read", Arguments: []byte(`{"path":"d"}`)}),
		resultItem(19, session.ToolResult{CallN: 18, Tool: "Read", Summary: "read 1 file"}),
	}
}

func longMessages() []Message {
	return []Message{
		{Role: "user", Text: "Earlier we met.\n\nRead a and b"},
		{Role: "assistant", Text: "I read both.", Calls: []CallSeen{
			{"call_5", "Read", `{"path":"<a>"}`}, {"call_6", "Read", `{}`}, {"call_7", "Read", `{}`},
		}},
		{Role: "tool", Results: []ResultSeen{
			{"call_5", "read 1 file\n\n<a> & \"b\"\n日本", false}, {"call_6", "bad arguments", true}, {"call_7", "read 0 bytes", false},
		}},
		{Role: "user", Text: "Only the first calls were run."},
		{Role: "assistant", Calls: []CallSeen{{"call_12", "Read", `{"path":"c"}`}}},
		{Role: "tool", Results: []ResultSeen{{"call_12", "read 1 file", false}}},
		{Role: "assistant", Text: "It is"},
		{Role: "user", Text: "Go on\n\nPlease"},
		{Role: "assistant", Calls: []CallSeen{{"call_18", "Read", `{"path":"d"}`}}},
		{Role: "tool", Results: []ResultSeen{{"call_18", "read 1 file", false}}},
	}
}

func callItem(n int64, c session.ToolCall) session.Item {
	return session.Item{N: n, Kind: session.KindToolCall, ToolCall: &c}
}

func resultItem(n int64, r session.ToolResult) session.Item {
	return session.Item{N: n, Kind: session.KindToolResult, ToolResult: &r}
}

func (e exam) history(t *testing.T) {
	tr := e.start(t)
	r := hello()
	r.Items = longHistory()
	if _, err := tr.ask(t.Context(), t, r); err != nil {
		t.Fatal(err)
	}
	seen := tr.Requests()[0]
	options := cmp.Options{compareArguments()}
	if seen.face == (chat{}) {
		options = append(options, cmpopts.IgnoreFields(ResultSeen{}, "Failed"))
	}
	if diff := cmp.Diff(longMessages(), seen.Messages, options); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if seen.System != r.System || seen.Model != tr.provider.Model() || len(seen.Tools) != 1 || seen.Tools[0] != "Read" {
		t.Errorf("system = %q, model = %q, tools = %q", seen.System, seen.Model, seen.Tools)
	}
}

// compareArguments compares calls by what their arguments mean.
func compareArguments() cmp.Option {
	return cmp.Comparer(func(a, b CallSeen) bool {
		return a.ID == b.ID && a.Tool == b.Tool &&
			string(session.CleanArguments(a.Arguments)) == string(session.CleanArguments(b.Arguments))
	})
}

func (e exam) reasoningReturns(t *testing.T) {
	tests := []struct {
		name            string
		provider, model func(llm.Provider) string
		want            string
	}{
		{"to the same pair", llm.Provider.Name, llm.Provider.Model, "Hm, well."},
		{"not to another model", llm.Provider.Name, func(llm.Provider) string { return "another" }, ""},
		{"not to another provider", func(llm.Provider) string { return "another" }, llm.Provider.Model, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := e.start(t, Step{Reasoning: []string{"Hm, ", "well."}, Signature: "sig", Calls: []Call{{Tool: "Read", Arguments: `{"path":"a"}`}}})
			r := hello()
			answer, err := tr.ask(t.Context(), t, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range answer.Blocks {
				n := int64(len(r.Items) + 1)
				switch b.Kind {
				case session.KindReasoning:
					r.Items = append(r.Items, session.Item{N: n, Kind: b.Kind, Reasoning: &session.Reasoning{
						Text: b.Text, Signature: b.Signature, Redacted: b.Redacted, Provider: test.provider(tr.provider), Model: test.model(tr.provider),
					}})
				case session.KindToolCall:
					r.Items = append(r.Items, callItem(n, session.ToolCall{Tool: b.Tool, Arguments: session.CleanArguments(b.Text)}),
						resultItem(n+1, session.ToolResult{CallN: n, Tool: b.Tool, Summary: "done"}))
				}
			}
			if _, err := tr.ask(t.Context(), t, r); err != nil {
				t.Fatal(err)
			}
			seen := tr.Requests()[1].Messages
			if len(seen) != 3 || seen[1].Reasoning != test.want {
				t.Errorf("messages = %+v, want reasoning %q in the second", seen, test.want)
			}
		})
	}
}
