package file

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

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
		"pipe": "is a named pipe", "topipe": "is a named pipe", "socket": "is a socket", "z": "outside", "b": "loop",
		"a": "Glob", "a/loop": "Glob", ".": "Glob", "none": "no such file", "a/none/x": "no such file", "a/x.txt/y": "no folder",
	} {
		wantFailed(t, run(t, w, "Read", arguments{"path": path}), text)
		wantFailed(t, run(t, w, "Edit", arguments{"path": path, "old": "a", "new": "b"}), text)
	}
	for path, text := range map[string]string{"pipe": "is a named pipe", "socket": "is a socket", "z": "outside", "b": "loop", "a": "folder", ".": "folder", "a/x.txt/y": "no folder"} {
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
	link := func(from, to string) { must(t, os.Link(filepath.Join(root, from), filepath.Join(root, to))) }
	symlink := func(from, to string) { must(t, os.Symlink(from, filepath.Join(root, to))) }
	link("data/kept/1", "hard1")
	link("loadline.toml", "hard2")
	symlink("data", "soft1")
	symlink("data/log.db", "soft2")
	symlink("loadline.toml", "soft3")
	symlink("conf/real.toml", "named.toml")
	w := workspace(t, root, filepath.Join(root, "data"), filepath.Join(root, "loadline.toml"), filepath.Join(root, "named.toml"), filepath.Join(root, "later"), filepath.Join(root, "absent.toml"))
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
	for _, path := range []string{"data/new", "soft1/new", "later/new/er", "data/new/er", "absent.toml", "absent.toml/x"} {
		wantFailed(t, run(t, w, "Write", arguments{"path": path, "content": "x"}), "belongs to the server")
	}
	if after := contents(t, root); !maps.Equal(before, after) {
		t.Errorf("something was changed: %v", after)
	}
}

// What is moved or swapped while a call runs stays hidden, and nothing waits for it.
func TestNothingIsSwappedBeneathACall(t *testing.T) {
	root := folder(t, map[string]string{"data/log.db": "SECRET\n", "f": "fine\n"})
	w := workspace(t, root, filepath.Join(root, "data"))
	v := w.view()
	must(t, os.Rename(filepath.Join(root, "data"), filepath.Join(root, "moved")))
	if s, err := v.resolve("moved/log.db"); err != errAbsent {
		t.Errorf("resolve of a moved folder = %v, %v", s, err)
	}
	if _, err := v.globTo(t.Context(), ".", globPattern{glob: "**"}, func(path string) {
		if path != "f" {
			t.Errorf("Glob lists %s", path)
		}
	}); err != nil {
		t.Error(err)
	}
	info, err := w.root.Lstat("f")
	must(t, err)
	must(t, os.Remove(filepath.Join(root, "f")))
	must(t, syscall.Mkfifo(filepath.Join(root, "f"), 0o666))
	if _, _, err := v.openFile(w.root, "f", info); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Errorf("a file that became a pipe: %v", err)
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

// A folder and a file are swapped for links to what must not be seen, as fast as can be, while
// tools use it.
func TestNoRaceLeadsOut(t *testing.T) {
	outside := folder(t, map[string]string{"x": "SECRET\n"})
	root := folder(t, map[string]string{"data/x": "SECRET\n", "d/x": "fine\n", "f": "fine\n"})
	must(t, os.Symlink("data/x", filepath.Join(root, "toFile")))
	must(t, os.Symlink(outside, filepath.Join(root, "toOutside")))
	must(t, os.Symlink("data", filepath.Join(root, "toHidden")))
	w := workspace(t, root, filepath.Join(root, "data"))
	ctx, stop := context.WithCancel(t.Context())
	swapped := make(chan int)
	go func() {
		n := 0
		for links := []string{"toOutside", "toHidden"}; ctx.Err() == nil; n++ {
			exchange(filepath.Join(root, "d"), filepath.Join(root, links[n/2%2]))
			exchange(filepath.Join(root, "f"), filepath.Join(root, "toFile"))
		}
		swapped <- n
	}()
	good := map[string]int{}
	for range 250 {
		for _, path := range []string{"d/x", "f"} {
			if out := run(t, w, "Read", arguments{"path": path}); strings.Contains(content(out), "fine") {
				good[path]++
			} else if strings.Contains(content(out), "SECRET") {
				t.Errorf("Read of %s was led out", path)
			}
		}
		if out := run(t, w, "Grep", arguments{"pattern": "SECRET"}); out.Content != nil {
			t.Errorf("Grep was led out: %q", content(out))
		}
		run(t, w, "Write", arguments{"path": "d/y", "content": "mine"})
	}
	stop()
	if n := <-swapped; n < 1000 || len(good) < 2 {
		t.Errorf("the race was no race: %d swaps, %v good reads", n, good)
	}
	for _, path := range []string{filepath.Join(outside, "y"), filepath.Join(root, "data/y")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("Write was led to %s", path)
		}
	}
}

func exchange(a, b string) {
	_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
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
		if where := s.path(); !filepath.IsLocal(where) || w.newGuard().hidesName(where) {
			t.Errorf("resolve(%q) leads to %q", path, where)
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
