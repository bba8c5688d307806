package worker

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/manifest"
	"loadline/internal/session"
)

func note(dropped int) string { return fmt.Sprintf(truncatedNote, dropped) }

func TestTruncate(t *testing.T) {
	smile, sun, acute := strings.Repeat("😀", 100), strings.Repeat("日", 100), strings.Repeat("é", 150)
	for _, c := range []struct {
		name    string
		s       string
		unseen  int64
		limit   int
		want    string
		dropped int64
	}{
		{"empty", "", 0, 128, "", 0},
		{"fits exactly", strings.Repeat("a", 200), 0, 200, strings.Repeat("a", 200), 0},
		{"one byte over", strings.Repeat("a", 201), 0, 200, strings.Repeat("a", 149) + note(52), 52},
		{"four-byte runes", smile, 0, 200, smile[:148] + note(252), 252},
		{"four-byte runes after one byte", "a" + smile, 0, 200, ("a" + smile)[:149] + note(252), 252},
		{"four-byte runes after two bytes", "aa" + smile, 0, 200, ("aa" + smile)[:146] + note(256), 256},
		{"four-byte runes after three bytes", "aaa" + smile, 0, 200, ("aaa" + smile)[:147] + note(256), 256},
		{"three-byte runes", sun, 0, 200, sun[:147] + note(153), 153},
		{"two-byte runes", acute, 0, 200, acute[:148] + note(152), 152},
		{"unseen beside a text that fits", "head", 5, 200, "head" + note(5), 5},
		{"unseen beside no text", "", 7, 128, note(7), 7},
		{"unseen beside a text that fits without the note", strings.Repeat("a", 200), 1, 200, strings.Repeat("a", 149) + note(52), 52},
		{"the smallest limit and the largest count", strings.Repeat("a", 129), 1<<63 - 130, 128, strings.Repeat("a", 61) + note(1<<63-1-61), 1<<63 - 1 - 61},
		{"a text that holds the note itself", strings.Repeat("b", 150) + note(9), 0, 150, strings.Repeat("b", 99) + note(100), 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, dropped := truncate(c.s, c.unseen, c.limit)
			if got != c.want || dropped != c.dropped {
				t.Errorf("truncate(%d bytes, %d, %d) = %q, %d, want %q, %d", len(c.s), c.unseen, c.limit, got, dropped, c.want, c.dropped)
			}
		})
	}
}

// checkCut holds the promises of the limit for any input.
func checkCut(t interface {
	Helper()
	Fatalf(string, ...any)
}, raw string, unseen int64, limit int) {
	t.Helper()
	result, _ := Settle(1, "Echo", session.Output{Summary: "s", Content: &raw, Unseen: unseen}, limit, nil)
	got, original := *result.Content, session.Clean(raw)
	if !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
		t.Fatalf("stored text is not clean: %q", got)
	}
	if len(original) <= limit && unseen == 0 {
		if got != original || result.Truncated != nil {
			t.Fatalf("a fitting text was changed: %q, want %q", got, original)
		}
		return
	}
	cut := result.Truncated
	if cut == nil || len(got) > limit {
		t.Fatalf("%d bytes with a limit of %d, truncated: %v", len(got), limit, cut)
	}
	if cut.KeptBytes+cut.DroppedBytes != cut.OriginalBytes || cut.OriginalBytes != int64(len(original))+unseen || cut.Limit != limit {
		t.Fatalf("the counts are wrong: %+v of %d bytes and %d unseen", *cut, len(original), unseen)
	}
	if want := original[:cut.KeptBytes] + fmt.Sprintf(truncatedNote, cut.DroppedBytes); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if len(original) > limit && cut.KeptBytes < int64(limit-128) {
		t.Fatalf("kept %d bytes of a limit of %d: more than 128 bytes went to the note", cut.KeptBytes, limit)
	}
	again, _ := Settle(1, "Echo", session.Output{Summary: "s", Content: &got}, limit, nil)
	if *again.Content != got || again.Truncated != nil {
		t.Fatalf("cutting again changed the text: %q", *again.Content)
	}
}

func TestCutOfAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "é", "日", "😀", "\x00", "\xff", "\xe6\x97", "\n", "[truncated: 1 bytes dropped, refine your query]"})
		raw := strings.Join(rapid.SliceOfN(piece, 0, 600).Draw(t, "text"), "")
		unseen := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1<<40)).Draw(t, "unseen")
		checkCut(t, raw, unseen, rapid.IntRange(128, 1200).Draw(t, "limit"))
	})
}

