package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGlob(t *testing.T) {
	root := folder(t, map[string]string{
		"a.go": "", "b.txt": "", "a/b.go": "", "a-b.go": "", "a/c/d.go": "", ".dot/x.go": "", "a/.hidden": "", "[x]/y": "",
		".git/config": "", "sub/.git": "", "tab\tname": "",
		".gitignore": "*.log\n/build/\n", "x.log": "", "build/out.go": "", "a/build/out.go": "",
		"a/c/.gitignore": "!keep.log\nd.go\n", "a/c/keep.log": "", "a/c/drop.log": "", "a/keep.log": "",
	})
	must(t, os.Symlink("a.go", filepath.Join(root, "link.go")))
	must(t, os.Symlink("a", filepath.Join(root, "folderlink")))
	w := workspace(t, root)
	tests := []struct {
		pattern, path, want string
	}{
		{"*", "", `.dot/ .gitignore [x]/ a-b.go a.go a/ b.txt link.go sub/ "tab\tname"`},
		{"**/*.go", "", ".dot/x.go a-b.go a.go a/b.go a/build/out.go link.go"},
		{"**/*.log", "", "a/c/keep.log"},
		{"*/", "", ".dot/ [x]/ a/ sub/"},
		{"**", "a", "a/.hidden a/b.go a/build/ a/build/out.go a/c/ a/c/.gitignore a/c/keep.log"},
		{"./*.go", "a/", "a/b.go"},
		{"{a,b}.*", "", "a.go b.txt"},
		{"a/{b.go,c/*}", "", "a/b.go a/c/.gitignore a/c/keep.log"},
		{"a/*/*.go", "", "a/build/out.go"},
		{`\[x]/*`, "", "[x]/y"},
		{"folderlink/*", "", ""},
		{"*.go", "folderlink", "a/b.go"},
		{"sub/**/*", "", ""},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		args := arguments{"pattern": test.pattern}
		if test.path != "" {
			args["path"] = test.path
		}
		want := strings.ReplaceAll(test.want, " ", "\n")
		if got := strings.TrimSuffix(content(run(t, w, "Glob", args)), "\n"); got != want {
			t.Errorf("Glob %s in %q:\n%s", test.pattern, test.path, cmp.Diff(strings.Fields(test.want), strings.Fields(got)))
		}
	}
	for path, text := range map[string]string{"build": "ignored by git", ".git": "ignored by git", "a.go": "Read", "none": "no such"} {
		wantFailed(t, run(t, w, "Glob", arguments{"pattern": "*", "path": path}), text)
	}
}

func TestGlobPages(t *testing.T) {
	files := map[string]string{}
	for i := range 1204 {
		files[fmt.Sprintf("f%04d", i)] = ""
	}
	w := workspace(t, folder(t, files))
	tests := []struct {
		args    arguments
		limit   int
		lines   int
		summary string
	}{
		{arguments{"pattern": "*"}, 16384, 1204, "Glob *: 1,204 paths"},
		{arguments{"pattern": "*", "limit": 10}, 16384, 10, "Glob *: 1,204 paths, shown 1–10; go on with offset 11"},
		{arguments{"pattern": "*", "offset": 1200}, 16384, 5, "Glob *: 1,204 paths"},
		{arguments{"pattern": "*", "offset": 1205}, 16384, 0, "Glob *: 1,204 paths, none from offset 1205 on"},
		{arguments{"pattern": "*"}, 667, 100, "Glob *: 1,204 paths, shown 1–100; go on with offset 101"},
		{arguments{"pattern": "*", "offset": 101}, 672, 100, "Glob *: 1,204 paths, shown 101–200; go on with offset 201"},
		{arguments{"pattern": "f0007"}, 128, 1, "Glob f0007: 1 path"},
	}
	for _, test := range tests {
		out := runLimited(t, w, "Glob", test.args, test.limit)
		if n := strings.Count(content(out), "\n"); n != test.lines || out.Summary != test.summary {
			t.Errorf("%v: %d lines, %q; want %d, %q", test.args, n, out.Summary, test.lines, test.summary)
		}
		checkLimits(t, out, test.limit)
	}
}

