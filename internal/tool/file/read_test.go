package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// inUTF16 encodes s with a byte order mark.
func inUTF16(s string, bigEndian bool) string {
	var b []byte
	for _, unit := range append([]uint16{0xfeff}, utf16.Encode([]rune(s))...) {
		if bigEndian {
			b = append(b, byte(unit>>8), byte(unit))
		} else {
			b = append(b, byte(unit), byte(unit>>8))
		}
	}
	return string(b)
}

func TestRead(t *testing.T) {
	five := "one\ntwo\nthree\nfour\nfive\n"
	tests := []struct {
		name, file    string
		offset, limit int // 0: not given
		want, summary string
	}{
		{"whole", five, 0, 0, "1\tone\n2\ttwo\n3\tthree\n4\tfour\n5\tfive\n", "lines 1–5 of 5, 34 bytes"},
		{"some", five, 2, 2, "2\ttwo\n3\tthree\n", "lines 2–3 of 5, 14 bytes; go on with offset 4"},
		{"last", five, 5, 9, "5\tfive\n", "lines 5–5 of 5, 7 bytes"},
		{"no last line break", "one\ntwo", 0, 0, "1\tone\n2\ttwo", "lines 1–2 of 2, 11 bytes"},
		{"empty lines", "\n\nx\n\n", 0, 0, "1\t\n2\t\n3\tx\n4\t\n", "lines 1–4 of 4, 13 bytes"},
		{"CR LF", "one\r\ntwo\r\n", 0, 0, "1\tone\n2\ttwo\n", "lines 1–2 of 2, 12 bytes"},
		{"empty", "", 0, 0, "", "empty file"},
		{"only a mark", "\ufeff", 0, 0, "", "empty file"},
		{"UTF-8 with a mark", "\ufeffé\n", 0, 0, "1\té\n", "lines 1–1 of 1, 5 bytes"},
		{"UTF-16LE", inUTF16("né\n😀\n", false), 0, 0, "1\tné\n2\t😀\n", "lines 1–2 of 2, 13 bytes, decoded from UTF-16LE"},
		{"UTF-16BE", inUTF16("né\n😀\n", true), 2, 0, "2\t😀\n", "lines 2–2 of 2, 7 bytes, decoded from UTF-16BE"},
		{"UTF-16 cut in a unit", inUTF16("né", false) + "x", 0, 0, "1\tné\ufffd", "lines 1–1 of 1, 8 bytes, decoded from UTF-16LE"},
		{"Latin-1", "caf\xe9\n", 0, 0, "1\tcaf\ufffd\n", "lines 1–1 of 1, 9 bytes"},
		{"late NUL", strings.Repeat("x\n", 4000) + "a\x00b\n", 4001, 0, "4001\ta\ufffdb\n", "lines 4,001–4,001 of 4,001, 11 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args := arguments{"path": "a.txt"}
			if test.offset > 0 {
				args["offset"] = test.offset
			}
			if test.limit > 0 {
				args["limit"] = test.limit
			}
			out := run(t, workspace(t, folder(t, map[string]string{"a.txt": test.file})), "Read", args)
			if content(out) != test.want || out.Summary != "Read a.txt: "+test.summary || out.Failed || out.Unseen != 0 || out.Full != "" {
				t.Errorf("got %q, %q, unseen %d\nwant %q, %q", out.Summary, content(out), out.Unseen, test.summary, test.want)
			}
		})
	}
}

func TestReadRefusesWhatIsNoText(t *testing.T) {
	w := workspace(t, folder(t, map[string]string{
		"elf": "\x7fELF\x02\x01\x01\x00\x00", "utf32": "\xff\xfe\x00\x00a\x00\x00\x00", "short.txt": "a\nb\n",
		"nul": strings.Repeat("x", sniffBytes-1) + "\x00",
	}))
	for path, text := range map[string]string{"elf": "binary file, not text (9 bytes)", "utf32": "binary", "nul": "binary"} {
		wantFailed(t, run(t, w, "Read", arguments{"path": path}), text)
	}
	wantFailed(t, run(t, w, "Read", arguments{"path": "short.txt", "offset": 3}), "it has 2 lines; offset 3 is beyond its end")
}

func TestReadOfOneHugeLine(t *testing.T) {
	const lineBytes = 24 << 20
	root := folder(t, nil)
	must(t, os.WriteFile(filepath.Join(root, "line"), bytes.Repeat([]byte("0123456é"), lineBytes/9), 0o666))
	out := runLimited(t, workspace(t, root), "Read", arguments{"path": "line"}, 16384)
	total := int64(len("1\t") + lineBytes/9*9)
	if got := int64(len(content(out))) + out.Unseen; got != total {
		t.Errorf("content and unseen are %d bytes, want %d", got, total)
	}
	if n := len(content(out)); n > 16384-tool.MarkerMaxBytes || n < 16384-tool.MarkerMaxBytes-4 || !utf8.ValidString(content(out)) {
		t.Errorf("content has %d bytes", n)
	}
	if len(out.Full) > captureMaxBytes || len(out.Full) < captureMaxBytes-4 || !strings.HasPrefix(out.Full, content(out)) {
		t.Errorf("full has %d bytes", len(out.Full))
	}
	if want := "Read line: line 1 of 1 is too long to show whole; search in it with Grep"; out.Summary != want {
		t.Errorf("summary %q, want %q", out.Summary, want)
	}
}

