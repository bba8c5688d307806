package llmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
)

func (e exam) brokenStreams(t *testing.T) {
	t.Run("cut", func(t *testing.T) { t.Parallel(); e.cut(t, false, 1) })
	t.Run("connection lost", func(t *testing.T) { t.Parallel(); e.cut(t, true, 13) })
	never := make(chan struct{})
	for name, step := range map[string]Step{
		"silent before the answer": {Gate: never},
		"silent in mid-stream":     {Text: []string{"one", "two"}, Gate: never, GateAfter: 1},
		"silent before the end":    {Text: []string{"one"}, CutAfterBytes: 300, Hang: true},
		"empty":                    {Raw: "\n"},
		"no stream":                {Raw: "Welcome to the captive portal.\n"},
		"no JSON":                  {Raw: "data: {\"choices\":[}\n\n"},
		"long line":                {Raw: "data: " + strings.Repeat("x", llm.MaxLineBytes+1)},
		"long comment":             {Raw: ":" + strings.Repeat("x", llm.MaxLineBytes+1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := e.start(t, step)
			begun := time.Now()
			_, err := tr.ask(t.Context(), t, hello())
			expect(t, err, llm.ClassRetry)
			if took := time.Since(begun); took > 8*IdleTimeout {
				t.Errorf("it took %v", took)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		tr := e.start(t)
		tr.Close()
		_, err := tr.ask(t.Context(), t, hello())
		expect(t, err, llm.ClassRetry)
	})
}

// cut ends the stream at every byte, or at every stride-th. Before the model has
// finished that is an error; a whole answer may come out only after.
func (e exam) cut(t *testing.T, abort bool, stride int) {
	whole := Step{Reasoning: []string{"Hm"}, Text: []string{"日本"}, Calls: []Call{{Tool: "Read", Arguments: `{"path":"a"}`, Pieces: 2}}}
	tr := e.start(t, whole)
	want, err := tr.ask(t.Context(), t, hello())
	if err != nil {
		t.Fatal(err)
	}
	before, after := tr.Requests()[0].face.frames(whole, answerFacts{model: tr.provider.Model()})
	all := frameBytes(append(before, after...))
	unfinished := frameBytes(before) + len(after[0].bytes)/2
	for at := 0; at < all; at += stride {
		step := whole
		step.CutAfterBytes, step.Abort = at, abort
		if at == 0 {
			step.CutAfterBytes = -1
		}
		tr.Add(step)
		got, err := tr.ask(t.Context(), t, hello())
		if err == nil && at < unfinished {
			t.Fatalf("cut after %d bytes it is a success: %+v", at, got)
		}
		if err != nil {
			expect(t, err, llm.ClassRetry)
		} else if diff := cmp.Diff(want.Blocks, got.Blocks); diff != "" || got.Stop != want.Stop {
			t.Fatalf("cut after %d bytes the stop is %s and the blocks are (-want +got):\n%s", at, got.Stop, diff)
		}
	}
}

func frameBytes(frames []frame) int {
	n := 0
	for _, f := range frames {
		n += len(f.bytes)
	}
	return n
}

func (e exam) bounds(t *testing.T) {
	tr := e.start(t, Step{Text: []string{strings.Repeat("é", 8<<10)}, Endless: true})
	answer, err := tr.ask(t.Context(), t, hello())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range answer.Blocks {
		n += len(b.Text)
	}
	if answer.Stop != llm.StopLength || n > llm.MaxAnswerBytes || n < llm.MaxAnswerBytes/2 {
		t.Errorf("stop = %s after %d bytes, want length after at most %d", answer.Stop, n, llm.MaxAnswerBytes)
	}
}
