package file

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// repository is a fresh git repository, and git isolated from the machine's settings.
type repository struct {
	root string
	w    *Workspace
}

func newRepository(t *testing.T) *repository {
	r := &repository{root: t.TempDir()}
	r.git(t, "init", "-q")
	r.w = workspace(t, r.root)
	return r
}

func (r *repository) git(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.root}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v (is git installed?): %v", args, err)
	}
	return string(out)
}

// fill replaces all files. Where a file and a folder have the same name, the first wins.
func (r *repository) fill(t testing.TB, paths []string, ignores map[string]string) {
	empty(t, r.root)
	for _, path := range paths {
		if os.MkdirAll(filepath.Dir(filepath.Join(r.root, path)), 0o777) == nil {
			_ = os.WriteFile(filepath.Join(r.root, path), nil, 0o666)
		}
	}
	for path, text := range ignores {
		_ = os.WriteFile(filepath.Join(r.root, path), []byte(text), 0o666)
	}
}

// diff compares the files that git does not ignore with those that Glob lists.
func (r *repository) diff(t testing.TB) string {
	present := func(list, separator string) []string {
		files := slices.DeleteFunc(strings.Split(list, separator), func(path string) bool { return path == "" || strings.HasSuffix(path, "/") })
		slices.Sort(files)
		return files
	}
	want := present(r.git(t, "ls-files", "--others", "--exclude-standard", "-z"), "\x00")
	got := present(content(run(t, r.w, "Glob", arguments{"pattern": "**"})), "\n")
	return cmp.Diff(want, got)
}

// Git itself says which files of random trees are not ignored.
func TestIgnoreFilesMeanWhatGitSays(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"a", "b", "c", "*", "!*/", "!a", "!*.x", "*.x", "/a", "!/a", "/a/", "a/", "!a/", "a/b", "/a/b", "!a/b", "**/b", "!**/b", "a/**", "!a/**", "a/**/c", "a/**/b/c", "**/", "/**", "!/**", "**",
		"a/*", "!a/*", "[ab]", "[!a]", "[^b]x", "?", "a?", "a*", "*a*b", `\!a`, `\#a`, "#a", "!", "/", "", "  ", "a ", `a\ `, "{a,b}", "a**b", "a/**b", `\a`, "a//b", "[a", "a\r",
	})
	const name = `(a|b|c|ab|aab|a\.x|x|ax|!a|#a|a |\{a,b\})`
	repo := newRepository(t)
	rapid.Check(t, func(r *rapid.T) {
		ignores := map[string]string{}
		for _, path := range []string{".git/info/exclude", ".gitignore", "a/.gitignore", "a/b/.gitignore", "b/.gitignore"} {
			ignores[path] = strings.Join(rapid.SliceOfN(line, 0, 4).Draw(r, path), "\n")
		}
		repo.fill(t, rapid.SliceOfN(rapid.StringMatching(name+`(/`+name+`){0,3}`), 3, 20).Draw(r, "paths"), ignores)
		if diff := repo.diff(t); diff != "" {
			r.Fatalf("git, then we:\n%s", diff)
		}
	})
}

// These are the rules that people get wrong.
func TestIgnoreFilesByExample(t *testing.T) {
	repo := newRepository(t)
	paths := []string{"a/b", "a/c/d", "b", "c/a/b", "{a,b}", "x.go", "c/x.go", "c/y.txt", "a b", "trail ", "#x", "!x"}
	for _, ignore := range []string{
		"*\n!*/\n!*.go\n", "/*\n!/c\n", "a/**\n!a/b\n", "a/\n!a/b\n", "{a,b}\n", "/{a,b}\n", "**/a/b\n", "c/**/b\n", "a/b\n", "/b\n", "b/\n",
		"trail\\ \n", "trail \n", "\\#x\n", "#x\n", "\\!x\n", "!x\n", "\ufeffb\n", "b\r\nx.go\r\n", "*.go", "[\n", "c/*\n!c/x.go\n", "*\n!.gitignore\n",
	} {
		repo.fill(t, paths, map[string]string{".gitignore": ignore})
		if diff := repo.diff(t); diff != "" {
			t.Errorf("%q: git, then we:\n%s", ignore, diff)
		}
	}
}
