package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"loadline/internal/session"
)

// interceptTimeout bounds all interceptors of one side of one call.
const interceptTimeout = 10 * time.Second

// Call is a tool call as interceptors see it.
type Call struct {
	Session   session.ID
	Turn      session.TurnID
	N         int64 // the item number of the call, and its id
	Tool      string
	Arguments json.RawMessage // a JSON object
}

// BeforeTool sees a call before its tool runs: it may let it go on, rewrite its
// arguments, or answer instead of the tool. It runs at once for many calls.
type BeforeTool func(ctx context.Context, call Call) Verdict

// Verdict is what a BeforeTool decides. The zero Verdict lets the call go on.
type Verdict struct {
	Arguments json.RawMessage // instead of the call's; nil leaves them
	Answer    *session.Output // instead of running the tool; with Failed it is a denial
}

// AfterTool sees the full output of each call, that of synthetic results too, and
// returns what takes its place, often the same. One that replaces Content replaces
// Unseen and Full too; the Full of a replaced Content is dropped, so that nothing is
// kept which was taken out. It runs at once for many calls.
type AfterTool func(ctx context.Context, call Call, out session.Output) session.Output

// before runs the interceptors in order until one answers.
func (e *Engine) before(ctx context.Context, call *Call) *session.Output {
	for _, intercept := range e.Before {
		verdict := intercept(ctx, *call)
		if verdict.Arguments != nil {
			call.Arguments = verdict.Arguments
		}
		if verdict.Answer != nil {
			return verdict.Answer
		}
	}
	return nil
}

// after runs the interceptors in order, also when the turn has been cancelled. One
// that panics or does not return turns the output into an error.
func (e *Engine) after(ctx context.Context, call Call, out session.Output) (session.Output, outcome) {
	if len(e.After) == 0 {
		return out, ""
	}
	limited, cancel := context.WithTimeout(ctx, interceptTimeout)
	defer cancel()
	replaced, failure := guard(limited, func(ctx context.Context) (session.Output, error) {
		for _, intercept := range e.After {
			out = intercept.replace(ctx, call, out)
		}
		return out, nil
	})
	switch {
	case failure.panicked != nil:
		e.logPanic(call, "interceptor", failure)
		return failedOutput(fmt.Sprintf("%s: its result was lost", call.Tool), "An interceptor failed on this result. The tool did run."), outcomePanic
	case failure.abandoned:
		return failedOutput(fmt.Sprintf("%s: its result was lost", call.Tool), "An interceptor did not return. The tool did run."), outcomeTimeout
	}
	return replaced, ""
}

// replace runs one interceptor. What it took out of Content must not live on in Full.
func (a AfterTool) replace(ctx context.Context, call Call, out session.Output) session.Output {
	had := textOf(out.Content) // which it may change in place
	replaced := a(ctx, call, out)
	if replaced.Full == out.Full && textOf(replaced.Content) != had {
		replaced.Full = ""
	}
	return replaced
}

func textOf(content *string) string {
	if content == nil {
		return ""
	}
	return *content
}

func failedOutput(summary, content string) session.Output {
	return session.Output{Summary: summary, Content: &content, Failed: true}
}
