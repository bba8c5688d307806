package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/llm"
	"loadline/internal/session"
)

var someTools = []session.ToolSpec{{Name: "Glob"}, {Name: "Grep"}, {Name: "Read"}}

func TestObeyUnderstandsRequests(t *testing.T) {
	all := append([]session.ToolSpec{{Name: "Bash"}, {Name: "Primes"}, {Name: "Write"}}, someTools...)
	tests := []struct{ name, input, tool, arguments string }{
		{"list", "list the files", "Glob", `{"pattern":"**/*"}`},
		{"list, politely", "Please, list all the files!", "Glob", `{"pattern":"**/*"}`},
		{"list, as a question", "what files are there?", "Glob", `{"pattern":"**/*"}`},
		{"list a folder", "list files in `docs/`", "Glob", `{"pattern":"**/*","path":"docs"}`},
		{"list this folder", "ls in .", "Glob", `{"pattern":"**/*"}`},
		{"list by pattern", "find *.go files", "Glob", `{"pattern":"**/*.go"}`},
		{"list by path pattern", "list docs/*.md", "Glob", `{"pattern":"docs/*.md"}`},
		{"read", "read README.md", "Read", `{"path":"README.md"}`},
		{"read, politely", "Could you read the file README.md please?", "Read", `{"path":"README.md"}`},
		{"read a name with spaces", `open "my notes.txt"`, "Read", `{"path":"my notes.txt"}`},
		{"search", "search for TODO", "Grep", `{"pattern":"TODO"}`},
		{"search without for", "find TODO", "Grep", `{"pattern":"TODO"}`},
		{"search is literal", "grep for f(x) <b>", "Grep", `{"pattern":"f\\(x\\) <b>"}`},
		{"primes", "list all the primes below 100,000", "Primes", `{"below":100000}`},
		{"write", "write hello there to notes.txt", "Write", `{"path":"notes.txt","content":"hello there"}`},
		{"run", "run go version", "Bash", `{"command":"go version"}`},
		{"direct", `/Glob {"pattern":"**/*"}`, "Glob", `{"pattern":"**/*"}`},
		{"direct, unknown tool", `/Reed {"path":"x"}`, "Reed", `{"path":"x"}`},
		{"direct, no arguments", "/Glob", "Glob", "{}"},
		{"direct, broken arguments", `/Write {"path":"a`, "Write", `{"path":"a`},
		{"direct, over lines", "/Write {\n  \"path\": \"/a\"\n}", "Write", "{\n  \"path\": \"/a\"\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			blocks := obey(tt.input, "", all)
			want := []llm.Block{text("Running " + tt.tool + "."), {Kind: session.KindToolCall, Tool: tt.tool, Text: tt.arguments}}
			if diff := cmp.Diff(want, blocks); diff != "" {
				t.Errorf("obey(%q) (-want +got):\n%s", tt.input, diff)
			}
		})
	}
}

func TestObeyAnswersInText(t *testing.T) {
	tests := []struct {
		name, input string
		tools       []session.ToolSpec
		want        string // part of the text
	}{
		{"hello", "hello", someTools, "search for TODO"},
		{"nothing", "", someTools, "Glob, Grep, Read."},
		{"help", "/help", someTools, "/slow 200"},
		{"no tools", "list the files", nil, "no tools"},
		{"no such tool", "run date", someTools, "[tools.Bash]"},
		{"read-only project", "write a to b", someTools, `permission = "write"`},
		{"count", "/slow 3", someTools, "Counting: 1 2 3"},
		{"count by default", "/slow", nil, " 199 200"},
		{"count too far", "/slow 10001", nil, " 9999 10000"},
		{"a lone slash", "/", someTools, "Here is what you can ask me"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			blocks := obey(tt.input, "", tt.tools)
			if len(blocks) != 1 || blocks[0].Kind != session.KindAssistantMessage || !strings.Contains(blocks[0].Text, tt.want) {
				t.Errorf("obey(%q) = %+v, want one text with %q", tt.input, blocks, tt.want)
			}
		})
	}
	if help := obey("hi", "", someTools)[0].Text; strings.Contains(help, "`run date`") || strings.Contains(help, "`write ") {
		t.Errorf("the help offers tools that are not there:\n%s", help)
	}
	if got := obey("/slow 10001", "", nil)[0].Text; strings.HasSuffix(got, "10001") {
		t.Error("/slow counts beyond its bound")
	}
}

