package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

func TestWrite(t *testing.T) {
	root := folder(t, map[string]string{"old.sh": "old", "dir/x": "", "bin": "\x00\x01"})
	must(t, os.Chmod(filepath.Join(root, "old.sh"), 0o751))
	must(t, os.Symlink("dir/x", filepath.Join(root, "link")))
	must(t, os.Symlink("dir/fresh", filepath.Join(root, "dangling")))
	w := workspace(t, root)
	tests := []struct{ path, content, summary, lands string }{
		{"new.txt", "hello\n", "Write new.txt: created, 6 bytes", "new.txt"},
		{"p/q/r.txt", "", "Write p/q/r.txt: created, 0 bytes", "p/q/r.txt"},
		{"old.sh", "new", "Write old.sh: replaced, 3 bytes", "old.sh"},
		{"bin", "text", "Write bin: replaced, 4 bytes", "bin"},
		{"link", "via link", "Write link: replaced, 8 bytes", "dir/x"},
		{"dangling", "via link", "Write dangling: created, 8 bytes", "dir/fresh"},
		{root + "/dir/abs", "a", "", "dir/abs"},
		{"dir/../p/up", "u", "Write dir/../p/up: created, 1 byte", "p/up"},
	}
	for _, test := range tests {
		out := run(t, w, "Write", arguments{"path": test.path, "content": test.content})
		if got := readFile(t, filepath.Join(root, test.lands)); got != test.content || out.Failed || test.summary != "" && out.Summary != test.summary {
			t.Errorf("Write %s: file %q, %q %q", test.path, got, out.Summary, content(out))
		}
	}
	info, err := os.Stat(filepath.Join(root, "old.sh"))
	must(t, err)
	if info.Mode().Perm() != 0o751 {
		t.Errorf("permissions became %v", info.Mode())
	}
	if info, err := os.Lstat(filepath.Join(root, "link")); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link became %v, %v", info, err)
	}
	wantNoTemporary(t, root)
}

func wantNoTemporary(t *testing.T, root string) {
	t.Helper()
	for path := range contents(t, root) {
		if strings.Contains(path, ".loadline-") {
			t.Errorf("%s was left behind", path)
		}
	}
}

// Whoever reads a file while it is written sees the old or the new content, whole.
func TestWriteIsAllAtOnce(t *testing.T) {
	root := folder(t, map[string]string{"f": strings.Repeat("0", 100_000)})
	w := workspace(t, root)
	var writer sync.WaitGroup
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for i := range 15 {
			run(t, w, "Write", arguments{"path": "f", "content": strings.Repeat(fmt.Sprint(i%10), 100_000)})
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		if got := readFile(t, filepath.Join(root, "f")); len(got) != 100_000 || strings.Trim(got, got[:1]) != "" {
			t.Fatal("a reader saw a part of a file")
		}
	}
	writer.Wait()
	wantNoTemporary(t, root)
}

// A folder that cannot be written fails the call and leaves nothing behind.
func TestFailedWriteLeavesNothing(t *testing.T) {
	root := folder(t, map[string]string{"f": "old"})
	w := workspace(t, root)
	v := w.view()
	s, err := v.resolve("f")
	must(t, err)
	defer s.close()
	must(t, os.WriteFile(filepath.Join(root, "f"), []byte("somebody else's"), 0o666))
	if err := s.replace(t.Context(), []byte("mine")); err != errChanged {
		t.Errorf("a file that changed meanwhile: %v", err)
	}
	if got := readFile(t, filepath.Join(root, "f")); got != "somebody else's" {
		t.Errorf("it holds %q", got)
	}
	s.info = nil
	if err := s.replace(t.Context(), []byte("mine")); err != errChanged {
		t.Errorf("a file that appeared meanwhile: %v", err)
	}
	wantNoTemporary(t, root)
}