// Whatever the tree and the pattern, pruning leaves nothing out.
func TestGlobFindsWhatDoublestarFinds(t *testing.T) {
	element := rapid.SampledFrom([]string{"a", "b", "c", "*", "**", "?", "[ab]", "{a,b}", "{a,b/c}", "a*", "*b"})
	root := t.TempDir()
	w := workspace(t, root)
	rapid.Check(t, func(r *rapid.T) {
		empty(t, root)
		for _, path := range rapid.SliceOfN(rapid.StringMatching(`[abc]{1,2}(/[abc]{1,2}){0,3}`), 1, 12).Draw(r, "paths") {
			if os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o777) == nil {
				_ = os.WriteFile(filepath.Join(root, path), nil, 0o666)
			}
		}
		pattern := strings.Join(rapid.SliceOfN(element, 1, 4).Draw(r, "pattern"), "/")
		want, err := doublestar.Glob(os.DirFS(root), pattern)
		must(t, err)
		for i, path := range want {
			if info, err := os.Stat(filepath.Join(root, path)); err == nil && info.IsDir() {
				want[i] += "/"
			}
		}
		slices.Sort(want)
		want = slices.DeleteFunc(slices.Compact(want), func(path string) bool { return path == "./" })
		got := strings.Fields(content(run(t, w, "Glob", arguments{"pattern": pattern})))
		if !slices.Equal(got, want) {
			r.Fatalf("%s: got %q, want %q", pattern, got, want)
		}
	})
}

// empty removes all that is in a folder but .git.
func empty(t testing.TB, root string) {
	t.Helper()
	entries, err := os.ReadDir(root)
	must(t, err)
	for _, e := range entries {
		if e.Name() != ".git" {
			must(t, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
}

// endsWithin is what a walk may take of a busy machine, under the race detector. On an
// idle one, without it, it takes less than a second.
const endsWithin = 25 * time.Second

func TestFiftyThousandFiles(t *testing.T) {
	root := special(t)
	one := filepath.Join(root, "one.txt")
	must(t, os.WriteFile(one, []byte("some text\n"), 0o666))
	for i := range 50 {
		dir := filepath.Join(root, fmt.Sprintf("many%02d", i))
		must(t, os.Mkdir(dir, 0o777))
		for j := range 1000 {
			must(t, os.Link(one, filepath.Join(dir, fmt.Sprintf("file%03d.txt", j))))
		}
	}
	w := workspace(t, root, filepath.Join(root, "data"))
	for name, args := range map[string]arguments{"Glob": {"pattern": "**/*"}, "Grep": {"pattern": "x"}} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		out := runLimited(t, w, name, args, 16384)
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		if took > endsWithin {
			t.Errorf("%s took %v", name, took)
		}
		if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 32<<20 {
			t.Errorf("%s took %d bytes of memory", name, grown)
		}
		checkLimits(t, out, 16384)
		if strings.Contains(content(out), "loop") {
			t.Errorf("%s went through the loop: %s", name, content(out))
		}
		t.Log(out.Summary, took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	visited := 0
	s, err := w.view().resolve(".")
	must(t, err)
	defer s.close()
	walk := walk{view: w.view(), descend: func(string) bool { return true }, visit: func(e entry) error {
		if visited++; visited == 100 {
			cancel()
		}
		return nil
	}}
	if err := walk.under(ctx, s); !errors.Is(err, context.Canceled) || visited > 101 {
		t.Errorf("a walk that was cancelled visited %d entries and ended with %v", visited, err)
	}
}

func TestWalkEndsInDeepFolders(t *testing.T) {
	root := t.TempDir()
	deep := root
	for range maxDepth + 20 {
		deep = filepath.Join(deep, "d")
	}
	must(t, os.MkdirAll(deep, 0o777))
	must(t, os.WriteFile(filepath.Join(deep, "x"), []byte("x"), 0o666))
	out := run(t, workspace(t, root), "Glob", arguments{"pattern": "**/*"})
	if !strings.Contains(out.Summary, "; 1 could not be opened") || out.Failed {
		t.Errorf("summary %q", out.Summary)
	}
	if got := content(run(t, workspace(t, root), "Read", arguments{"path": strings.TrimPrefix(deep, root+"/") + "/x"})); got != "1\tx" {
		t.Errorf("Read of a deep file = %q", got)
	}
}

func TestAlternativesAreBounded(t *testing.T) {
	for pattern, want := range map[string]int{"a": 1, "{a,b}": 2, "{a,b}{c,d,e}": 6, `\{a,b}`: 1, "{a,{b,c}}": 4, "a,b": 1} {
		if got := alternatives(pattern); got != want {
			t.Errorf("alternatives(%q) = %d, want %d", pattern, got, want)
		}
	}
}
