package file

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const captureMaxBytes = 1 << 20

// folder makes a folder that holds files, by their paths.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o777))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o666))
	}
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func workspace(t testing.TB, root string, hidden ...string) *Workspace {
	t.Helper()
	w, err := Open(root, hidden, captureMaxBytes)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

type arguments map[string]any

func call(args arguments, limitBytes int) tool.Call {
	encoded, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return tool.Call{Arguments: encoded, LimitBytes: limitBytes, Progress: func(string) {}}
}

// run calls a tool with room for all that it may say.
func run(t testing.TB, w *Workspace, name string, args arguments) session.Output {
	t.Helper()
	return runLimited(t, w, name, args, captureMaxBytes)
}

func runLimited(t testing.TB, w *Workspace, name string, args arguments, limitBytes int) session.Output {
	t.Helper()
	set := tool.NewSet(append(w.ReadTools(), w.WriteTools()...)...)
	found, ok := set.Find(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	out, err := found.Run(t.Context(), call(args, limitBytes))
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	if out.Summary == "" || len(out.Summary) > 512 || strings.Contains(out.Summary, "\n") {
		t.Errorf("%s %v: bad summary %q", name, args, out.Summary)
	}
	return out
}

func content(out session.Output) string {
	if out.Content == nil {
		return ""
	}
	return *out.Content
}

// wantFailed checks that a call failed in words that hold text.
func wantFailed(t testing.TB, out session.Output, text string) {
	t.Helper()
	if !out.Failed || !strings.Contains(content(out), text) {
		t.Errorf("failed %v, %q %q; want failed with %q", out.Failed, out.Summary, content(out), text)
	}
}

func TestSchemasAreStrictObjects(t *testing.T) {
	w := workspace(t, t.TempDir())
	for _, x := range append(w.ReadTools(), w.WriteTools()...) {
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		spec := x.Spec()
		must(t, json.Unmarshal(spec.Parameters, &schema))
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties || spec.Description == "" {
			t.Errorf("%s: not strict: %s", spec.Name, spec.Parameters)
		}
		for _, name := range schema.Required {
			if _, ok := schema.Properties[name]; !ok {
				t.Errorf("%s requires %q, which it does not describe", spec.Name, name)
			}
		}
		for name, p := range schema.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s: %q lacks a type or description", spec.Name, name)
			}
		}
	}
}

func TestBadArgumentsAreToldApart(t *testing.T) {
	w := workspace(t, t.TempDir())
	tests := []struct {
		tool string
		args arguments
	}{
		{"Read", arguments{}},
		{"Read", arguments{"path": "a", "offset": 0}},
		{"Read", arguments{"path": "a", "limit": -1}},
		{"Read", arguments{"path": "a", "lines": 3}},
		{"Glob", arguments{}},
		{"Glob", arguments{"pattern": "[a"}},
		{"Glob", arguments{"pattern": "../*"}},
		{"Glob", arguments{"pattern": "/etc/*"}},
		{"Glob", arguments{"pattern": strings.Repeat("{a,b}", 8) + "x"}},
		{"Glob", arguments{"pattern": strings.Repeat("a", maxPatternBytes+1)}},
		{"Glob", arguments{"pattern": "*", "offset": 0}},
		{"Grep", arguments{}},
		{"Grep", arguments{"pattern": "("}},
		{"Grep", arguments{"pattern": "a)(b", "ignore_case": true}},
		{"Grep", arguments{"pattern": "a", "mode": "lines"}},
		{"Grep", arguments{"pattern": "a", "context": 21}},
		{"Grep", arguments{"pattern": "a", "glob": "[a"}},
		{"Grep", arguments{"pattern": strings.Repeat("a", maxExpressionBytes+1)}},
		{"Write", arguments{"path": "a"}},
		{"Write", arguments{"content": "a"}},
		{"Edit", arguments{"path": "a", "old": "x"}},
		{"Edit", arguments{"path": "a", "old": "", "new": "x"}},
		{"Edit", arguments{"path": "a", "old": "x", "new": "x"}},
	}
	set := tool.NewSet(append(w.ReadTools(), w.WriteTools()...)...)
	for _, test := range tests {
		x, _ := set.Find(test.tool)
		if _, err := x.Run(t.Context(), call(test.args, 16384)); err == nil || !strings.HasPrefix(err.Error(), tool.ErrArguments.Error()) {
			t.Errorf("%s %v: %v, want bad arguments", test.tool, test.args, err)
		}
	}
}

