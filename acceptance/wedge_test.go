package acceptance

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

const markerEnd = " bytes dropped, refine your query]"

// Whatever way a megabyte comes in by, the next request holds a bounded piece of it.
func TestA01OversizedOutputDoesNotWedge(t *testing.T) {
	huge := strings.Repeat("a", 1_700_000)
	many := slices.Repeat([]string{"Glob"}, 64)
	denies := func(context.Context, worker.Call) worker.Verdict {
		return worker.Verdict{Answer: &session.Output{Summary: "denied", Content: &huge, Failed: true}}
	}
	grows := func(_ context.Context, _ worker.Call, out session.Output) session.Output {
		out.Content = &huge
		return out
	}
	summary := func(context.Context) (session.Output, error) { return session.Output{Summary: huge}, nil }
	small := []tool.Tool{prints("Glob", "a")}
	for _, c := range []struct {
		name   string
		setup  setup
		step   llmtest.Step
		failed bool
		cut    bool
	}{
		{"output", setup{tools: []tool.Tool{prints("Glob", huge)}}, callsWith("Glob", `{"pattern":"*"}`), false, true},
		{"output of 64 calls", setup{tools: []tool.Tool{prints("Glob", huge)}}, calls(many...), false, true},
		{"error", setup{tools: []tool.Tool{fails("Glob", huge)}}, calls("Glob"), true, true},
		{"partial output at the timeout", setup{tools: []tool.Tool{hangs("Glob", huge)}, manifest: "[worker]\ntool_timeout = \"10ms\"\n"}, calls("Glob"), true, true},
		{"denial", setup{tools: small, before: []worker.BeforeTool{denies}}, calls("Glob"), true, true},
		{"substitute", setup{tools: small, after: []worker.AfterTool{grows}}, calls("Glob"), false, true},
		{"substitute for an unknown tool", setup{tools: small, after: []worker.AfterTool{grows}}, calls("Glib"), true, true},
		{"summary", setup{tools: []tool.Tool{does("Glob", summary)}}, calls("Glob"), false, false},
		{"unparsable arguments", setup{tools: small}, callsWith("Glob", huge[:150_000]), true, false},
		{"name", setup{tools: small}, calls(huge[:150_000]), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.setup.script = []llmtest.Step{c.step, says("ok"), says("hi")}
			w := start(t, c.setup)
			w.model.MaxBodyBytes = 200_000
			id := w.newSession()
			for _, input := range []string{"list everything", "hello"} {
				if turn := w.say(id, input); turn.State != session.TurnCompleted {
					t.Fatalf("turn %q: %s %v", input, turn.State, turn.Error)
				}
			}
			for _, r := range results(w.items(id)) {
				if content := contentOf(r); r.Failed != c.failed || len(content) > 16384 || len(r.Summary) > 4096 || strings.HasSuffix(content, markerEnd) != c.cut {
					t.Errorf("result: failed %v, summary of %d bytes, content of %d bytes, cut %v", r.Failed, len(r.Summary), len(content), r.Truncated)
				}
			}
			for i, request := range w.model.Requests() {
				if len(request.Body) > 200_000 {
					t.Errorf("request %d has %d bytes", i, len(request.Body))
				}
			}
			w.stillFine(id)
		})
	}
}

const (
	perMinute = "Request too large for the model on tokens per min (TPM): Limit 30000, Requested 70123. The input or output tokens must be reduced in order to run successfully."
	tooLong   = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
)

// A refusal that waiting does not help is not repeated; one that it may help is
// repeated as often as the manifest says.
func TestA02RefusedRequestEndsTheTurn(t *testing.T) {
	w := start(t, setup{manifest: "[model]\nmax_attempts = 3\nretry_max_wait = \"5ms\"\n"})
	brokenStream := llmtest.Step{Text: []string{"I think ", "that"}, CutAfterBytes: 300}
	for _, c := range []struct {
		name  string
		step  llmtest.Step
		asked int
		code  session.ErrorCode
	}{
		{"429 larger than the minute's limit", refuses(http.StatusTooManyRequests, perMinute), 1, session.CodeRequestTooLarge},
		{"413", refuses(http.StatusRequestEntityTooLarge, "too big"), 1, session.CodeRequestTooLarge},
		{"400 too long", refuses(http.StatusBadRequest, tooLong), 1, session.CodeRequestTooLarge},
		{"too long, in the stream", llmtest.Step{StreamError: llmtest.StreamError{Type: "invalid_request_error", Message: tooLong}}, 1, session.CodeRequestTooLarge},
		{"401", refuses(http.StatusUnauthorized, "wrong key"), 1, session.CodeProviderError},
		{"404", refuses(http.StatusNotFound, "no such model"), 1, session.CodeProviderError},
		{"400", refuses(http.StatusBadRequest, "unknown field"), 1, session.CodeProviderError},
		{"429", refuses(http.StatusTooManyRequests, "slow down"), 3, session.CodeProviderError},
		{"429 that asks for an hour", llmtest.Step{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3600"}}}, 3, session.CodeProviderError},
		{"500", refuses(http.StatusInternalServerError, "oops"), 3, session.CodeProviderError},
		{"overloaded, in the stream", llmtest.Step{Text: []string{"so"}, StreamError: llmtest.StreamError{Type: "overloaded_error", Message: "busy"}}, 3, session.CodeProviderError},
		{"stream that ends without its end", brokenStream, 3, session.CodeProviderError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := w.in(t)
			w.model.Add(slices.Repeat([]llmtest.Step{c.step}, c.asked)...) // asked once more, it would answer
			id := w.newSession()
			turn := w.say(id, "hello")
			if turn.State != session.TurnFailed || errorCode(turn) != c.code || turn.Error.Detail == "" {
				t.Errorf("the turn: %s %+v, want %s", turn.State, turn.Error, c.code)
			}
			if users := strings.Count(kinds(w.items(id)), "user_message"); users != 1 {
				t.Errorf("the user message is there %d times", users)
			}
			w.stillFine(id)
		})
	}
}

// Three turns in a row that are too large are what an operator must hear of; the
// session is no longer wedged once a turn has ended otherwise.
func TestA02WedgedSessionIsCounted(t *testing.T) {
	tooLarge := refuses(http.StatusTooManyRequests, perMinute)
	w := start(t, setup{script: []llmtest.Step{tooLarge, tooLarge, tooLarge}})
	id := w.newSession()
	for i, want := range []string{"0", "0", "1"} {
		w.say(id, "hello")
		if wedged := w.metric("sessions_wedged"); wedged != want {
			t.Errorf("after %d turns %s sessions are wedged, want %s", i+1, wedged, want)
		}
	}
	w.stillFine(id)
	if wedged := w.metric("sessions_wedged"); wedged != "0" {
		t.Errorf("%s sessions are wedged after a good turn", wedged)
	}
}
