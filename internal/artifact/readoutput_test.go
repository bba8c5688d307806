package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// cut keeps an output and commits its result.
func (s *shelf) cut(n int64, toolName, whole string) {
	kept := s.Keep(s.id, n, whole)
	s.history.commit(s.id, n, toolName, &kept, int64(len(whole)))
}

// read calls the tool in a later step.
func (s *shelf) read(t interface {
	Helper()
	Fatal(...any)
}, arguments string, limitBytes int) session.Output {
	t.Helper()
	out, err := s.Tool(s.history).Run(s.t.Context(), tool.Call{SessionID: s.id, N: 1000, Arguments: json.RawMessage(arguments), LimitBytes: limitBytes})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadOutputFindsTheResult(t *testing.T) {
	s := newShelf(t, 1<<20)
	if out := s.read(t, `{}`, 1000); !out.Failed || !strings.Contains(*out.Content, "No result before this step was cut") {
		t.Errorf("without any: %+v", out)
	}
	s.cut(3, "Glob", "first")
	s.cut(5, "Bash", "second")
	s.cut(7, ToolName, "not to be read")
	s.history.commit(s.id, 9, "Grep", &session.KeptOutput{Error: "quota"}, 100)
	s.history.commit(s.id, 11, "Read", nil, 100)
	s.cut(13, "Fetch", "swept")
	if err := os.Remove(s.path(s.id, 13)); err != nil {
		t.Fatal(err)
	}
	s.cut(1001, "Glob", "of the same step")
	for _, c := range []struct {
		arguments, want, summary string
		failed                   bool
	}{
		{`{}`, "The whole output of Fetch (result 13) is not kept any more. If you need more of it, call Fetch again with a narrower query.", "the output of Fetch (result 13) is not kept any more", true},
		{`{"back":2}`, "The whole output of Read (result 11) was not kept. If you need more of it, call Read again with a narrower query.", "the output of Read (result 11) was not kept", true},
		{`{"back":3}`, "The whole output of Grep (result 9) was not kept. If you need more of it, call Grep again with a narrower query.", "the output of Grep (result 9) was not kept", true},
		{`{"back":4}`, "second", "bytes 0 to 6 of 6 of the output of Bash (result 5), its end", false},
		{`{"back":5}`, "first", "bytes 0 to 5 of 5 of the output of Glob (result 3), its end", false},
		{`{"back":6}`, `Only 5 results before this step were cut: "back" is at most that.`, "no such output", true},
	} {
		out := s.read(t, c.arguments, 1000)
		if *out.Content != c.want || out.Summary != ToolName+": "+c.summary || out.Failed != c.failed {
			t.Errorf("%s: %q %q, failed %v", c.arguments, out.Summary, *out.Content, out.Failed)
		}
	}
}

func TestReadOutputIsOfItsSessionAlone(t *testing.T) {
	s := newShelf(t, 1<<20)
	s.cut(3, "Glob", "secret")
	s.id = session.NewID()
	s.history.add(s.id)
	if out := s.read(t, `{}`, 1000); !out.Failed || strings.Contains(*out.Content, "secret") {
		t.Errorf("another session reads %+v", out)
	}
}

func TestReadOutputPages(t *testing.T) {
	s := newShelf(t, 1<<20)
	text := "0123456789日本語😀!"
	s.cut(3, "Glob", text) // 24 bytes
	for _, c := range []struct{ arguments, want, rest string }{
		{`{}`, text, "bytes 0 to 24 of 24 of the output of Glob (result 3), its end"},
		{`{"limit":4}`, "0123", "bytes 0 to 4 of 24 of the output of Glob (result 3); go on with offset 4"},
		{`{"offset":9,"limit":5}`, "9日", "bytes 9 to 13 of 24 of the output of Glob (result 3); go on with offset 13"},
		{`{"offset":12,"limit":3}`, "日", "bytes 10 to 13 of 24 of the output of Glob (result 3); go on with offset 13"},
		{`{"offset":13,"limit":1}`, "本", "bytes 13 to 16 of 24 of the output of Glob (result 3); go on with offset 16"},
		{`{"offset":19,"limit":2}`, "😀", "bytes 19 to 23 of 24 of the output of Glob (result 3); go on with offset 23"},
		{`{"offset":-1}`, "!", "bytes 23 to 24 of 24 of the output of Glob (result 3), its end"},
		{`{"offset":-5,"limit":4}`, "😀", "bytes 19 to 23 of 24 of the output of Glob (result 3); go on with offset 23"},
		{`{"offset":-9223372036854775808,"limit":1}`, "0", "bytes 0 to 1 of 24 of the output of Glob (result 3); go on with offset 1"},
		{`{"offset":24}`, "The output of Glob (result 3) has 24 bytes; offset 24 is beyond its end.", "nothing is there"},
	} {
		out := s.read(t, c.arguments, 1000)
		if *out.Content != c.want || out.Summary != ToolName+": "+c.rest || out.Unseen != 0 || out.Full != "" {
			t.Errorf("%s: %q %q", c.arguments, out.Summary, *out.Content)
		}
	}
	kept := s.Keep(s.id, 4, "all that was collected")
	s.history.commit(s.id, 4, "Bash", &kept, 12022)
	if out := s.read(t, `{"offset":-4}`, 1000); !strings.HasSuffix(out.Summary, ", its end; 12,000 more bytes were not collected") {
		t.Errorf("of an output that was not collected whole: %q", out.Summary)
	}
}

func TestReadOutputRefusesArguments(t *testing.T) {
	s := newShelf(t, 1<<20)
	s.cut(3, "Glob", "text")
	for _, arguments := range []string{`{"back":0}`, `{"back":-1}`, `{"back":1001}`, `{"limit":0}`, `{"limit":-5}`, `{"pattern":"("}`, `{"pattern":"(?=x)"}`, `{"n":3}`, `[]`, `{"pattern":"` + strings.Repeat("x", 5000) + `"}`} {
		_, err := s.Tool(s.history).Run(t.Context(), tool.Call{SessionID: s.id, N: 9, Arguments: json.RawMessage(arguments), LimitBytes: 1000})
		if !errors.Is(err, tool.ErrArguments) {
			t.Errorf("%.40s: %v, want ErrArguments", arguments, err)
		}
	}
}

func TestReadOutputSearches(t *testing.T) {
	s := newShelf(t, 1<<20)
	long := strings.Repeat("a", 1000) + "needle" + strings.Repeat("b", 1000) + "needle" + strings.Repeat("日", 300)
	s.cut(3, "Glob", "one needle\r\ntwo\n\nthree needle, needle\n"+long+"\nlast needle")
	lead := strings.Repeat("a", 101) + "needle" + strings.Repeat("b", 293)
	second := strings.Repeat("b", 101) + "needle" + strings.Repeat("日", 97)
	for _, c := range []struct{ arguments, want, rest string }{
		{`{"pattern":"needle$"}`, "1:0:one needle\n4:17:three needle, needle\n6:2951:last needle\n", `3 matches for "needle$" in the output of Glob (result 3)`},
		{`{"pattern":"^t"}`, "2:12:two\n4:17:three needle, needle\n", `2 matches for "^t" in the output of Glob (result 3)`},
		{`{"pattern":"^$"}`, "3:16:\n", `1 match for "^$" in the output of Glob (result 3)`},
		{`{"pattern":"aneedle|bneedle"}`, "5:937:" + lead + "\n5:1943:" + second + "\n", `2 matches for "aneedle|bneedle" in the output of Glob (result 3)`},
		{`{"pattern":"two","offset":12}`, "2:12:two\n", `1 match for "two" in the output of Glob (result 3)`},
		{`{"pattern":"two","offset":13}`, "", `no match for "two" in bytes 13 to 2962 of the output of Glob (result 3)`},
		{`{"pattern":"needle","limit":20}`, "1:0:one needle\n", `1 match for "needle" in the output of Glob (result 3); there are more, go on with offset 17`},
		{`{"pattern":"needle","limit":5}`, "1:0:o", `1 match for "needle" in the output of Glob (result 3); there are more, go on with offset 17`},
		{`{"pattern":"LAST"}`, "", `no match for "LAST" in bytes 0 to 2962 of the output of Glob (result 3)`},
		{`{"pattern":"(?i)LAST","offset":-11}`, "6:2951:last needle\n", `1 match for "(?i)LAST" in the output of Glob (result 3)`},
	} {
		out := s.read(t, c.arguments, 10_000)
		got := ""
		if out.Content != nil {
			got = *out.Content
		}
		if got != c.want || out.Summary != ToolName+": "+c.rest || out.Failed {
			t.Errorf("%s: %q\n got %q\nwant %q", c.arguments, out.Summary, got, c.want)
		}
	}
}

// Whoever goes on as the summaries say has read everything once, in whole runes.
func TestReadOutputPagesAddUp(t *testing.T) {
	s := newShelf(t, 1<<30)
	goOn := regexp.MustCompile(`go on with offset (\d+)$`)
	n := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "é", "日", "😀", "\n", "\ufffd"})
		whole := strings.Join(rapid.SliceOfN(piece, 1, 300).Draw(t, "text"), "")
		limit := rapid.IntRange(1, 200).Draw(t, "limit")
		n++
		if n == 999 {
			t.Skip("numbers are used up")
		}
		s.cut(n, "Echo", whole)
		got, offset := "", "0"
		for {
			out := s.read(t, fmt.Sprintf(`{"offset":%s}`, offset), limit)
			if !utf8.ValidString(*out.Content) || len(*out.Content) > max(limit, utf8.UTFMax) {
				t.Fatalf("a page of %d with limit %d: %q", len(*out.Content), limit, *out.Content)
			}
			got += *out.Content
			next := goOn.FindStringSubmatch(out.Summary)
			if next == nil {
				break
			}
			offset = next[1]
		}
		if got != whole {
			t.Fatalf("the pages of %q add up to %q", whole, got)
		}
	})
}