// special makes a folder with what is no regular file in it.
func special(t *testing.T) string {
	root := folder(t, map[string]string{"a/x.txt": "x\n"})
	must(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o666))
	must(t, os.Symlink("/dev/zero", filepath.Join(root, "z")))
	must(t, os.Symlink("..", filepath.Join(root, "a/loop")))
	must(t, os.Symlink("b", filepath.Join(root, "b")))
	must(t, os.Symlink("pipe", filepath.Join(root, "topipe")))
	listener, err := net.Listen("unix", filepath.Join(root, "socket"))
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	return root
}

func TestSpecialFilesFailAtOnce(t *testing.T) {
	w := workspace(t, special(t))
	for path, text := range map[string]string{
		"pipe": "named pipe", "topipe": "named pipe", "socket": "socket", "z": "outside", "b": "loop",
		"a": "Glob", "a/loop": "Glob", ".": "Glob", "none": "no such file", "a/none/x": "no such file", "a/x.txt/y": "no folder",
	} {
		wantFailed(t, run(t, w, "Read", arguments{"path": path}), text)
		wantFailed(t, run(t, w, "Edit", arguments{"path": path, "old": "a", "new": "b"}), text)
	}
	for path, text := range map[string]string{"pipe": "named pipe", "socket": "socket", "z": "outside", "b": "loop", "a": "folder", ".": "folder", "a/x.txt/y": "no folder"} {
		wantFailed(t, run(t, w, "Write", arguments{"path": path, "content": "a"}), text)
	}
	if got, want := content(run(t, w, "Glob", arguments{"pattern": "**/*"})), "a/\na/x.txt\n"; got != want {
		t.Errorf("Glob lists %q, want %q", got, want)
	}
	if got, want := content(run(t, w, "Grep", arguments{"pattern": "x"})), "a/x.txt:1:x\n"; got != want {
		t.Errorf("Grep finds %q, want %q", got, want)
	}
	if got, want := content(run(t, w, "Read", arguments{"path": "a/loop/a/loop/a/x.txt"})), "1\tx\n"; got != want {
		t.Errorf("Read through a link gives %q, want %q", got, want)
	}
}

func TestNoPathLeadsOut(t *testing.T) {
	outside := folder(t, map[string]string{"secret.txt": "SECRET\n"})
	root := folder(t, map[string]string{"in/a.txt": "SECRET-NOT\n"})
	must(t, os.Symlink(outside, filepath.Join(root, "out")))
	must(t, os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(root, "in/link")))
	must(t, os.Symlink("../../../../../../../../etc", filepath.Join(root, "in/etc")))
	must(t, os.Symlink(filepath.Join(root, "in"), filepath.Join(root, "absolute")))
	w := workspace(t, root)
	up := strings.Repeat("../", 30)
	for _, path := range []string{
		"..", "../", up + "etc/passwd", "in/../../x", "/etc/passwd", outside + "/secret.txt", root + "x", root + "/../x",
		"out/secret.txt", "in/link", "in/etc/passwd", "out/../in/a.txt",
	} {
		for _, name := range []string{"Read", "Edit", "Write"} {
			args := arguments{"path": path}
			switch name {
			case "Edit":
				args = arguments{"path": path, "old": "SECRET", "new": "x"}
			case "Write":
				args = arguments{"path": path, "content": "x"}
			}
			wantFailed(t, run(t, w, name, args), "outside the project folder")
		}
		wantFailed(t, run(t, w, "Grep", arguments{"pattern": "SECRET", "path": path}), "outside the project folder")
		wantFailed(t, run(t, w, "Glob", arguments{"pattern": "*", "path": path}), "outside the project folder")
	}
	for _, path := range []string{"in/a.txt", root + "/in/a.txt", "./in//a.txt", "in/../in/a.txt", "absolute/a.txt"} {
		if got := content(run(t, w, "Read", arguments{"path": path})); got != "1\tSECRET-NOT\n" {
			t.Errorf("Read %s = %q", path, got)
		}
	}
	if got, want := content(run(t, w, "Glob", arguments{"pattern": root + "/**/*.txt", "path": "in"})), "in/a.txt\n"; got != want {
		t.Errorf("an absolute pattern lists %q, want %q", got, want)
	}
	for _, path := range []string{"a\x00b", strings.Repeat("a", maxPathBytes+1)} {
		wantFailed(t, run(t, w, "Read", arguments{"path": path}), "a path has")
	}
}

