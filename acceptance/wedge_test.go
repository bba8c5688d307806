package acceptance

import (
	"context"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func prints(name, text string) tool.Tool {
	return tooltest.Func{Name: name, RunFunc: func(context.Context, tool.Call) (session.Output, error) {
		return session.Output{Summary: name + ": done", Content: &text}, nil
	}}
}

func calls(tools ...string) llmtest.Step {
	var step llmtest.Step
	for _, name := range tools {
		step.Calls = append(step.Calls, llmtest.Call{Tool: name, Arguments: `{"pattern":"*"}`})
	}
	return step
}

func says(text string) llmtest.Step { return llmtest.Step{Text: strings.SplitAfter(text, " ")} }

func TestA01OversizedOutputDoesNotWedge(t *testing.T) {
	w := start(t, setup{tools: []tool.Tool{prints("Glob", strings.Repeat("a", 1_700_000))}, script: []llmtest.Step{calls("Glob"), says("ok"), says("hi")}})
	w.model.MaxBodyBytes = 200_000
	id := w.newSession()
	for _, input := range []string{"list everything", "hello"} {
		if turn := w.say(id, input); turn.State != session.TurnCompleted {
			t.Fatalf("turn %q: %s %v", input, turn.State, turn.Error)
		}
	}
	result := results(w.items(id))[0]
	if result.Failed || len(*result.Content) > 16384 || !strings.HasSuffix(*result.Content, " bytes dropped, refine your query]") {
		t.Errorf("result: failed %v, %d bytes, ends %q", result.Failed, len(*result.Content), (*result.Content)[len(*result.Content)-60:])
	}
	for i, request := range w.model.Requests() {
		if len(request.Body) > 200_000 {
			t.Errorf("request %d has %d bytes", i, len(request.Body))
		}
	}
	w.stillFine(id)
}
