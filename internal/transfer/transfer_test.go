package transfer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

const testLimit = 200

func limit(string, int) int { return testLimit }

// told is a history as a test says it, an item a line.
func told(items []session.Item) []string {
	var lines []string
	for _, item := range items {
		line := fmt.Sprintf("%d ", item.N)
		switch {
		case item.UserMessage != nil:
			line += "user " + item.UserMessage.Text
		case item.AssistantMessage != nil:
			line += "says " + item.AssistantMessage.Text
		case item.Reasoning != nil:
			line += fmt.Sprintf("thinks %s (%s/%s %s%s)", item.Reasoning.Text, item.Reasoning.Provider, item.Reasoning.Model, item.Reasoning.Signature, item.Reasoning.Redacted)
		case item.ToolCall != nil:
			line += fmt.Sprintf("calls %s %s%s", item.ToolCall.Tool, item.ToolCall.Arguments, item.ToolCall.Raw)
		case item.Summary != nil:
			line += fmt.Sprintf("summary %d-%d %s", item.Summary.FromN, item.Summary.ToN, item.Summary.Text)
		case item.ToolResult != nil:
			line += fmt.Sprintf("result %d", item.ToolResult.CallN)
			if item.ToolResult.Failed {
				line += " failed"
			}
			if c := item.ToolResult.Content; c != nil {
				line += " " + *c
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func codes(repairs []session.Repair) []string {
	var all []string
	for _, r := range repairs {
		all = append(all, fmt.Sprintf("%d %s", r.Index, r.Code))
	}
	return all
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name, document string
		format         Format
		want, repairs  []string
	}{
		{"chat", `{"model":"x","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{\"path\":\"x\"}"}}]},
			{"role":"tool","tool_call_id":"a","content":"text"},{"role":"assistant","content":"done"}]}`, FormatOpenAI,
			[]string{"1 user hi", `2 calls Read {"path":"x"}`, "3 result 2 text", "4 says done"}, nil},
		{"parts, reasoning, instructions", `[{"role":"system","content":"be"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]},{"role":"assistant","reasoning_content":"hm","content":"c"}]`, FormatOpenAI,
			[]string{"1 user a\n\nb", "2 thinks hm (openai/imported )", "3 says c"}, []string{"0 system_dropped", "1 part_dropped"}},
		{"old calls", `[{"role":"assistant","function_call":{"name":"F","arguments":"{}"}},{"role":"function","name":"F","content":"r"}]`, FormatOpenAI,
			[]string{"1 calls F {}", "2 result 1 r"}, nil},
		{"response items", `{"input":[{"type":"message","role":"user","content":"u"},{"type":"function_call","call_id":"1","name":"F","arguments":"{}"},{"type":"function_call","call_id":"2","name":"G","arguments":"{}"},
			{"type":"function_call_output","call_id":"1","output":"r1"},{"type":"function_call_output","call_id":"2","output":"r2"},{"type":"function_call","call_id":"3","name":"H","arguments":"{}"}]}`, FormatOpenAI,
			[]string{"1 user u", "2 calls F {}", "3 calls G {}", "4 result 2 r1", "5 result 3 r2", "6 calls H {}", "7 result 6 failed " + lostContent}, []string{"5 orphan_call"}},
		{"orphan call before a message", `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"F","arguments":"{}"}}]},{"role":"user","content":"u"},{"role":"tool","tool_call_id":"a","content":"late"}]`, FormatOpenAI,
			[]string{"1 calls F {}", "2 result 1 failed " + lostContent, "3 user u", "4 summary 0-0 " + fmt.Sprintf(orphanHead, "unknown", "late")}, []string{"0 orphan_call", "2 orphan_result"}},
		{"results in another order, one twice", `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"F","arguments":"{}"}},{"id":"b","function":{"name":"G","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"b","content":"rb"},{"role":"tool","tool_call_id":"a","content":"ra"},{"role":"tool","tool_call_id":"a","content":"again"}]`, FormatOpenAI,
			[]string{"1 calls F {}", "2 calls G {}", "3 result 1 ra", "4 result 2 rb", "5 summary 0-0 " + fmt.Sprintf(orphanHead, "unknown", "again")}, []string{"1 result_moved", "3 orphan_result"}},
		{"arguments, names, blanks", `[{"role":"user","content":" \n"},{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"my.tool","arguments":"{half"}}]},{"role":"tool","tool_call_id":"a","content":""},{"role":"assistant","content":" "},{"role":"x"},7]`, FormatOpenAI,
			[]string{"1 calls my_tool {half", "2 result 1"}, []string{"0 blank_text", "1 tool_renamed", "1 raw_arguments", "3 blank_text", "4 message_dropped", "5 message_dropped"}},
		{"blocks", `{"model":"m","system":"s","messages":[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"sig"},{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"F","input":{"k":1}},{"type":"tool_use","id":"b","name":"G","input":{}}]},
			{"role":"user","content":[{"type":"text","text":"and"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"ra"},{"type":"image"}]},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"rb"}]}]}`, FormatAnthropic,
			[]string{"1 user u", "2 thinks t (anthropic/m sig)", "3 says x", `4 calls F {"k":1}`, "5 calls G {}", "6 result 4 ra", "7 result 5 failed rb", "8 user and"}, []string{"0 system_dropped", "2 part_dropped"}},
		{"results alone are no blank message", `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"F","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`, FormatAnthropic,
			[]string{"1 calls F {}", "2 result 1"}, nil},
		{"invalid bytes", "[{\"role\":\"user\",\"content\":\"a\xff\\u0000\"}]", FormatOpenAI, []string{"1 user a\ufffd\ufffd"}, nil},
		{"large result", `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"F","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"` + strings.Repeat("x", 300) + `"}]`, FormatOpenAI,
			[]string{"1 calls F {}", "2 result 1 " + strings.Repeat("x", 149) + "\n\n[truncated: 151 bytes dropped, refine your query]"}, []string{"1 result_truncated"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, format := range []Format{"", test.format} {
				got, err := Read([]byte(test.document), format, limit)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, told(got.Items)); diff != "" {
					t.Errorf("items (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.repairs, codes(got.Repairs)); diff != "" || got.RepairsTotal != len(got.Repairs) {
					t.Errorf("%d repairs (-want +got):\n%s", got.RepairsTotal, diff)
				}
				if got.Format != test.format {
					t.Errorf("format = %q, want %q", got.Format, test.format)
				}
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, test := range map[string]struct{ document, format string }{
		"no JSON":      {"{", ""},
		"no list":      {`{"messages":{}}`, ""},
		"a number":     {"7", ""},
		"nothing":      {"", ""},
		"empty list":   {"[]", ""},
		"only blanks":  {`[{"role":"user","content":""}]`, ""},
		"other format": {`[{"role":"user","content":"x"}]`, "yaml"},
		"new version":  {`{"format":"loadline","version":2,"items":[]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(test.document), Format(test.format), limit)
			if _, ok := errors.AsType[*session.NotImportable](err); !ok || err.Error() == "" {
				t.Errorf("error = %v, want one that says why", err)
			}
		})
	}
}

// history has an item of each kind, as a server has stored it.
func history() []session.Item {
	cut := strings.Repeat("y", 148) + "\n\n[truncated: 999 bytes dropped, refine your query]"
	items := []session.Item{
		{UserMessage: &session.UserMessage{Text: "<u> & 日本"}},
		{Reasoning: &session.Reasoning{Text: "r", Provider: "p", Model: "m", Signature: "s"}},
		{AssistantMessage: &session.AssistantMessage{Text: "a", Incomplete: true}},
		{ToolCall: &session.ToolCall{Tool: "F", Arguments: []byte(`{"k":"<"}`)}},
		{ToolCall: &session.ToolCall{Tool: "G", Arguments: []byte(`{}`)}},
		{ToolResult: &session.ToolResult{CallN: 4, Tool: "F", Summary: "cut", Content: &cut, Truncated: &session.Truncated{Limit: testLimit, OriginalBytes: 1147, KeptBytes: 148, DroppedBytes: 999}}},
		{ToolResult: &session.ToolResult{CallN: 5, Tool: "G", Summary: "none", Failed: true}},
		{Summary: &session.Summary{Text: "all", FromN: 1, ToN: 7}},
		{UserMessage: &session.UserMessage{Text: "u2"}},
	}
	kinds := []session.ItemKind{
		session.KindUserMessage, session.KindReasoning, session.KindAssistantMessage, session.KindToolCall, session.KindToolCall,
		session.KindToolResult, session.KindToolResult, session.KindSummary, session.KindUserMessage,
	}
	for i := range items {
		items[i].N, items[i].Kind = int64(i+1), kinds[i]
	}
	return items
}

func export(t testing.TB, items []session.Item, pageItems int) string {
	t.Helper()
	var out strings.Builder
	s := session.Session{ID: session.NewID(), Title: "T", Metadata: map[string]string{"k": "v"}}
	err := Write(&out, s, func(after int64) ([]session.Item, error) {
		at := slices.IndexFunc(items, func(item session.Item) bool { return item.N > after })
		if at < 0 {
			return nil, nil
		}
		return items[at:min(at+pageItems, len(items))], nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatIsExportedComesBack(t *testing.T) {
	for _, pageItems := range []int{1, 4, 100} {
		got, err := Read([]byte(export(t, history(), pageItems)), "", limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(history(), got.Items); diff != "" || len(got.Repairs) > 0 {
			t.Errorf("items (-want +got):\n%s\nrepairs %+v", diff, got.Repairs)
		}
		if got.Title != "T" || got.Metadata["k"] != "v" || got.Format != FormatLoadline {
			t.Errorf("head = %+v", got)
		}
	}
}

func TestNumbersBeginAnew(t *testing.T) {
	items := history()
	for i := range items { // as if the first had been cut off
		items[i].N += 40
		if r := items[i].ToolResult; r != nil {
			r.CallN += 40
		}
		if s := items[i].Summary; s != nil {
			s.FromN, s.ToN = 41, 47
		}
	}
	got, err := Read([]byte(export(t, items, 3)), "", limit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(history(), got.Items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestRepairsAreBounded(t *testing.T) {
	got, err := Read([]byte(`[{"role":"user","content":"x"}`+strings.Repeat(`,{"role":"user","content":""}`, 3000)+"]"), "", limit)
	if err != nil || len(got.Repairs) != maxRepairs || got.RepairsTotal != 3000 {
		t.Errorf("%d of %d repairs, %v", len(got.Repairs), got.RepairsTotal, err)
	}
}