func TestHiddenFilesAreInvisible(t *testing.T) {
	root := folder(t, map[string]string{
		"data/log.db": "SECRET\n", "data/kept/1": "SECRET\n", "loadline.toml": "SECRET\n", "conf/real.toml": "SECRET\n",
		"database/ok.txt": "SECRET\n",
	})
	link := func(old, new string) { must(t, os.Link(filepath.Join(root, old), filepath.Join(root, new))) }
	symlink := func(old, new string) { must(t, os.Symlink(old, filepath.Join(root, new))) }
	link("data/kept/1", "hard1")
	link("loadline.toml", "hard2")
	symlink("data", "soft1")
	symlink("data/log.db", "soft2")
	symlink("loadline.toml", "soft3")
	symlink("conf/real.toml", "named.toml")
	w := workspace(t, root, filepath.Join(root, "data"), filepath.Join(root, "loadline.toml"), filepath.Join(root, "named.toml"), filepath.Join(root, "later"))
	must(t, os.MkdirAll(filepath.Join(root, "later"), 0o777))
	must(t, os.WriteFile(filepath.Join(root, "later/x"), []byte("SECRET\n"), 0o666))

	if got, want := content(run(t, w, "Glob", arguments{"pattern": "**"})), "conf/\ndatabase/\ndatabase/ok.txt\n"; got != want {
		t.Errorf("Glob lists\n%swant\n%s", got, want)
	}
	if got, want := content(run(t, w, "Grep", arguments{"pattern": "SECRET"})), "database/ok.txt:1:SECRET\n"; got != want {
		t.Errorf("Grep finds\n%swant\n%s", got, want)
	}
	before := contents(t, root)
	for _, path := range []string{
		"data/log.db", "data/kept/1", "loadline.toml", "conf/real.toml", "named.toml", "later/x", "hard1", "hard2",
		"soft1/log.db", "soft1/kept/1", "soft2", "soft3", "conf/../data/log.db", root + "/data/log.db",
	} {
		wantFailed(t, run(t, w, "Read", arguments{"path": path}), "no such file")
		wantFailed(t, run(t, w, "Grep", arguments{"pattern": "SECRET", "path": path}), "no such file")
		wantFailed(t, run(t, w, "Edit", arguments{"path": path, "old": "SECRET", "new": "x"}), "no such file")
		wantFailed(t, run(t, w, "Write", arguments{"path": path, "content": "x"}), "belongs to the server")
	}
	for _, path := range []string{"data/new", "soft1/new", "later/new/er", "data/new/er"} {
		wantFailed(t, run(t, w, "Write", arguments{"path": path, "content": "x"}), "belongs to the server")
	}
	if after := contents(t, root); !maps.Equal(before, after) {
		t.Errorf("something was changed: %v", after)
	}
}

// contents reads all regular files below root.
func contents(t *testing.T, root string) map[string]string {
	files := map[string]string{}
	must(t, filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			var b []byte
			b, err = os.ReadFile(path)
			files[path] = string(b)
		}
		return err
	}))
	return files
}

func TestOpenRefusesFoldersThatNothingMaySee(t *testing.T) {
	root := folder(t, map[string]string{"data/project/a": ""})
	for _, hidden := range []string{"data", "data/project", "."} {
		if _, err := Open(filepath.Join(root, "data/project"), []string{filepath.Join(root, hidden)}, captureMaxBytes); err == nil {
			t.Errorf("Open took a project in the hidden folder %s", hidden)
		}
	}
	for _, missing := range []string{"none", "data/project/a"} {
		if _, err := Open(filepath.Join(root, missing), nil, captureMaxBytes); err == nil {
			t.Errorf("Open took %s", missing)
		}
	}
}

