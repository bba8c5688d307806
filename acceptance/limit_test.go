package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

// cutAsItShould compares a stored result with what the tool returned: the longest
// prefix of whole runes that leaves room for the marker, and the marker.
func cutAsItShould(t *testing.T, r session.ToolResult, original string, limit int) {
	t.Helper()
	content := contentOf(r)
	if len(original) <= limit {
		if content != original || r.Truncated != nil {
			t.Errorf("%d bytes fit into %d, but %d bytes are stored and truncated is %v", len(original), limit, len(content), r.Truncated)
		}
		return
	}
	room := limit - len("\n\n[truncated:  bytes dropped, refine your query]") - len(strconv.Itoa(len(original)))
	kept := 0
	for i, c := range original {
		if i+utf8.RuneLen(c) > room {
			break
		}
		kept = i + utf8.RuneLen(c)
	}
	want := fmt.Sprintf("%s\n\n[truncated: %d bytes dropped, refine your query]", original[:kept], len(original)-kept)
	facts := session.Truncated{Limit: limit, OriginalBytes: int64(len(original)), KeptBytes: int64(kept), DroppedBytes: int64(len(original) - kept)}
	if content != want || !utf8.ValidString(content) || len(content) > limit {
		t.Errorf("of %d bytes with limit %d these %d are stored: %q", len(original), limit, len(content), content)
	}
	if r.Truncated == nil || *r.Truncated != facts {
		t.Errorf("truncated is %+v, want %+v", r.Truncated, facts)
	}
}

// numbers are the arguments of calls that pick a text each.
func numbers(texts []string) []string {
	var arguments []string
	for n := range texts {
		arguments = append(arguments, fmt.Sprintf(`{"n":%d}`, n))
	}
	return arguments
}

func TestA03CutStaysOnCharacterBoundaries(t *testing.T) {
	var texts []string
	for k := range 4 {
		for _, unit := range []struct {
			text  string
			count int
		}{{"\U0001F600", 100}, {"日", 100}, {"é", 150}, {"e\u0301", 100}, {"👩‍👩‍👧", 20}, {"\U0010FFFF", 60}, {"\uFFFD", 80}} {
			texts = append(texts, strings.Repeat("a", k)+strings.Repeat(unit.text, unit.count))
		}
	}
	w := start(t, setup{
		manifest: "[worker.tool_output.per_tool]\nEcho = 200\n",
		tools:    []tool.Tool{printsOf("Echo", texts...)},
		script:   []llmtest.Step{callsWith("Echo", numbers(texts)...), says("ok")},
	})
	id := w.newSession()
	w.say(id, "go")
	got := results(w.items(id))
	if len(got) != len(texts) {
		t.Fatalf("%d results, want %d", len(got), len(texts))
	}
	for i, r := range got {
		cutAsItShould(t, r, texts[i], 200)
	}
	w.stillFine(id)
}

func TestA04CuttingAgainChangesNothing(t *testing.T) {
	const limit = 1000
	var texts []string
	for _, n := range []int{0, 1, 999, 1000, 1001, 1100, 10_000, 1_000_000} {
		texts = append(texts, strings.Repeat("x", n))
	}
	// Output that holds the marker is measured like any other.
	marker := "\n\n[truncated: 5 bytes dropped, refine your query]"
	texts = append(texts, "short"+marker, strings.Repeat("y", limit)+marker, strings.Repeat(marker, 100))
	w := start(t, setup{
		manifest: "[worker.tool_output]\ndefault_max_bytes = 1000\n",
		tools:    []tool.Tool{printsOf("Echo", texts...)},
		script:   []llmtest.Step{callsWith("Echo", numbers(texts)...), says("ok")},
	})
	id := w.newSession()
	w.say(id, "go")
	first := results(w.items(id))
	var again []string
	for i, r := range first {
		cutAsItShould(t, r, texts[i], limit)
		if len(texts[i]) > limit && r.Truncated.KeptBytes < limit-128 {
			t.Errorf("only %d of %d bytes are kept", r.Truncated.KeptBytes, len(texts[i]))
		}
		again = append(again, contentOf(r))
	}
	w.setup.tools = []tool.Tool{printsOf("Echo", again...)}
	w.restart()
	w.model.Add(callsWith("Echo", numbers(again)...), says("ok"))
	w.say(id, "again")
	for i, r := range results(w.items(id))[len(first):] {
		if contentOf(r) != again[i] || r.Truncated != nil {
			t.Errorf("cut again: %q became %q", again[i], contentOf(r))
		}
	}
	w.stillFine(id)
}