func TestObeyCallsInParallel(t *testing.T) {
	got := obey("/Glob {\"pattern\":\"*\"}\n/Read {\"path\":\"a\"}\n", "", someTools)
	want := []llm.Block{
		text("Running 2 tools at once: Glob, Read."),
		{Kind: session.KindToolCall, Tool: "Glob", Text: `{"pattern":"*"}`},
		{Kind: session.KindToolCall, Tool: "Read", Text: `{"path":"a"}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two lines of calls (-want +got):\n%s", diff)
	}
}

func TestFirstAnswerSaysThatNoModelIsConfigured(t *testing.T) {
	p := New(Config{PieceEvery: -1})
	for _, input := range []string{"hello", "list the files", "/think why"} {
		r := llm.Request{Tools: someTools, Items: []session.Item{user(input)}}
		_, first := ask(t, p, r)
		if line, _, _ := strings.Cut(first, "\n"); line != notice {
			t.Errorf("the first line after %q is %q, want the notice", input, line)
		}
		r.Items = append(r.Items, session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "x"}}, user(input))
		if _, second := ask(t, p, r); strings.Contains(second, notice) {
			t.Errorf("the second answer after %q repeats the notice", input)
		}
	}
}

func TestDescribeResults(t *testing.T) {
	long := strings.Repeat("あ", 60) + "\n"
	tests := []struct {
		name   string
		result session.ToolResult
		want   string
	}{
		{"summary alone", session.ToolResult{Tool: "Glob", Summary: "0 files"}, "Glob: 0 files"},
		{"blank content", session.ToolResult{Tool: "Glob", Summary: "0 files", Content: new("\n")}, "Glob: 0 files"},
		{"failed", session.ToolResult{Tool: "Reed", Failed: true, Summary: "Reed: unknown tool", Content: new("there are: Glob")},
			"That did not work. Reed: unknown tool\n\n```\nthere are: Glob\n```"},
		{"a fence inside", session.ToolResult{Tool: "Read", Summary: "1 line", Content: new("```go")}, "Read: 1 line\n\n````\n```go\n````"},
		{"one line more", session.ToolResult{Tool: "Read", Summary: "9 lines", Content: new(strings.Repeat("x\n", 9))},
			"Read: 9 lines\n\n```\n" + strings.Repeat("x\n", 8) + "```\n\n… and one more line."},
		{"many lines more", session.ToolResult{Tool: "Read", Summary: "lines", Content: new(strings.Repeat("x\n", 1500))},
			"Read: lines\n\n```\n" + strings.Repeat("x\n", 8) + "```\n\n… and 1,492 more lines."},
		{"a long line", session.ToolResult{Tool: "Read", Summary: "1 line", Content: &long},
			"Read: 1 line\n\n```\n" + strings.Repeat("あ", 53) + " …\n```"},
		{"cut", session.ToolResult{Tool: "Glob", Summary: "many files", Content: new("a\n\n[truncated: 1699999 bytes dropped, refine your query]"),
			Truncated: &session.Truncated{Limit: 16384, OriginalBytes: 1_700_000, KeptBytes: 1, DroppedBytes: 1_699_999}},
			"Glob: many files\n\n```\na\n```\n\nThe output was over its limit of 16,384 bytes, so it was cut: 1 bytes kept, 1,699,999 bytes dropped. A narrower request shows the rest."},
		{"cut to nothing", session.ToolResult{Tool: "Glob", Summary: "Glob *: one file", Content: new("\n\n[truncated: 5 bytes dropped, refine your query]"),
			Truncated: &session.Truncated{Limit: 128, OriginalBytes: 5, DroppedBytes: 5}},
			"Glob *: one file\n\nThe output was over its limit of 128 bytes, so it was cut: 0 bytes kept, 5 bytes dropped. A narrower request shows the rest."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := llm.Request{Items: []session.Item{
				user("x"),
				{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "Running."}},
				{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: tt.result.Tool}},
				{Kind: session.KindToolResult, ToolResult: &tt.result},
				{Kind: session.KindSummary, Summary: &session.Summary{Text: "a line of the server's own"}},
			}}
			if diff := cmp.Diff([]llm.Block{text(tt.want)}, reply(r)); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskKeepsAnEvenPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		r := llm.Request{Items: []session.Item{user("/slow 99"), {Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "x"}}, user("/slow 99")}}
		if _, err := New(Config{}).Ask(t.Context(), r, func(llm.Delta) { at = append(at, time.Since(start)) }); err != nil {
			t.Fatal(err)
		}
		if len(at) != 100 || at[0] != 0 || at[99] != 99*defaultPieceEvery {
			t.Errorf("%d pieces, the first after %v, the last after %v; want 100, at once, 1.98s", len(at), at[0], at[len(at)-1])
		}
	})
}

func TestAskStopsWithTheCauseOfItsContext(t *testing.T) {
	cause := errors.New("the user has left")
	slow := llm.Request{Items: []session.Item{user("/slow 1000")}}
	synctest.Test(t, func(t *testing.T) { // in the middle of a pause
		started := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Millisecond, cause)
		defer cancel()
		_, err := New(Config{}).Ask(ctx, slow, func(llm.Delta) {})
		if took := time.Since(started); !errors.Is(err, cause) || took != 90*time.Millisecond {
			t.Errorf("after %v the error is %v, want 90ms and %v", took, err, cause)
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	pieces := 0
	_, err := New(Config{PieceEvery: -1}).Ask(ctx, slow, func(llm.Delta) {
		if pieces++; pieces == 5 {
			cancel(cause)
		}
	})
	if !errors.Is(err, cause) || pieces != 5 {
		t.Errorf("after %d pieces the error is %v, want 5 and %v", pieces, err, cause)
	}
}

func TestDeltasAddUpToTheAnswer(t *testing.T) {
	p := New(Config{PieceEvery: -1})
	rapid.Check(t, func(t *rapid.T) {
		input := rapid.OneOf(rapid.String(), rapid.StringMatching(`/[A-Z][a-z]+ \{"a":"[あ-ん <&]{0,80}"\}(\n/Read x)*`),
			rapid.StringMatching(`(read|list|find|search for|write|run|/slow|/think) .*`)).Draw(t, "input")
		answer, err := p.Ask(context.Background(), llm.Request{Tools: someTools, Items: []session.Item{user(input)}}, func(llm.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]llm.Block, 0, len(answer.Blocks))
		if _, err := p.Ask(context.Background(), llm.Request{Tools: someTools, Items: []session.Item{user(input)}}, func(d llm.Delta) {
			if d.Block == len(got) {
				got = append(got, llm.Block{Kind: d.Kind, Tool: d.Tool})
			} else if d.Tool != "" {
				t.Errorf("a later delta of block %d names the tool again", d.Block)
			}
			if d.Text == "" || !utf8.ValidString(d.Text) && utf8.ValidString(input) {
				t.Errorf("the piece %q is empty or cut inside a rune", d.Text)
			}
			got[d.Block].Text += d.Text
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(answer.Blocks, got); diff != "" {
			t.Errorf("deltas after %q (-answer +deltas):\n%s", input, diff)
		}
		for _, b := range answer.Blocks {
			if strings.TrimSpace(b.Text) == "" {
				t.Errorf("the answer to %q has a blank block", input)
			}
		}
		if answer.Usage.InputTokens < int64(len(input)/bytesPerToken) || answer.Usage.OutputTokens < 1 {
			t.Errorf("usage %+v is not plausible", answer.Usage)
		}
	})
}

func user(s string) session.Item {
	return session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: s}}
}

// ask returns the answer and its first text.
func ask(t *testing.T, p *Provider, r llm.Request) (llm.Answer, string) {
	t.Helper()
	answer, err := p.Ask(t.Context(), r, func(llm.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range answer.Blocks {
		if b.Kind == session.KindAssistantMessage {
			return answer, b.Text
		}
	}
	t.Fatalf("the answer %+v has no text", answer)
	return answer, ""
}
