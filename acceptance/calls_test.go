package acceptance

import (
	"context"
	"fmt"
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

// eachProtocol runs a test with a model of either protocol.
func eachProtocol(t *testing.T, test func(*testing.T, string)) {
	for _, protocol := range []string{"openai", "anthropic"} {
		t.Run(protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// Calls that have finished keep their results; the others get one that says that
// they were cancelled, all in call order.
func TestA08CancelledCallsHaveResults(t *testing.T) {
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
		eachProtocol(t, func(t *testing.T, protocol string) {
			t.Run(c.name, func(t *testing.T) {
				blocks := tooltest.NewBlocking("Blocks")
				w := start(t, setup{protocol: protocol, tools: []tool.Tool{prints("Quick", "x"), blocks}, script: []llmtest.Step{c.step}})
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
				got := ""
				for _, r := range results(w.items(id)) {
					switch {
					case !r.Failed && r.Tool == "Quick":
						got += "f"
					case r.Failed && r.Summary == "Blocks: cancelled" && strings.Contains(contentOf(r), "cancelled"):
						got += "c"
					default:
						got += "?"
					}
				}
				if got != c.want {
					t.Errorf("results %q, want %q", got, c.want)
				}
				w.stillFine(id)
			})
		})
	}
}

// A turn can be cancelled wherever it is. What the model had said is kept.
func TestA08CancelBeforeAnyCall(t *testing.T) {
	text := []string{"Some ", "words"}
	half := []llmtest.Call{{Tool: "Quick", Arguments: `{"text":"half of it"}`, Pieces: 2}}
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
		eachProtocol(t, func(t *testing.T, protocol string) {
			t.Run(c.name, func(t *testing.T) {
				asked := make(chan struct{}, 1)
				c.step.Gate = make(chan struct{}) // nobody opens it
				w := start(t, setup{protocol: protocol, tools: []tool.Tool{prints("Quick", "x")}, script: []llmtest.Step{announces(asked, c.step)}})
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
		})
	}
}

func TestA09CutAnswersRunNothing(t *testing.T) {
	const half = `{"path":"a.txt","content":"half`
	call := func(arguments string) llmtest.Call { return llmtest.Call{Tool: "Write", Arguments: arguments} }
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
		eachProtocol(t, func(t *testing.T, protocol string) {
			t.Run(c.name, func(t *testing.T) {
				dir := t.TempDir()
				cut := llmtest.Step{Text: []string{"I write it."}, Calls: c.calls, Stop: llm.StopLength}
				var written []os.DirEntry
				again := replies(func(llmtest.Request) llmtest.Step {
					written, _ = os.ReadDir(dir)
					return callsWith("Write", `{"path":"a.txt","content":"all of it"}`)
				})
				w := start(t, setup{protocol: protocol, tools: files(t, dir), script: []llmtest.Step{cut, again, says("done")}})
				id := w.newSession()
				if ended := w.say(id, "write"); ended.State != session.TurnCompleted || ended.Steps != 3 {
					t.Errorf("the turn: %s after %d steps", ended.State, ended.Steps)
				}
				if len(written) > 0 {
					t.Errorf("calls of the cut answer wrote %v", written)
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
				w.stillFine(id)
			})
		})
	}
}

// A tool that says nothing is heard of by its summary, and no blank text is sent.
func TestA10SilentToolsAreHeardOf(t *testing.T) {
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
		eachProtocol(t, func(t *testing.T, protocol string) {
			t.Run(c.name, func(t *testing.T) {
				quiet := does("Quiet", func(context.Context) (session.Output, error) { return c.out, nil })
				w := start(t, setup{protocol: protocol, tools: []tool.Tool{quiet}, script: []llmtest.Step{calls("Quiet", "Quiet"), says("ok")}})
				id := w.newSession()
				w.say(id, "go")
				sent := w.model.Requests()
				if diff := cmp.Diff([]string{c.want, c.want}, lastResults(sent[len(sent)-1])); diff != "" {
					t.Error(diff)
				}
				w.stillFine(id)
			})
		})
	}
}

// A model that says nothing is asked again, not for ever, and the turn says so.
func TestA10SilentModelEndsTheTurnVisibly(t *testing.T) {
	for _, c := range []struct {
		name  string
		empty llmtest.Step
	}{
		{"reasoning only", llmtest.Step{Reasoning: []string{"I wonder"}}},
		{"nothing", llmtest.Step{}},
		{"blank text", llmtest.Step{Text: []string{" ", "\n\n", "\t"}}},
		{"cut before the first word", llmtest.Step{Reasoning: []string{"I wonder"}, Stop: llm.StopLength}},
		{"refusal without a word", llmtest.Step{Stop: llm.StopRefusal}},
	} {
		for _, before := range []int{0, 1} {
			eachProtocol(t, func(t *testing.T, protocol string) {
				t.Run(fmt.Sprintf("%s after %d calls", c.name, before), func(t *testing.T) {
					w := start(t, setup{protocol: protocol, manifest: "[model]\nretry_max_wait = \"5ms\"\n", tools: []tool.Tool{prints("Echo", "x")}})
					w.model.Add([]llmtest.Step{calls("Echo")}[:before]...)
					w.model.Otherwise = c.empty
					id := w.newSession()
					if turn := w.say(id, "go"); turn.State != session.TurnFailed || errorCode(turn) != session.CodeEmptyResponse {
						t.Errorf("the turn: %s %+v", turn.State, turn.Error)
					}
					if asked := len(w.model.Requests()) - before; asked > 3 {
						t.Errorf("asked %d times", asked)
					}
					w.stillFine(id)
				})
			})
		}
	}
}

// A silent answer is repeated, and the turn goes on when the next one is none.
func TestA10SilentAnswerIsAskedForAgain(t *testing.T) {
	w := start(t, setup{manifest: "[model]\nretry_max_wait = \"5ms\"\n", script: []llmtest.Step{{Reasoning: []string{"hm"}}, {Text: []string{" "}}, says("here I am")}})
	id := w.newSession()
	if turn := w.say(id, "go"); turn.State != session.TurnCompleted {
		t.Errorf("the turn: %s %+v", turn.State, turn.Error)
	}
	if got := kinds(w.items(id)); got != "user_message assistant_message" {
		t.Errorf("items %q", got)
	}
	w.stillFine(id)
}

// A model that never learns is told each time what is wrong, until the step limit.
func TestA11HopelessCallsEndAtTheStepLimit(t *testing.T) {
	for _, c := range []struct {
		name, tool, arguments string
		want                  string
	}{
		{"unknown", "reed", `{"path":"x"}`, "Glob, Read"},
		{"wrong case", "read", `{}`, "Glob, Read"},
		{"name with a prefix", "functions.Read", `{}`, "Glob, Read"},
		{"name of many bytes", strings.Repeat("Read", 100), `{}`, "Glob, Read"},
		{"name in another script", "読む", `{}`, "Glob, Read"},
		{"no name", "", `{}`, "Glob, Read"},
		{"arguments that are no JSON", "Read", `path=x`, "not a JSON object"},
		{"arguments that are a list", "Read", `["x"]`, "not a JSON object"},
		{"arguments that are null", "Read", `null`, "not a JSON object"},
	} {
		eachProtocol(t, func(t *testing.T, protocol string) {
			t.Run(c.name, func(t *testing.T) {
				w := start(t, setup{protocol: protocol, manifest: "[worker]\nmax_steps = 5\n", tools: []tool.Tool{prints("Read", "x"), prints("Glob", "x")}})
				w.model.Otherwise = callsWith(c.tool, c.arguments, c.arguments)
				id := w.newSession()
				if turn := w.say(id, "go"); turn.State != session.TurnFailed || errorCode(turn) != session.CodeStepLimit || turn.Steps != 5 {
					t.Errorf("the turn: %s %+v after %d steps", turn.State, turn.Error, turn.Steps)
				}
				got := results(w.items(id))
				for _, r := range got {
					if !r.Failed || !strings.Contains(contentOf(r), c.want) {
						t.Errorf("result: %q, want %q in it", contentOf(r), c.want)
					}
				}
				if len(got) != 10 {
					t.Errorf("%d results, want 10", len(got))
				}
				w.stillFine(id)
			})
		})
	}
}
