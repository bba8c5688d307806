package llmtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm"
)

// errorCase is an error answer and how it must be judged.
type errorCase struct {
	status int
	body   string
	want   llm.Class
}

func errorCases() []errorCase {
	longWords := "This model's maximum context length is 4096 tokens, you requested 5000. Please reduce the length of the messages."
	return []errorCase{
		{400, "messages: unknown role", llm.ClassFail},
		{400, longWords, llm.ClassShrink},
		{400, "tools.0.function.name: string too long, max_tokens is larger than the maximum", llm.ClassFail},
		{400, "prompt is too long: 210000 tokens > 200000 maximum", llm.ClassShrink},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, llm.ClassShrink},
		{400, `{"error":{"message":"no","code":"context_length_exceeded"}}`, llm.ClassShrink},
		{401, "Incorrect API key provided: " + Key, llm.ClassFail},
		{402, "payment required", llm.ClassFail},
		{403, "your region is not supported", llm.ClassFail},
		{404, "the model does not exist", llm.ClassFail},
		{408, "", llm.ClassRetry},
		{413, "", llm.ClassShrink},
		{413, "<html>Request Entity Too Large</html>", llm.ClassShrink},
		{429, "Rate limit reached on tokens per min: Limit 30000, Used 29000, Requested 5000.", llm.ClassRetry},
		{429, "This request would exceed your organization's rate limit of 30,000 input tokens per minute", llm.ClassRetry},
		{429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 70000. The input or output tokens must be reduced.", llm.ClassShrink},
		{429, "the request is larger than the tokens-per-minute allowance", llm.ClassShrink},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, llm.ClassFail},
		{500, "", llm.ClassRetry},
		{500, "<html>" + strings.Repeat("internal ", 1<<17) + Key, llm.ClassRetry},
		{502, "<html><body>Bad Gateway</body></html>", llm.ClassRetry},
		{503, `{"error":"loading model"}`, llm.ClassRetry},
		{529, "Overloaded", llm.ClassRetry},
		{302, "", llm.ClassFail},
		{307, "", llm.ClassFail},
	}
}

func (e exam) statuses(t *testing.T) {
	for _, test := range errorCases() {
		t.Run(fmt.Sprintf("%d %.40s", test.status, test.body), func(t *testing.T) {
			tr := e.start(t, Step{Status: test.status, Body: test.body, Header: http.Header{"Location": {"/elsewhere"}}})
			_, err := tr.ask(t.Context(), t, hello())
			expect(t, err, test.want)
			if got := refusal(t, err).Status; got != test.status {
				t.Errorf("status = %d, want %d", got, test.status)
			}
			if n := len(err.Error()); n > 4096 {
				t.Errorf("the error is %d bytes long", n)
			}
			if n := len(tr.Requests()); n != 1 {
				t.Errorf("%d requests were sent, want 1", n)
			}
		})
	}
}

// expect checks that err is an *llm.Error of a class.
func expect(t *testing.T, err error, want llm.Class) {
	t.Helper()
	if got := refusal(t, err); got.Class != want {
		t.Errorf("class of %q = %s, want %s", err, got.Class, want)
	}
}

// refusal is the *llm.Error that err is, or wraps.
func refusal(t *testing.T, err error) llm.Error {
	t.Helper()
	got, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("error = %v, want an *llm.Error", err)
	}
	return *got
}

func (e exam) streamErrors(t *testing.T) {
	tests := []struct {
		kind, message string
		want          llm.Class
	}{
		{"overloaded_error", "Overloaded", llm.ClassRetry},
		{"api_error", "Internal server error " + Key, llm.ClassRetry},
		{"server_error", "The server had an error", llm.ClassRetry},
		{"rate_limit_error", "Number of requests has exceeded your rate limit", llm.ClassRetry},
		{"rate_limit_error", "Request too large: larger than the limit", llm.ClassShrink},
		{"request_too_large", "Request exceeds the maximum size", llm.ClassShrink},
		{"invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", llm.ClassShrink},
		{"invalid_request_error", "messages: unknown role", llm.ClassFail},
		{"authentication_error", "invalid key", llm.ClassFail},
		{"permission_error", "not for you", llm.ClassFail},
	}
	for _, test := range tests {
		t.Run(test.kind+" "+test.message, func(t *testing.T) {
			for _, pieces := range [][]string{nil, {"Some ", "text"}} {
				tr := e.start(t, Step{Text: pieces, StreamError: StreamError{test.kind, test.message}})
				_, err := tr.ask(t.Context(), t, hello())
				expect(t, err, test.want)
			}
		})
	}
}

func (e exam) waits(t *testing.T) {
	tests := []struct {
		name     string
		header   http.Header
		min, max time.Duration
	}{
		{"none", nil, 0, 0},
		{"seconds", http.Header{"Retry-After": {"7"}}, 7 * time.Second, 7 * time.Second},
		{"part of a second", http.Header{"Retry-After": {"0.25"}}, time.Second / 4, time.Second / 4},
		{"milliseconds come first", http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"date", http.Header{"Retry-After": {time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)}}, 30 * time.Second, time.Minute},
		{"past date", http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:05 GMT"}}, 0, 0},
		{"nonsense", http.Header{"Retry-After": {"soon"}}, 0, 0},
		{"negative", http.Header{"Retry-After": {"-5"}}, 0, 0},
		{"for ever", http.Header{"Retry-After": {"1e300"}}, time.Minute, 24 * time.Hour},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := e.start(t, Step{Status: 429, Header: test.header})
			_, err := tr.ask(t.Context(), t, hello())
			expect(t, err, llm.ClassRetry)
			if wait := refusal(t, err).RetryAfter; wait < test.min || wait > test.max {
				t.Errorf("RetryAfter = %v, want %v to %v", wait, test.min, test.max)
			}
		})
	}
}

func (e exam) cancel(t *testing.T) {
	never := make(chan struct{})
	errEnough := errors.New("enough")
	for name, step := range map[string]Step{
		"before the answer": {Gate: never},
		"in mid-stream":     {Text: []string{"one", "two"}, Gate: never, GateAfter: 1},
	} {
		t.Run(name, func(t *testing.T) {
			tr := e.start(t, step)
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(IdleTimeout/10, func() { cancel(errEnough) })
			defer timer.Stop()
			_, err := tr.ask(ctx, t, hello())
			if !errors.Is(err, errEnough) {
				t.Errorf("error = %v, want the cause", err)
			}
			if _, ok := errors.AsType[*llm.Error](err); ok {
				t.Errorf("error = %#v, want no *llm.Error", err)
			}
		})
	}
}