// Whoever goes on with a search as the summaries say has seen each line that matches,
// also in one line without end, and never more than is allowed.
func TestReadOutputFindsAllMatches(t *testing.T) {
	s := newShelf(t, 1<<30)
	goOn := regexp.MustCompile(`go on with offset (\d+)$`)
	var text strings.Builder
	for i := range 600 {
		fmt.Fprintf(&text, "%s<%d>%s", strings.Repeat("日x", i%100), i, strings.Repeat("\n", i%7/5))
	}
	s.cut(3, "Echo", text.String())
	for _, limit := range []int{128, 1000, 16384} {
		seen, offset := map[string]bool{}, "0"
		for calls := 0; ; calls++ {
			out := s.read(t, fmt.Sprintf(`{"pattern":"<\\d+>","offset":%s}`, offset), limit)
			if out.Content == nil || len(*out.Content) > limit || !utf8.ValidString(*out.Content) || calls > 50_000 {
				t.Fatalf("limit %d, offset %s: %+v", limit, offset, out)
			}
			for _, mark := range regexp.MustCompile(`<\d+>`).FindAllString(*out.Content, -1) {
				seen[mark] = true
			}
			next := goOn.FindStringSubmatch(out.Summary)
			if next == nil {
				break
			}
			offset = next[1]
		}
		if limit > 500 && len(seen) < 597 { // a few lie across two pieces
			t.Errorf("limit %d: only %d of 600 marks were shown", limit, len(seen))
		}
	}
}