// A folder is swapped for links to what must not be seen, as fast as can be, while
// tools use it.
func TestNoRaceLeadsOut(t *testing.T) {
	outside := folder(t, map[string]string{"x": "SECRET\n"})
	root := folder(t, map[string]string{"data/x": "SECRET\n", "d/x": "fine\n"})
	must(t, os.Symlink(outside, filepath.Join(root, "toOutside")))
	must(t, os.Symlink("data", filepath.Join(root, "toHidden")))
	w := workspace(t, root, filepath.Join(root, "data"))
	ctx, stop := context.WithCancel(t.Context())
	swapped := make(chan int)
	go func() {
		n := 0
		for links := []string{"toOutside", "toHidden"}; ctx.Err() == nil; n++ {
			link := filepath.Join(root, links[n/2%2])
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "d"), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
		swapped <- n
	}()
	good := 0
	for range 400 {
		if out := run(t, w, "Read", arguments{"path": "d/x"}); strings.Contains(content(out), "fine") {
			good++
		} else if strings.Contains(content(out), "SECRET") {
			t.Error("Read was led out")
		}
		if out := run(t, w, "Grep", arguments{"pattern": "SECRET"}); out.Content != nil {
			t.Errorf("Grep was led out: %q", content(out))
		}
		run(t, w, "Write", arguments{"path": "d/y", "content": "mine"})
	}
	stop()
	if n := <-swapped; n < 1000 || good == 0 {
		t.Errorf("the race was no race: %d swaps, %d good reads", n, good)
	}
	for _, path := range []string{filepath.Join(outside, "y"), filepath.Join(root, "data/y")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("Write was led to %s", path)
		}
	}
}

func TestCancelEndsEachTool(t *testing.T) {
	w := workspace(t, folder(t, map[string]string{"a.txt": "abc\n"}))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := fmt.Errorf("gone")
	cancel(gone)
	for _, x := range append(w.ReadTools(), w.WriteTools()...) {
		args := map[string]arguments{
			"Read": {"path": "a.txt"}, "Glob": {"pattern": "*"}, "Grep": {"pattern": "b"},
			"Write": {"path": "a.txt", "content": "new"}, "Edit": {"path": "a.txt", "old": "b", "new": "x"},
		}[x.Spec().Name]
		if out, err := x.Run(ctx, call(args, 16384)); err != gone { //nolint:errorlint // exactly the cause
			t.Errorf("%s = %q, %v; want the cause of the end", x.Spec().Name, out.Summary, err)
		}
	}
	if got := contents(t, w.names[0]); len(got) != 1 || !slices.Contains(slices.Collect(maps.Values(got)), "abc\n") {
		t.Errorf("a cancelled call changed something: %v", got)
	}
}

func FuzzPaths(f *testing.F) {
	for _, path := range []string{"a", "../x", "a/../../x", "/etc/passwd", "l/x", "l/../x", "./", "a//b", "\x00", "a/./..", "h", "d/h"} {
		f.Add(path)
	}
	outside := f.TempDir()
	must(f, os.WriteFile(filepath.Join(outside, "x"), []byte("SECRET"), 0o666))
	root := folder(f, map[string]string{"a": "ok", "d/b": "ok", "d/h/x": "SECRET"})
	must(f, os.Symlink(outside, filepath.Join(root, "l")))
	must(f, os.Symlink("d/h", filepath.Join(root, "h")))
	w := workspace(f, root, filepath.Join(root, "d/h"))
	f.Fuzz(func(t *testing.T, path string) {
		s, err := w.view().resolve(path)
		if err != nil {
			return
		}
		defer s.close()
		if real := s.path(); !filepath.IsLocal(real) || w.newGuard().hidesName(real) {
			t.Errorf("resolve(%q) leads to %q", path, real)
		}
		if f, _, err := s.open(); err == nil {
			defer f.Close()
			b := make([]byte, 100)
			if n, _ := f.Read(b); string(b[:n]) != "ok" {
				t.Errorf("resolve(%q) opens %q", path, b[:n])
			}
		}
	})
}
