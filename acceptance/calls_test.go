package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// eachProtocol runs a test in a world whose model is of one protocol, then of the
// other.
func eachProtocol(t *testing.T, s setup, test func(*testing.T, *world)) {
	t.Helper()
	for _, protocol := range []string{"openai", "anthropic"} {
		t.Run(protocol, func(t *testing.T) {
			s.protocol = protocol
			test(t, start(t, s))
		})
	}
}

// Calls that have finished keep their results; the others get one that says that
// they were cancelled, all in call order.
func TestA08CancelledCallsHaveResults(t *testing.T) {
	blocks := tooltest.NewBlocking("Blocks")
	eachProtocol(t, setup{tools: []tool.Tool{prints("Quick", "x"), blocks}}, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name string
			step llmtest.Step
			want string // f: finished, c: cancelled
		}{
			{"the second of three", calls("Quick", "Blocks", "Quick"), "fcf"},
			{"the first", calls("Blocks", "Quick"), "cf"},
			{"the last", calls("Quick", "Blocks"), "fc"},
			{"all", calls("Blocks", "Blocks", "Blocks"), "ccc"},
			{"one", calls("Blocks"), "c"},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := w.in(t)
				w.model.Add(c.step)
				id := w.newSession()
				turn := w.post(id, "go")
				s := w.stream(id, "")
				defer s.close()
				for range strings.Count(c.want, "c") {
					<-blocks.Entered
				}
				for range strings.Count(c.want, "f") {
					s.until(func(ev session.Event) bool { return ev.Item != nil && ev.Item.ToolResult != nil })
				}
				// Cancelling twice, at once and after the end, changes nothing.
				var cancels sync.WaitGroup
				cancels.Go(func() { w.cancel(id, turn.ID) })
				ended := w.cancel(id, turn.ID)
				cancels.Wait()
				if ended.State != session.TurnCancelled || errorCode(ended) != session.CodeCancelled {
					t.Errorf("the turn: %s %+v", ended.State, ended.Error)
				}
				if diff := cmp.Diff(ended, w.cancel(id, turn.ID)); diff != "" {
					t.Errorf("cancelled again: %s", diff)
				}
				if got := finishedOrCancelled(w.items(id)); got != c.want {
					t.Errorf("results %q, want %q", got, c.want)
				}
				w.stillFine(id)
			})
		}
	})
}

func finishedOrCancelled(items []session.Item) string {
	got := ""
	for _, r := range results(items) {
		switch {
		case !r.Failed && r.Tool == "Quick":
			got += "f"
		case r.Failed && r.Summary == "Blocks: cancelled" && strings.Contains(contentOf(r), "cancelled"):
			got += "c"
		default:
			got += "?"
		}
	}
	return got
}

// A turn can be cancelled wherever it is. What the model had said is kept.
func TestA08CancelBeforeAnyCall(t *testing.T) {
	text := []string{"Some ", "words"}
	half := []llmtest.Call{{Tool: "Quick", Arguments: `{"text":"half of it"}`, Pieces: 2}}
	eachProtocol(t, setup{tools: []tool.Tool{prints("Quick", "x")}}, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name  string
			step  llmtest.Step // held where its gate is
			kinds string
		}{
			{"before the first word", llmtest.Step{Text: text}, "user_message"},
			{"between two words", llmtest.Step{Text: text, GateAfter: 1}, "user_message assistant_message"},
			{"between words and a call", llmtest.Step{Text: text, Calls: calls("Quick").Calls, GateAfter: 2}, "user_message assistant_message"},
			{"within a call", llmtest.Step{Text: text, Calls: half, GateAfter: 3}, "user_message assistant_message"},
			{"after blank text", llmtest.Step{Text: []string{" \n", "words"}, GateAfter: 1}, "user_message"},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := w.in(t)
				asked := make(chan struct{}, 1)
				c.step.Gate = make(chan struct{}) // nobody opens it
				w.model.Add(announces(asked, c.step))
				id := w.newSession()
				turn := w.post(id, "go")
				waiting := w.post(id, "and then")
				<-asked
				if strings.HasSuffix(c.kinds, "assistant_message") {
					s := w.stream(id, "")
					defer s.close()
					s.until(func(ev session.Event) bool { return ev.Delta != nil && strings.Contains(ev.Delta.Text, "Some ") })
				}
				if withdrawn := w.cancel(id, waiting.ID); withdrawn.State != session.TurnCancelled {
					t.Errorf("the queued turn is %s", withdrawn.State)
				}
				if ended := w.cancel(id, turn.ID); ended.State != session.TurnCancelled {
					t.Errorf("the turn is %s", ended.State)
				}
				items := w.items(id)
				if got := kinds(items); got != c.kinds {
					t.Errorf("items %q, want %q", got, c.kinds)
				}
				if last := items[len(items)-1].AssistantMessage; last != nil && (!last.Incomplete || !strings.HasPrefix(last.Text, "Some ")) {
					t.Errorf("the answer is %+v", last)
				}
				w.stillFine(id)
			})
		}
	})
}

