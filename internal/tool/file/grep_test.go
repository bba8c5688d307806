package file

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGrep(t *testing.T) {
	long := strings.Repeat("é", 300) + "needle" + strings.Repeat("z", 300)
	w := workspace(t, folder(t, map[string]string{
		"a.txt":      "one\ntwo TODO\nthree\nfour\nfive todo\nsix\nseven\neight\nTODO nine\n",
		"b/b.go":     "// TODO here\r\n",
		"b/c.bin":    "TODO\x00",
		"b/utf16":    inUTF16("TODO wide\n", false),
		"b/long":     "x\n" + long + "\n",
		"ign/x.txt":  "TODO ignored\n",
		".gitignore": "ign/\n",
		"odd\nname":  "TODO odd\n",
	}))
	tests := []struct {
		name          string
		args          arguments
		want, summary string
	}{
		{"content", arguments{"pattern": "TODO"},
			"a.txt:2:two TODO\na.txt:9:TODO nine\nb/b.go:1:// TODO here\nb/utf16:1:TODO wide\n\"odd\\nname\":1:TODO odd\n", "Grep TODO: 5 matches in 4 files"},
		{"case", arguments{"pattern": "todo", "ignore_case": true, "glob": "*.txt"},
			"a.txt:2:two TODO\na.txt:5:five todo\na.txt:9:TODO nine\n", "Grep todo: 3 matches in 1 file"},
		{"context", arguments{"pattern": "two|nine|four", "path": "a.txt", "context": 1},
			"a.txt-1-one\na.txt:2:two TODO\na.txt-3-three\na.txt:4:four\na.txt-5-five todo\n--\na.txt-8-eight\na.txt:9:TODO nine\n", "Grep two|nine|four: 3 matches in 1 file"},
		{"context between files", arguments{"pattern": "nine|here", "context": 2},
			"a.txt-7-seven\na.txt-8-eight\na.txt:9:TODO nine\n--\nb/b.go:1:// TODO here\n", "Grep nine|here: 2 matches in 2 files"},
		{"files", arguments{"pattern": "TODO", "mode": "files"}, "a.txt\nb/b.go\nb/utf16\n\"odd\\nname\"\n", "Grep TODO: 4 files"},
		{"count", arguments{"pattern": "(?i)todo", "mode": "count", "path": "a.txt"}, "a.txt:3\n", "Grep (?i)todo: 1 file"},
		{"folder", arguments{"pattern": "TODO", "path": "b", "glob": "*.go"}, "b/b.go:1:// TODO here\n", "Grep TODO: 1 match in 1 file"},
		{"glob with a slash", arguments{"pattern": "TODO", "glob": "b/*"}, "b/b.go:1:// TODO here\nb/utf16:1:TODO wide\n", "Grep TODO: 2 matches in 2 files"},
		{"page", arguments{"pattern": "TODO", "offset": 2, "limit": 2}, "a.txt:9:TODO nine\nb/b.go:1:// TODO here\n", "Grep TODO: 5 matches in 4 files, shown 2–3; go on with offset 4"},
		{"page of files", arguments{"pattern": "TODO", "mode": "files", "offset": 4}, "\"odd\\nname\"\n", "Grep TODO: 4 files"},
		{"page of context", arguments{"pattern": "two|four", "path": "a.txt", "context": 1, "offset": 2}, "a.txt-3-three\na.txt:4:four\na.txt-5-five todo\n", "Grep two|four: 2 matches in 1 file"},
		{"ends of lines", arguments{"pattern": "here$"}, "b/b.go:1:// TODO here\n", "Grep here$: 1 match in 1 file"},
		{"nothing", arguments{"pattern": "absent"}, "", "Grep absent: 0 matches in 0 files"},
		{"no line holds a break", arguments{"pattern": `one\ntwo`}, "", `Grep one\ntwo: 0 matches in 0 files`},
		{"long line", arguments{"pattern": "needle"}, "b/long:2:" + strings.Repeat("é", 50) + "needle" + strings.Repeat("z", 294) + lineCutNote + "\n", "Grep needle: 1 match in 1 file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out := run(t, w, "Grep", test.args)
			if content(out) != test.want || out.Summary != test.summary || out.Failed {
				t.Errorf("got %q\n%s\nwant %q\n%s", out.Summary, content(out), test.summary, test.want)
			}
		})
	}
	wantFailed(t, run(t, w, "Grep", arguments{"pattern": "TODO", "path": "b/c.bin"}), "binary")
	wantFailed(t, run(t, w, "Grep", arguments{"pattern": "TODO", "path": "ign"}), "ignored by git")
	if got := content(run(t, w, "Grep", arguments{"pattern": "TODO", "path": "ign/x.txt"})); got != "ign/x.txt:1:TODO ignored\n" {
		t.Errorf("a file that is named is searched, even an ignored one: got %q", got)
	}
}

