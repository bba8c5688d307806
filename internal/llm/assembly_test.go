package llm

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/session"
)

// Whatever comes, in whatever order, the deltas add up to the answer, the text is
// valid and the whole is bounded.
func TestAssemblyAddsUp(t *testing.T) {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "\x00", "\xff", "日", strings.Repeat("é", 700)}))
	rapid.Check(t, func(t *rapid.T) {
		var streamed []Block
		room := rapid.IntRange(0, 8000).Draw(t, "room")
		a := Assembly{bytes: MaxAnswerBytes - room, Emit: func(d Delta) {
			if d.Block == len(streamed) {
				streamed = append(streamed, Block{Kind: d.Kind, Tool: d.Tool})
			}
			streamed[d.Block].Text += d.Text
		}}
		for range rapid.IntRange(1, 12).Draw(t, "pieces") {
			if len(a.blocks) == 0 || rapid.Bool().Draw(t, "open") {
				a.Open(session.KindToolCall, "Read")
			}
			a.Add(rapid.IntRange(0, len(a.blocks)-1).Draw(t, "block"), piece.Draw(t, "text"))
		}
		answer := a.Answer(StopEnd, session.Usage{})
		if diff := cmp.Diff(answer.Blocks, streamed); diff != "" {
			t.Fatalf("deltas (-answer +deltas):\n%s", diff)
		}
		bytes := 0
		for _, b := range answer.Blocks {
			bytes += len(b.Text)
			if !utf8.ValidString(b.Text) || strings.Contains(b.Text, "\x00") {
				t.Fatalf("text is not clean: %.80q", b.Text)
			}
		}
		if bytes > room {
			t.Fatalf("the answer has %d bytes, there was room for %d", bytes, room)
		}
	})
}

func TestAssemblyEndsAtTheBound(t *testing.T) {
	a := Assembly{Emit: func(Delta) {}}
	block := a.Open(session.KindAssistantMessage, "")
	a.Add(block, strings.Repeat("é", MaxAnswerBytes/2-200))
	if a.Full() {
		t.Error("full before the bound")
	}
	a.Add(block, strings.Repeat("é", 200))
	a.Add(block, "x")
	if text := a.Answer(StopLength, session.Usage{}).Blocks[0].Text; !a.Full() || strings.HasSuffix(text, "x") || !utf8.ValidString(text) {
		t.Errorf("full = %v, %d bytes, end %q", a.Full(), len(text), text[len(text)-4:])
	}
	empty := Assembly{Emit: func(Delta) {}}
	n := 0
	for ; !empty.Full() && n < MaxAnswerBytes; n++ {
		empty.Open(session.KindToolCall, "")
	}
	if n > 100_000 {
		t.Errorf("%d empty blocks were taken", n)
	}
}