func TestEdit(t *testing.T) {
	tests := []struct {
		name, file, old, new string
		all                  bool
		want, text           string // text: of the summary, or of the error when want is empty
	}{
		{"once", "a b c", "b", "x", false, "a x c", "1 replacement, now 5 bytes"},
		{"delete", "a b c", " b", "", false, "a c", "1 replacement"},
		{"all", "a b a", "a", "xy", true, "xy b xy", "2 replacements, now 7 bytes"},
		{"absent", "a b c", "d", "x", false, "", "is not in the file"},
		{"twice", "a b a", "a", "x", false, "", "2 times"},
		{"overlapping", "aaa", "aa", "x", false, "", "2 times"},
		{"lines", "a\nb\nc\n", "a\nb", "x\ny", false, "x\ny\nc\n", ""},
		{"CR LF", "a\r\nb\r\nc\r\n", "a\nb", "x\ny", false, "x\r\ny\r\nc\r\n", ""},
		{"CR LF given", "a\r\nb\r\n", "a\r\n", "x\r\n", false, "x\r\nb\r\n", ""},
		{"line added under CR LF", "a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n", ""},
		{"mixed line ends", "a\r\nb\nc\n", "b\n", "x\ny\n", false, "a\r\nx\ny\nc\n", ""},
		{"byte order mark", "\ufeffa\n", "a", "b", false, "\ufeffb\n", ""},
		{"the mark is no text", "\ufeffa\n", "\ufeffa", "b", false, "", "is not in the file"},
		{"UTF-16LE", inUTF16("né\r\n😀", false), "é\n", "e\n", false, inUTF16("ne\r\n😀", false), ""},
		{"UTF-16BE", inUTF16("né😀", true), "😀", "x", false, inUTF16("néx", true), ""},
		{"damaged UTF-16", inUTF16("ab", false) + "\x00\xd8", "a", "x", false, "", "damaged UTF-16LE"},
		{"Latin-1 stays", "caf\xe9 au lait", "lait", "miel", false, "caf\xe9 au miel", ""},
		{"binary", "a\x00b", "a", "x", false, "", "binary"},
		{"empty file", "", "a", "x", false, "", "is not in the file"},
		{"too long after", strings.Repeat("a", 200_000), "a", strings.Repeat("b", 200), true, "", "more than 16,777,216 bytes after"},
		{"too long", strings.Repeat("a", maxEditBytes+1), "a", "b", true, "", "too many to edit"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := folder(t, map[string]string{"f": test.file})
			out := run(t, workspace(t, root), "Edit", arguments{"path": "f", "old": test.old, "new": test.new, "all": test.all})
			got := readFile(t, filepath.Join(root, "f"))
			if test.want == "" {
				wantFailed(t, out, test.text)
				test.want = test.file
			} else if out.Failed || !strings.Contains(out.Summary, test.text) {
				t.Errorf("%q %q, want %q", out.Summary, content(out), test.text)
			}
			if got != test.want {
				t.Errorf("the file holds %.100q, want %.100q", got, test.want)
			}
			wantNoTemporary(t, root)
		})
	}
}

func TestEditsOfOneStepAllTakeEffect(t *testing.T) {
	root := folder(t, map[string]string{"f": "a1 a2 a3 a4 a5 a6 a7 a8 "})
	w := workspace(t, root)
	var calls sync.WaitGroup
	for i := 1; i <= 8; i++ {
		calls.Go(func() {
			run(t, w, "Edit", arguments{"path": "f", "old": fmt.Sprintf("a%d ", i), "new": fmt.Sprintf("b%d ", i)})
		})
	}
	calls.Wait()
	if got, want := readFile(t, filepath.Join(root, "f")), "b1 b2 b3 b4 b5 b6 b7 b8 "; got != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}

// An edit changes what it says and no other byte, and can be taken back.
func TestEditKeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abé]{0,6}`)
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		file := before + "OLD" + after
		encode := rapid.SampledFrom([]func(string) string{
			func(s string) string { return s },
			func(s string) string { return "\ufeff" + s },
			func(s string) string { return inUTF16(s, false) },
			func(s string) string { return inUTF16(s, true) },
			func(s string) string { return strings.ReplaceAll("x\n"+s+"\ny\n", "\n", "\r\n") },
		}).Draw(t, "encode")
		changed, n, err := edit{old: "OLD", new: "NEW"}.apply([]byte(encode(file)))
		if want := encode(before + "NEW" + after); err != nil || n != 1 || string(changed) != want {
			t.Fatalf("apply(%q) = %q, %d, %v, want %q", encode(file), changed, n, err, want)
		}
		back, _, err := edit{old: "NEW", new: "OLD"}.apply(changed)
		if err != nil || string(back) != encode(file) {
			t.Fatalf("taken back it is %q, %v", back, err)
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte("a\r\nb"), "a\n", "x\n", false)
	f.Add([]byte("\xff\xfea\x00\x00\xd8"), "a", "b", true)
	f.Add([]byte("\xef\xbb\xbfaaa"), "aa", "", false)
	f.Fuzz(func(t *testing.T, file []byte, before, after string, all bool) {
		if before == "" || before == after {
			return
		}
		kept := string(file)
		changed, n, err := edit{old: before, new: after, all: all}.apply(file)
		if err == nil && (n < 1 || n > 1 && !all) {
			t.Errorf("apply(%q) made %d replacements", kept, n)
		}
		if err != nil && n != 0 {
			t.Errorf("apply(%q) failed after %d replacements: %q", kept, n, changed)
		}
		if string(file) != kept {
			t.Error("the original was changed")
		}
	})
}
