package acceptance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// says is an answer of words.
func says(text string) llmtest.Step { return llmtest.Step{Text: strings.SplitAfter(text, " ")} }

// calls is an answer that calls tools, without arguments.
func calls(tools ...string) llmtest.Step {
	var step llmtest.Step
	for _, name := range tools {
		step.Calls = append(step.Calls, llmtest.Call{Tool: name, Arguments: `{}`})
	}
	return step
}

// callsWith is an answer that calls one tool, once for each of the arguments.
func callsWith(name string, arguments ...string) llmtest.Step {
	var step llmtest.Step
	for _, text := range arguments {
		step.Calls = append(step.Calls, llmtest.Call{Tool: name, Arguments: text})
	}
	return step
}

// replies is an answer made of what the model was asked.
func replies(reply func(llmtest.Request) llmtest.Step) llmtest.Step {
	return llmtest.Step{Reply: reply}
}

// announces is an answer that sends on asked when the model is asked for it.
func announces(asked chan<- struct{}, step llmtest.Step) llmtest.Step {
	return replies(func(llmtest.Request) llmtest.Step {
		asked <- struct{}{}
		return step
	})
}

// refuses is an answer with an error status.
func refuses(status int, message string) llmtest.Step {
	return llmtest.Step{Status: status, Body: message}
}

func prints(name, text string) tool.Tool { return tooltest.Returning(name, text) }

// does is a tool made of a function without arguments.
func does(name string, run func(context.Context) (session.Output, error)) tool.Tool {
	return tooltest.Func{Name: name, RunFunc: func(ctx context.Context, _ tool.Call) (session.Output, error) { return run(ctx) }}
}

// printsOf is a tool that prints the text whose number its argument n says.
func printsOf(name string, texts ...string) tool.Tool {
	return tooltest.Func{Name: name, RunFunc: func(_ context.Context, call tool.Call) (session.Output, error) {
		var args struct{ N int }
		if err := json.Unmarshal(call.Arguments, &args); err != nil {
			return session.Output{}, err
		}
		return session.Output{Summary: name + ": done", Content: &texts[args.N]}, nil
	}}
}

// fails is a tool whose error says text.
func fails(name, text string) tool.Tool {
	return does(name, func(context.Context) (session.Output, error) { return session.Output{}, errors.New(text) })
}

// hangs is a tool that goes on until it is stopped, and then has printed text.
func hangs(name, text string) tool.Tool {
	return does(name, func(ctx context.Context) (session.Output, error) {
		<-ctx.Done()
		return session.Output{Content: &text}, context.Cause(ctx)
	})
}

// modelled is a result as the model is told of it.
func modelled(r session.ToolResult) string {
	if r.Content == nil || strings.TrimSpace(*r.Content) == "" {
		return r.Summary
	}
	return r.Summary + "\n\n" + *r.Content
}

// lastResults are the results that a request ends with.
func lastResults(r llmtest.Request) []string {
	if n := len(r.Messages); n > 0 {
		return allResults(r.Messages[n-1:])
	}
	return nil
}

func contentOf(r session.ToolResult) string { return *cmp.Or(r.Content, new(string)) }

// errorCode is that of a turn; empty when it has none.
func errorCode(t session.Turn) session.ErrorCode {
	if t.Error == nil {
		return ""
	}
	return t.Error.Code
}