func TestGrepOfHugeLines(t *testing.T) {
	file := strings.Repeat("y", 3*blockBytes) + "needle" + strings.Repeat("y", 3*blockBytes) + "needle\nafter needle\n"
	w := workspace(t, folder(t, map[string]string{"f": file}))
	out := run(t, w, "Grep", arguments{"pattern": "needle", "context": 2})
	lines := strings.Split(strings.TrimSpace(content(out)), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "f:1:") || lines[1] != "f:2:after needle" || len(content(out)) > 1000 {
		t.Errorf("got %d lines, %d bytes: %.300q", len(lines), len(content(out)), content(out))
	}
}

func TestGrepShowsWholeMatches(t *testing.T) {
	const limit, matches = 300, 150
	w := workspace(t, folder(t, map[string]string{"f": strings.Repeat("match\nother\nother\n", matches)}))
	var all strings.Builder
	for offset := 1; offset <= matches; {
		out := runLimited(t, w, "Grep", arguments{"pattern": "match", "context": 1, "offset": offset}, limit)
		checkLimits(t, out, limit)
		if out.Unseen > 0 && !strings.HasSuffix(content(out), "other\n") {
			t.Fatalf("a match is not whole: %q", content(out))
		}
		all.WriteString(content(out))
		after := next(out.Summary, matches+1)
		if after <= offset {
			t.Fatalf("no way forward: %q", out.Summary)
		}
		offset = after
	}
	if n := strings.Count(all.String(), ":match\n"); n != matches {
		t.Errorf("%d matches in all pages, want %d", n, matches)
	}
}

// expression draws an expression of few letters, so that it matches often.
func expression() *rapid.Generator[string] {
	atom := rapid.SampledFrom([]string{"a", "b", "k", "s", "ab", "sk", "é", "\ufffd", ".", "[ab]", "^", "$", `\b`, `\x{212a}`, "A", "K"})
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "atoms") {
			x := atom.Draw(t, "atom")
			switch rapid.IntRange(0, 7).Draw(t, "form") {
			case 0:
				x = "(?:" + x + ")*"
			case 1:
				x = "(" + x + ")+"
			case 2:
				x = "(?:" + x + "|" + atom.Draw(t, "other") + ")"
			case 3:
				x = "(?i:" + x + ")"
			case 4:
				x = "(?:" + x + "){2,3}"
			}
			b.WriteString(x)
		}
		return b.String()
	})
}

func TestNeedleLosesNoMatch(t *testing.T) {
	letters := rapid.SampledFrom([]string{"a", "b", "k", "s", "A", "B", "K", "S", "\u212a", "\u017f", "é", "É", "\xff", "\ufffd", " "})
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		expr := expression().Draw(t, "expression")
		if rapid.Bool().Draw(t, "fold") {
			expr = "(?i)" + expr
		}
		n := newNeedle(expr)
		re := regexp.MustCompile(expr)
		for range 20 {
			line := []byte(strings.Join(rapid.SliceOfN(letters, 0, 8).Draw(t, "line"), ""))
			if re.Match(line) {
				found++
				if !n.in(line) {
					t.Fatalf("%q matches %q, which lacks the needle %q", expr, line, n.text)
				}
			}
		}
	})
	if found < 100 {
		t.Errorf("only %d matches were tried", found)
	}
}

