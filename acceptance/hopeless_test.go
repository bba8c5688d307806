package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// A model that says nothing is asked again, not for ever, and the turn says so.
func TestA10SilentModelEndsTheTurnVisibly(t *testing.T) {
	s := setup{manifest: "[model]\nretry_max_wait = \"5ms\"\n", tools: []tool.Tool{prints("Echo", "x")}}
	eachProtocol(t, s, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name  string
			empty llmtest.Step
			asked int
		}{
			{"reasoning only", llmtest.Step{Reasoning: []string{"I wonder"}}, 3},
			{"nothing", llmtest.Step{}, 3},
			{"blank text", llmtest.Step{Text: []string{" ", "\n\n", "\t"}}, 3},
			{"cut before the first word", llmtest.Step{Reasoning: []string{"I wonder"}, Stop: llm.StopLength}, 3},
			{"refusal without a word", llmtest.Step{Stop: llm.StopRefusal}, 1},
		} {
			for _, before := range []int{0, 1} {
				t.Run(fmt.Sprintf("%s after %d calls", c.name, before), func(t *testing.T) {
					w := w.in(t)
					w.model.Add([]llmtest.Step{calls("Echo")}[:before]...)
					w.model.Add(slices.Repeat([]llmtest.Step{c.empty}, c.asked)...)
					id := w.newSession()
					if turn := w.say(id, "go"); turn.State != session.TurnFailed || errorCode(turn) != session.CodeEmptyResponse {
						t.Errorf("the turn: %s %+v", turn.State, turn.Error)
					}
					w.stillFine(id)
				})
			}
		}
	})
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
	s := setup{manifest: "[worker]\nmax_steps = 5\n", tools: []tool.Tool{prints("Read", "x"), prints("Glob", "x")}}
	eachProtocol(t, s, func(t *testing.T, w *world) {
		for _, c := range []struct{ name, tool, arguments, want string }{
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
			t.Run(c.name, func(t *testing.T) {
				w := w.in(t)
				hopeless := callsWith(c.tool, c.arguments, c.arguments)
				w.model.Add(slices.Repeat([]llmtest.Step{hopeless}, 5)...)
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
		}
	})
}