// Whatever the file, the limit and the page, the content is whole lines of what is
// asked for, and nothing is lost from the count; going on by the summary's offset
// reads the file.
func TestReadCanBeGoneOnWith(t *testing.T) {
	w := workspace(t, t.TempDir())
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-zé \t]{0,60}`), 1, 60).Draw(r, "lines")
		must(t, os.WriteFile(filepath.Join(w.names[0], "f"), []byte(strings.Join(lines, "\n")+"\n"), 0o666))
		limit := rapid.IntRange(250, 2000).Draw(r, "limit")
		var got strings.Builder
		for offset, calls := 1, 0; offset <= len(lines); calls++ {
			out := runLimited(t, w, "Read", arguments{"path": "f", "offset": offset}, limit)
			checkLimits(r, out, limit)
			want := 0
			for i := offset; i <= len(lines); i++ {
				want += len(fmt.Sprintf("%d\t%s\n", i, lines[i-1]))
			}
			if len(content(out))+int(out.Unseen) != want {
				r.Fatalf("content %d, unseen %d, want %d together", len(content(out)), out.Unseen, want)
			}
			got.WriteString(content(out))
			offset = next(out.Summary, len(lines)+1)
			if calls > len(lines) {
				r.Fatal("no way forward")
			}
		}
		var want strings.Builder
		for i, line := range lines {
			fmt.Fprintf(&want, "%d\t%s\n", i+1, line)
		}
		if got.String() != want.String() {
			r.Fatalf("got %q\nwant %q", got.String(), want.String())
		}
	})
}

// next is the offset that a summary tells to go on with, or end.
func next(summary string, end int) int {
	if _, offset, ok := strings.Cut(summary, "go on with offset "); ok {
		_, _ = fmt.Sscan(offset, &end)
	}
	return end
}

// checkLimits checks what is true of any output that kept to a limit.
func checkLimits(t rapid.TB, out session.Output, limitBytes int) {
	n := len(content(out))
	switch {
	case out.Unseen == 0 && (n > limitBytes || out.Full != ""):
		t.Fatalf("%d bytes are too many, or Full (%d bytes) is set though all is shown", n, len(out.Full))
	case out.Unseen > 0 && n > limitBytes-tool.MarkerMaxBytes:
		t.Fatalf("%d bytes leave no room for a marker in %d", n, limitBytes)
	case out.Unseen < 0 || !strings.HasPrefix(out.Full, content(out)) && out.Unseen > 0:
		t.Fatalf("unseen %d, content is no beginning of full", out.Unseen)
	case !utf8.ValidString(content(out)):
		t.Fatal("content is not valid text")
	}
}

func TestReadFindsLinesAcrossBlocks(t *testing.T) {
	var file strings.Builder
	for i := 1; file.Len() < 5*blockBytes; i++ {
		fmt.Fprintf(&file, "line %d %s\n", i, strings.Repeat("x", i%2000))
	}
	long := "x" + strings.Repeat("é", blockBytes)
	file.WriteString(long + "\nend\n")
	w := workspace(t, folder(t, map[string]string{"f": file.String()}))
	total := strings.Count(file.String(), "\n")
	for _, n := range []int{1, 2, 700, total - 3, total - 2} {
		out := run(t, w, "Read", arguments{"path": "f", "offset": n, "limit": 1})
		if want := fmt.Sprintf("%d\tline %d %s\n", n, n, strings.Repeat("x", n%2000)); content(out) != want {
			t.Errorf("line %d is %.40q", n, content(out))
		}
	}
	if got, want := content(run(t, w, "Read", arguments{"path": "f", "offset": total - 1})), fmt.Sprintf("%d\t%s\n%d\tend\n", total-1, long, total); got != want {
		t.Errorf("the end has %d bytes, want %d", len(got), len(want))
	}
}

func TestReadCountsLinesBeyondThoseItShows(t *testing.T) {
	line := strings.Repeat("x", 999) + "\n"
	for _, end := range []string{"", "no line break"} {
		file := strings.Repeat(line, 3*blockBytes/1000) + end
		total := strings.Count(file, "\n") + min(1, len(end))
		w := workspace(t, folder(t, map[string]string{"f": file}))
		want := fmt.Sprintf("Read f: lines 1–1 of %d, 1,002 bytes; go on with offset 2", total)
		if out := run(t, w, "Read", arguments{"path": "f", "limit": 1}); out.Summary != want {
			t.Errorf("summary %q, want %q", out.Summary, want)
		}
		want = fmt.Sprintf("it has %d lines; offset 5000 is beyond its end", total)
		wantFailed(t, run(t, w, "Read", arguments{"path": "f", "offset": 5000}), want)
	}
}

func FuzzReadBlocks(f *testing.F) {
	f.Add([]byte("a\nb\n"))
	f.Add([]byte("\xff\xfea\x00\n\x00"))
	f.Add([]byte(inUTF16("x\ny", true) + "\xd8"))
	f.Add([]byte("\xef\xbb\xbf\n\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		x := newText()
		if x.reset(bytes.NewReader(file)) != nil {
			return
		}
		var got []byte
		for {
			block, err := x.next()
			if err != nil {
				break
			}
			if len(block) == 0 {
				t.Fatal("an empty block")
			}
			got = append(got, block...)
		}
		if x.charset == charsetUTF8 && !bytes.Equal(got, file) {
			t.Errorf("got %q from %q", got, file)
		}
	})
}