func TestA09CutAnswersRunNothing(t *testing.T) {
	const half = `{"path":"a.txt","content":"half`
	call := func(arguments string) llmtest.Call { return llmtest.Call{Tool: "Write", Arguments: arguments} }
	dir := t.TempDir()
	eachProtocol(t, setup{tools: files(t, dir)}, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name  string
			calls []llmtest.Call
		}{
			{"unparsable", []llmtest.Call{call(half)}},
			{"cut but valid", []llmtest.Call{call(half + `"}`)}},
			{"two of which the first looks complete", []llmtest.Call{call(half + ` a page"}`), call(`{"path":"b.txt","con`)}},
			{"no arguments yet", []llmtest.Call{call("")}},
			{"no name yet", []llmtest.Call{{Tool: "", Arguments: ""}}},
			{"cut in an escape", []llmtest.Call{call(half + `\u00`)}},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := w.in(t)
				var early []os.DirEntry
				again := replies(func(llmtest.Request) llmtest.Step {
					early, _ = os.ReadDir(dir)
					return callsWith("Write", `{"path":"a.txt","content":"all of it"}`)
				})
				w.model.Add(llmtest.Step{Text: []string{"I write it."}, Calls: c.calls, Stop: llm.StopLength}, again, says("done"))
				id := w.newSession()
				if ended := w.say(id, "write"); ended.State != session.TurnCompleted || ended.Steps != 3 {
					t.Errorf("the turn: %s after %d steps", ended.State, ended.Steps)
				}
				if len(early) > 0 {
					t.Errorf("calls of the cut answer wrote %v", early)
				}
				got := results(w.items(id))
				if len(got) != len(c.calls)+1 {
					t.Fatalf("%d results", len(got))
				}
				for _, r := range got[:len(c.calls)] {
					if !r.Failed || !strings.Contains(contentOf(r), "Issue it again") {
						t.Errorf("result: %+v %q", r, contentOf(r))
					}
				}
				if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "all of it" {
					t.Errorf("a.txt holds %q, %v", text, err)
				}
				if err := os.Remove(filepath.Join(dir, "a.txt")); err != nil {
					t.Error(err)
				}
				w.stillFine(id)
			})
		}
	})
}

// A tool that says nothing is heard of by its summary, and no blank text is sent.
func TestA10SilentToolsAreHeardOf(t *testing.T) {
	var out session.Output
	quiet := does("Quiet", func(context.Context) (session.Output, error) { return out, nil })
	eachProtocol(t, setup{tools: []tool.Tool{quiet}}, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name string
			out  session.Output
			want string
		}{
			{"empty content", session.Output{Summary: "Quiet: done", Content: session.Text("")}, "Quiet: done"},
			{"blank content", session.Output{Summary: "Quiet: done", Content: session.Text(" \n\t")}, "Quiet: done"},
			{"no content", session.Output{Summary: "Quiet: done"}, "Quiet: done"},
			{"nothing at all", session.Output{}, "Quiet: 0 bytes"},
			{"nothing but failure", session.Output{Failed: true}, "Quiet: 0 bytes"},
			{"blank summary", session.Output{Summary: " \n", Content: session.Text("text")}, "Quiet: 4 bytes\n\ntext"},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := w.in(t)
				out = c.out
				w.model.Add(calls("Quiet", "Quiet"), says("ok"))
				id := w.newSession()
				w.say(id, "go")
				sent := w.model.Requests()
				if diff := cmp.Diff([]string{c.want, c.want}, lastResults(sent[len(sent)-1])); diff != "" {
					t.Error(diff)
				}
				w.stillFine(id)
			})
		}
	})
}