func TestNeedles(t *testing.T) {
	for expr, want := range map[string]string{
		"TODO": "TODO", "(?i)TODO": "todo", "(?i)task": "ta", "foo.*barbaz": "barbaz", "(foo)+": "foo", "a|b": "", "x?": "", "[ab]c": "c", "(?:abc){2}": "abc", "^func New": "func New",
	} {
		if got := newNeedle(expr); string(got.text) != want {
			t.Errorf("newNeedle(%q) = %q, want %q", expr, got.text, want)
		}
	}
}

// Grep finds what a plain search line by line finds.
func TestGrepFindsEachMatchingLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := expression().Draw(t, "expression")
		lines := rapid.SliceOf(rapid.StringMatching(`[abksABKSé ]{0,6}`)).Draw(t, "lines")
		re := regexp.MustCompile(expr)
		var want strings.Builder
		for i, line := range lines {
			if re.MatchString(line) {
				fmt.Fprintf(&want, "f:%d:%s\n", i+1, line)
			}
		}
		g := &grepping{mode: modeContent, matcher: re, needle: newNeedle(expr), text: newText(), list: &listing{maxBytes: captureMaxBytes, limitBytes: captureMaxBytes}}
		g.page, _ = newPage(1, 1<<40)
		if err := g.file(t.Context(), "f", bytes.NewReader([]byte(strings.Join(append(lines, ""), "\n")))); err != nil {
			t.Fatal(err)
		}
		if got := g.list.text.String(); got != want.String() {
			t.Fatalf("got %q, want %q", got, want.String())
		}
	})
}

// Context is what a plain search shows, also across blocks and where whole blocks
// are passed over.
func TestGrepContextIsThatOfAPlainSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file []string
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			line := rapid.SampledFrom([]string{"x", strings.Repeat("y", 1000), strings.Repeat("z", blockBytes/2)}).Draw(t, "line")
			for range rapid.SampledFrom([]int{1, 2, 5, 400}).Draw(t, "count") {
				if len(file)*len(line) < 4*blockBytes {
					file = append(file, line)
				}
			}
			if rapid.Bool().Draw(t, "match") {
				file = append(file, "needle")
			}
		}
		context := rapid.IntRange(0, 4).Draw(t, "context")
		re := regexp.MustCompile("needle")
		g := &grepping{mode: modeContent, context: context, matcher: re, needle: newNeedle("needle"), text: newText(), list: &listing{maxBytes: captureMaxBytes, limitBytes: captureMaxBytes}}
		g.page, _ = newPage(1, 1<<40)
		if err := g.file(t.Context(), "f", strings.NewReader(strings.Join(file, "\n"))); err != nil {
			t.Fatal(err)
		}
		if got, want := g.list.text.String(), plainSearch(file, context); got != want {
			t.Fatalf("context %d: got\n%s\nwant\n%s", context, got, want)
		}
	})
}

func plainSearch(file []string, context int) string {
	var b strings.Builder
	last := -1
	for i, line := range file {
		near := slices.Contains(file[max(0, i-context):min(len(file), i+context+1)], "needle")
		if !near {
			continue
		}
		if last >= 0 && last != i-1 && context > 0 {
			b.WriteString(groupSplitter)
		}
		last = i
		mark := "-"
		if line == "needle" {
			mark = ":"
		}
		fmt.Fprintf(&b, "f%s%d%s%s\n", mark, i+1, mark, excerpt([]byte(line), 0))
	}
	return b.String()
}

func BenchmarkGrep(b *testing.B) {
	file := bytes.Repeat([]byte("The quick brown fox jumps over the lazy dog and runs into the forest.\n"), 1<<17)
	for _, expr := range []string{"unicorn", "(?i)unicorn", "[xyz]{9}"} {
		b.Run(expr, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				g := &grepping{mode: modeContent, matcher: regexp.MustCompile(expr), needle: newNeedle(expr), text: newText(), list: &listing{}}
				must(b, g.file(b.Context(), "f", bytes.NewReader(file)))
			}
		})
	}
}