func TestA05InterceptorsSeeAllAndTheCapComesLast(t *testing.T) {
	for _, c := range []struct {
		name               string
		returned, replaced int // bytes; no replacement if negative
		unseen             int64
	}{
		{"no replacement", 100_000, -1, 0},
		{"replaced by more", 100, 50_000, 0},
		{"replaced by less", 100_000, 10, 0},
		{"replaced by nothing", 100_000, 0, 0},
		{"replaced by exactly the limit", 100, 16384, 0},
		{"replaced by one more", 100, 16385, 0},
		{"what the tool left out is not asked for again", 100_000, 10, 5000},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, other := strings.Repeat("a", c.returned), strings.Repeat("b", max(0, c.replaced))
			saw := -1
			records := func(_ context.Context, _ worker.Call, out session.Output) session.Output {
				saw = len(*out.Content)
				return out
			}
			replaces := func(_ context.Context, _ worker.Call, out session.Output) session.Output {
				if c.replaced >= 0 {
					out.Content, out.Unseen, out.Full = &other, 0, ""
				}
				return out
			}
			returns := func(context.Context) (session.Output, error) {
				return session.Output{Summary: "done", Content: &text, Unseen: c.unseen}, nil
			}
			w := start(t, setup{
				tools: []tool.Tool{does("Echo", returns)}, after: []worker.AfterTool{records, replaces},
				script: []llmtest.Step{calls("Echo"), says("ok")},
			})
			id := w.newSession()
			w.say(id, "go")
			want := text
			if c.replaced >= 0 {
				want = other
			}
			r := results(w.items(id))[0]
			cutAsItShould(t, r, want, 16384)
			if saw != c.returned {
				t.Errorf("the first interceptor saw %d bytes, want %d", saw, c.returned)
			}
			dropped := int64(0)
			if r.Truncated != nil {
				dropped = r.Truncated.DroppedBytes
			}
			counted, err := strconv.ParseFloat(w.metric(`tool_output_truncated_bytes_total{tool="Echo"}`), 64)
			if err != nil || int64(counted) != dropped {
				t.Errorf("%v truncated bytes are counted, want %d", counted, dropped)
			}
			w.stillFine(id)
		})
	}
}

func TestA06ErrorsAreCutAndStayErrors(t *testing.T) {
	page := "<html>" + strings.Repeat("<p>502 Bad Gateway</p>\n", 300_000/23) + "</html>"
	partial := strings.Repeat("partial ", 125_000)
	both := does("Fetch", func(context.Context) (session.Output, error) {
		return session.Output{Content: &partial}, fmt.Errorf("%s", page)
	})
	says502 := does("Fetch", func(context.Context) (session.Output, error) {
		return session.Output{Summary: "Fetch: 502", Content: &page, Failed: true}, nil
	})
	shell := bash(t, t.TempDir())
	for _, c := range []struct {
		name string
		tool tool.Tool
		step llmtest.Step
		has  string
		time string // that a tool has
	}{
		{"error text", fails("Fetch", page), calls("Fetch"), "<html><p>502", "20s"},
		{"error text beside output", both, calls("Fetch"), "<html><p>502", "20s"},
		{"failed output", says502, calls("Fetch"), "<html><p>502", "20s"},
		{"timeout", hangs("Fetch", partial), calls("Fetch"), "partial partial", "20ms"},
		{"exit status 1", shell, callsWith("Bash", `{"command":"head -c 1000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1"}`), "the end", "20s"},
		{"command that does not end", shell, callsWith("Bash", `{"command":"yes"}`), "y\ny\n", "500ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, setup{
				manifest: fmt.Sprintf("[worker]\ntool_timeout = %q\n", c.time), tools: []tool.Tool{c.tool},
				script: []llmtest.Step{c.step, says("I see")},
			})
			id := w.newSession()
			if turn := w.say(id, "go"); turn.State != session.TurnCompleted {
				t.Errorf("the turn: %s %v", turn.State, turn.Error)
			}
			r := results(w.items(id))[0]
			if content := contentOf(r); !r.Failed || len(content) > 16384 || !strings.HasSuffix(content, markerEnd) || !strings.Contains(content, c.has) {
				t.Errorf("failed %v, %d bytes: %.200q … %q", r.Failed, len(content), content, content[max(0, len(content)-100):])
			}
			if len(r.Summary) > 512 || slices.Contains([]byte(r.Summary), '\n') || strings.Contains(r.Summary, "502 Bad") {
				t.Errorf("summary %q", r.Summary)
			}
			w.stillFine(id)
		})
	}
}
