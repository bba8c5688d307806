package shell

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// However the output comes and whatever the bounds, the head and the tail are those
// of the output, and each byte is either shown, or counted as unseen.
func TestCaptureLosesNoCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxBytes := rapid.IntRange(128, 2000).Draw(t, "maxBytes")
		limit := rapid.IntRange(128, 1000).Draw(t, "limit")
		c := newCapture(maxBytes, limit, &progress{tell: func(string) {}})
		var all []byte
		for _, piece := range rapid.SliceOfN(rapid.StringMatching(`[a-z\n]{0,400}`), 0, 20).Draw(t, "pieces") {
			if n, err := c.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			all = append(all, piece...)
		}
		out := c.output(limit)
		checkCaptured(t, out, string(all), limit, maxBytes)
	})
}

func checkCaptured(t *rapid.T, out session.Output, all string, limit, maxBytes int) {
	got := ""
	if out.Content != nil {
		got = *out.Content
	}
	if len(all) <= limit && len(all) <= maxBytes-gapNoteBytes {
		if got != all || out.Unseen != 0 || out.Full != "" {
			t.Fatalf("%q, unseen %d; want all of %q", got, out.Unseen, all)
		}
		return
	}
	if out.Unseen == 0 {
		if got != all {
			t.Fatalf("got %q, want %q", got, all)
		}
		return
	}
	if int64(len(got))+out.Unseen != int64(len(all)) {
		t.Fatalf("%d bytes and %d unseen, want %d", len(got), out.Unseen, len(all))
	}
	for name, text := range map[string]string{"content": got, "full": out.Full} {
		head, rest, cut := strings.Cut(text, "… ")
		_, tail, _ := strings.Cut(rest, " bytes left out …\n")
		if !cut && text != all || !strings.HasPrefix(all, strings.TrimSuffix(head, "\n")) || !strings.HasSuffix(all, tail) {
			t.Fatalf("%s is %q, not the ends of %q", name, text, all)
		}
	}
	if len(got) > limit-tool.MarkerMaxBytes || len(out.Full) > maxBytes {
		t.Fatalf("content has %d bytes of %d, full %d of %d", len(got), limit, len(out.Full), maxBytes)
	}
}

// The ring is compared with a plain slice.
func FuzzRing(f *testing.F) {
	f.Add([]byte("abcdefghij"), uint8(3))
	f.Add(bytes.Repeat([]byte("0123456789"), 60), uint8(200))
	f.Fuzz(func(t *testing.T, output []byte, step uint8) {
		c := newCapture(200, 128, &progress{tell: func(string) {}})
		for rest := output; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			_, _ = c.Write(rest[:n])
			rest = rest[n:]
		}
		if want := output[:min(len(output), c.headBytes)]; c.head.String() != string(want) {
			t.Errorf("head %q, want %q", c.head.String(), want)
		}
		below := output[min(len(output), c.headBytes):]
		want := below[max(0, len(below)-c.tailBytes):]
		if got := string(c.ring[c.ringAt:]) + string(c.ring[:c.ringAt]); got != string(want) {
			t.Errorf("tail %q, want %q", got, want)
		}
		out := c.output(128)
		if out.Content != nil && !utf8.ValidString(*out.Content) || !utf8.ValidString(out.Full) {
			t.Error("the output is not valid text")
		}
	})
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name, head, tail string
		lost             int64
		room             int
		want             string
	}{
		{"one text", strings.Repeat("a", 50) + strings.Repeat("b", 50), "", 0, 74, strings.Repeat("a", 10) + "\n… 70 bytes left out …\n" + strings.Repeat("b", 20)},
		{"lost between", "aaaaaaaaaa", "bbbbbbbbbb", 5, 56, "aaaa\n… 13 bytes left out …\nbbbbbbbb"},
		{"short tail", strings.Repeat("a", 100), "b", 5, 64, strings.Repeat("a", 19) + "\n… 86 bytes left out …\nb"},
		{"whole lines", "one\ntwo\nthree\n", strings.Repeat("b", 30) + "\nlast\n", 1000, 68, "one\ntwo\n… 1026 bytes left out …\nbbbbbbbbbb\nlast\n"},
		{"runes", strings.Repeat("é", 50), strings.Repeat("ü", 50), 0, 65, "ééé\n… 180 bytes left out …\nüüüüüüü"},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, ends(test.head, test.tail, test.lost, test.room)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestProgressTellsTheLastLineNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := &progress{tell: func(line string) { told = append(told, line) }}
		p.saw([]byte("\n\n"))
		p.saw([]byte("first\nsecond\n"))
		p.saw([]byte("at once\n"))
		<-time.After(progressEvery) // of the bubble's clock
		p.saw([]byte("10%\r20%\r"))
		<-time.After(progressEvery)
		p.saw([]byte(strings.Repeat("é", 500)))
		want := []string{"second", "20%", strings.Repeat("é", 100)}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
	})
}