func FuzzCut(f *testing.F) {
	f.Add([]byte(strings.Repeat("日", 100)), int64(0), 200)
	f.Add([]byte("\xff\x00"), int64(3), 128)
	f.Fuzz(func(t *testing.T, raw []byte, unseen int64, limit int) {
		if limit < 128 || limit > 1<<20 || unseen < 0 || unseen > 1<<60 {
			return
		}
		checkCut(t, string(raw), unseen, limit)
	})
}

func TestSettle(t *testing.T) {
	longest := strings.Repeat("x", 4096)
	for _, c := range []struct {
		name   string
		out    session.Output
		want   session.ToolResult
		broken bool
	}{
		{"no content", session.Output{Summary: "done"}, session.ToolResult{Summary: "done"}, false},
		{"empty content", session.Output{Summary: "done", Content: session.Text("")}, session.ToolResult{Summary: "done", Content: session.Text("")}, false},
		{"an error keeps its flag", session.Output{Summary: "bad", Failed: true, Content: session.Text("why")}, session.ToolResult{Summary: "bad", Failed: true, Content: session.Text("why")}, false},
		{"unseen bytes without content", session.Output{Summary: "s", Unseen: 5}, session.ToolResult{Summary: "s", Content: session.Text(note(5)), Truncated: &session.Truncated{Limit: 200, OriginalBytes: 5, DroppedBytes: 5}}, false},
		{"no summary", session.Output{Content: session.Text("four")}, session.ToolResult{Summary: "Echo: 4 bytes", Content: session.Text("four")}, true},
		{"a blank summary", session.Output{Summary: " \n", Content: session.Text("four"), Unseen: 0}, session.ToolResult{Summary: "Echo: 4 bytes", Content: session.Text("four")}, true},
		{"the longest summary", session.Output{Summary: longest}, session.ToolResult{Summary: longest}, false},
		{"a summary beyond its bound", session.Output{Summary: longest + "x"}, session.ToolResult{Summary: "Echo: 0 bytes"}, true},
		{"a NUL in the summary", session.Output{Summary: "a\x00b"}, session.ToolResult{Summary: "a\ufffdb"}, false},
		{"NUL and bad bytes in the content", session.Output{Summary: "s", Content: session.Text("a\x00b\xff")}, session.ToolResult{Summary: "s", Content: session.Text("a\ufffdb\ufffd")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.CallN, c.want.Tool = 7, "Echo"
			got, broken := Settle(7, "Echo", c.out, 200, nil)
			if diff := cmp.Diff(c.want, got); diff != "" || broken != c.broken {
				t.Errorf("Settle: broken %v, want %v; (-want +got)\n%s", broken, c.broken, diff)
			}
		})
	}
}

func TestNoEngineWithoutLimits(t *testing.T) {
	complete := newWorkbench(t, nil).engine.Config
	for _, c := range []struct {
		name   string
		limits manifest.ToolOutput
		ok     bool
	}{
		{"none", manifest.ToolOutput{}, false},
		{"the smallest", manifest.ToolOutput{DefaultMaxBytes: 128, StepMaxBytes: 128}, true},
		{"a default that is too small", manifest.ToolOutput{DefaultMaxBytes: 127, StepMaxBytes: 128}, false},
		{"a step that is too small", manifest.ToolOutput{DefaultMaxBytes: 128, StepMaxBytes: 127}, false},
	} {
		if engine, err := New(c.limits, complete); (err == nil) != c.ok || (engine != nil) != c.ok {
			t.Errorf("%s: New() = %v, %v", c.name, engine, err)
		}
	}
}

// A kept prefix must not keep the whole of a huge output alive: 24 MB in one line
// costs one scan and the limit.
func BenchmarkCut24MB(b *testing.B) {
	huge := strings.Repeat("x", 24<<20)
	out := session.Output{Summary: "Bash: exit 0", Content: &huge}
	b.ReportAllocs()
	for b.Loop() {
		result, _ := Settle(1, "Bash", out, 16384, nil)
		if len(*result.Content) > 16384 {
			b.Fatal("not cut")
		}
	}
}
