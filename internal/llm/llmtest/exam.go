package llmtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// What a provider under examination is made with.
const (
	Key         = "sk-exam-0123456789abcdef"
	IdleTimeout = time.Second
)

// Exam tests what every provider must do. The function makes a provider of the
// model at baseURL, with Key and IdleTimeout.
func Exam(t *testing.T, provider func(baseURL string) llm.Provider) {
	e := exam{provider}
	t.Run("answers", e.answers)
	t.Run("history", e.history)
	t.Run("reasoning returns", e.reasoningReturns)
	t.Run("error answers", e.statuses)
	t.Run("errors in the stream", e.streamErrors)
	t.Run("waits", e.waits)
	t.Run("broken streams", e.brokenStreams)
	t.Run("bounds", e.bounds)
	t.Run("cancel", e.cancel)
	t.Run("at once", e.atOnce)
}

type exam struct {
	provider func(baseURL string) llm.Provider
}

// trial is one provider and the model that it asks.
type trial struct {
	*Server
	provider llm.Provider
}

func (e exam) start(t *testing.T, script ...Step) trial {
	t.Helper()
	server := New(script...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	provider := e.provider(server.URL())
	if closer, ok := provider.(interface{ Close() }); ok {
		t.Cleanup(closer.Close)
	}
	return trial{server, provider}
}

// ask asks, checks that the deltas add up to the answer, that the request was not
// refused for its form, and that no error holds the key.
func (tr trial) ask(ctx context.Context, t *testing.T, r llm.Request) (llm.Answer, error) {
	t.Helper()
	var streamed []llm.Block
	var texts [][]byte
	before := len(tr.Problems())
	answer, err := tr.provider.Ask(ctx, r, func(d llm.Delta) {
		if d.Block == len(streamed) {
			streamed = append(streamed, llm.Block{Kind: d.Kind, Tool: d.Tool})
			texts = append(texts, nil)
		}
		texts[d.Block] = append(texts[d.Block], d.Text...)
	})
	for i := range streamed {
		streamed[i].Text = string(texts[i])
	}
	if problems := tr.Problems()[before:]; len(problems) > 0 {
		t.Errorf("the request was refused: %q", problems)
	}
	if err != nil {
		if strings.Contains(err.Error(), Key) {
			t.Errorf("the error holds the key: %v", err)
		}
		return answer, err
	}
	if diff := cmp.Diff(plain(answer.Blocks), streamed); diff != "" {
		t.Errorf("the deltas do not add up to the answer (-answer +deltas):\n%s", diff)
	}
	return answer, nil
}

// plain is what deltas show of blocks.
func plain(blocks []llm.Block) []llm.Block {
	var shown []llm.Block
	for _, b := range blocks {
		shown = append(shown, llm.Block{Kind: b.Kind, Text: b.Text, Tool: b.Tool})
	}
	return shown
}

func hello() llm.Request {
	return llm.Request{
		System: "Be brief.",
		Tools: []session.ToolSpec{{
			Name: "Read", Description: "Reads a file.",
			Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		}},
		Items: []session.Item{userItem(1, "Hello <b>world</b> & all")},
	}
}

func userItem(n int64, text string) session.Item {
	return session.Item{N: n, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: text}}
}

func text(s string) llm.Block { return llm.Block{Kind: session.KindAssistantMessage, Text: s} }

func thought(s string) llm.Block { return llm.Block{Kind: session.KindReasoning, Text: s} }

func call(tool, arguments string) llm.Block {
	return llm.Block{Kind: session.KindToolCall, Tool: tool, Text: arguments}
}

// answerCase is an answer and what must come of it.
type answerCase struct {
	name string
	step Step
	want []llm.Block
}

func answerCases() []answerCase {
	path := `{"path":"a/\"b\".txt","n":[1,2,{"x":null}],"s":"日本語 <&> \u2028"}`
	return []answerCase{
		{"text", Step{Text: []string{"Hel", "lo", ", <world> & 日本 😀\n", " \"x\" \\ \u2028"}}, []llm.Block{text("Hello, <world> & 日本 😀\n \"x\" \\ \u2028")}},
		{"nothing", Step{}, nil},
		{"reasoning and text", Step{Reasoning: []string{"We ", "think."}, Signature: "sig", Text: []string{"Yes."}},
			[]llm.Block{thought("We think."), text("Yes.")}},
		{"call", Step{Calls: []Call{{Tool: "Read", Arguments: path}}}, []llm.Block{call("Read", path)}},
		{"call in pieces", Step{Text: []string{"Let me see."}, Calls: []Call{{Tool: "Read", Arguments: path, Pieces: 9}}},
			[]llm.Block{text("Let me see."), call("Read", path)}},
		{"parallel calls", Step{Calls: []Call{
			{Tool: "Read", Arguments: `{"path":"a"}`, Pieces: 3}, {Tool: "Read", Arguments: `{"path":"b"}`}, {Tool: "Glob", Arguments: `{}`},
		}}, []llm.Block{call("Read", `{"path":"a"}`), call("Read", `{"path":"b"}`), call("Glob", `{}`)}},
		{"interleaved calls", Step{Interleave: true, Calls: []Call{
			{Tool: "Read", Arguments: `{"path":"a"}`, Pieces: 4}, {Tool: "Glob", Arguments: `{"pattern":"*"}`, Pieces: 6},
		}}, []llm.Block{call("Read", `{"path":"a"}`), call("Glob", `{"pattern":"*"}`)}},
		{"call without arguments", Step{Calls: []Call{{Tool: "Now"}}}, []llm.Block{call("Now", "")}},
		{"broken arguments", Step{Calls: []Call{{Tool: "Read", Arguments: `{"path":"half`, Pieces: 2}}}, []llm.Block{call("Read", `{"path":"half`)}},
		{"length", Step{Text: []string{"cut"}, Stop: llm.StopLength}, []llm.Block{text("cut")}},
		{"refusal", Step{Text: []string{"No."}, Stop: llm.StopRefusal}, []llm.Block{text("No.")}},
		{"open connection", Step{Text: []string{"Done."}, Hang: true}, []llm.Block{text("Done.")}},
	}
}

func (e exam) answers(t *testing.T) {
	for _, test := range answerCases() {
		for _, writeBytes := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("%s in writes of %d", test.name, writeBytes), func(t *testing.T) {
				t.Parallel()
				step := test.step
				step.WriteBytes = writeBytes
				step.Usage = session.Usage{InputTokens: 1200, CachedInputTokens: 1000, OutputTokens: 34}
				answer, err := e.start(t, step).ask(t.Context(), t, hello())
				if err != nil {
					t.Fatal(err)
				}
				if step.Stop == "" {
					step.Stop = llm.StopEnd
				}
				got := llm.Answer{Blocks: plain(answer.Blocks), Stop: answer.Stop, Usage: answer.Usage}
				want := llm.Answer{Blocks: test.want, Stop: step.Stop, Usage: step.Usage}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func (e exam) atOnce(t *testing.T) {
	tr := e.start(t)
	tr.Otherwise = Step{Reply: func(r Request) Step {
		return Step{Text: []string{"You said ", r.Messages[0].Text}}
	}}
	for i := range 32 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			said := fmt.Sprintf("word %d", i)
			answer, err := tr.ask(t.Context(), t, llm.Request{Items: []session.Item{userItem(1, said)}})
			if err != nil {
				t.Fatal(err)
			}
			if want := "You said " + said; len(answer.Blocks) != 1 || answer.Blocks[0].Text != want {
				t.Errorf("blocks = %v, want %q", answer.Blocks, want)
			}
		})
	}
}
