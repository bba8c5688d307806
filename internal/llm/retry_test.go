package llm

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"loadline/internal/session"
)

func TestBackoffGrowsAndKeepsItsBounds(t *testing.T) {
	tests := []struct {
		name            string
		attempt         int
		asked, maxWait  time.Duration
		atLeast, atMost time.Duration
	}{
		{"first", 1, 0, time.Minute, 250 * time.Millisecond, 750 * time.Millisecond},
		{"third", 3, 0, time.Minute, time.Second, 3 * time.Second},
		{"hundredth", 100, 0, time.Minute, 30 * time.Second, time.Minute},
		{"zero counts as first", 0, 0, time.Minute, 250 * time.Millisecond, 750 * time.Millisecond},
		{"asked for", 1, 7 * time.Second, 30 * time.Second, 7 * time.Second, 7700 * time.Millisecond},
		{"asked for less than usual", 9, time.Second, 30 * time.Second, time.Second, 1100 * time.Millisecond},
		{"asked for more than allowed", 1, time.Hour, 30 * time.Second, 30 * time.Second, 30 * time.Second},
		{"short bound", 5, 0, 10 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
		{"no wait allowed", 5, time.Second, 0, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range 200 {
				if got := Backoff(test.attempt, test.asked, test.maxWait); got < test.atLeast || got > test.atMost {
					t.Fatalf("Backoff(%d, %v, %v) = %v, want %v to %v", test.attempt, test.asked, test.maxWait, got, test.atLeast, test.atMost)
				}
			}
		})
	}
}

func TestBackoffIsJittered(t *testing.T) {
	for _, asked := range []time.Duration{0, time.Second} {
		seen := map[time.Duration]bool{}
		for range 50 {
			seen[Backoff(1, asked, time.Minute)] = true
		}
		if len(seen) < 25 {
			t.Errorf("asked for %v, 50 waits have %d values", asked, len(seen))
		}
	}
}

func TestRetryAfterTakesAnyHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{"Retry-After": {rapid.String().Draw(t, "seconds")}, "Retry-After-Ms": {rapid.String().Draw(t, "ms")}}
		if wait := retryAfter(h); wait < 0 || wait > maxRetryAfter {
			t.Fatalf("retryAfter = %v", wait)
		}
	})
	for text, want := range map[string]time.Duration{"NaN": 0, "+Inf": maxRetryAfter, "-Inf": 0, "1e300": maxRetryAfter, "0": 0, "": 0} {
		if got := retryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestMessageFindsTheWords(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"OpenAI and Anthropic", `{"type":"error","error":{"type":"x","message":"no\nway"}}`, "no way"},
		{"plain error", `{"error":"model not found"}`, "model not found"},
		{"plain message", `{"message":"bad","code":4}`, "bad"},
		{"HTML", "<html>\n <b>Bad</b> Gateway", "<html> <b>Bad</b> Gateway"},
		{"foreign JSON", `{"detail":"nope"}`, `{"detail":"nope"}`},
		{"odd types", `{"error":{"message":5}}`, `{"error":{"message":5}}`},
		{"bad bytes", "a\xffb\x00c", "a\uFFFDb\uFFFDc"},
		{"long", strings.Repeat("日", 1000), strings.Repeat("日", 666) + " …"},
		{"empty", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Message([]byte(test.body)); got != test.want {
				t.Errorf("Message(%q) = %q, want %q", test.body, got, test.want)
			}
		})
	}
}

func TestStatusErrorAlwaysSaysSomething(t *testing.T) {
	for _, status := range []int{300, 304, 400, 418, 499, 500, 599, 999} {
		err := StatusError(status, http.Header{}, nil)
		if err.Error() == "" || err.Err == nil || err.Class == "" {
			t.Errorf("StatusError(%d) = %#v", status, err)
		}
	}
}

func TestResultText(t *testing.T) {
	tests := []struct {
		name    string
		content *string
		want    string
	}{
		{"content", session.Text("a\n"), "read 1 file\n\na\n"},
		{"absent", nil, "read 1 file"},
		{"empty", session.Text(""), "read 1 file"},
		{"blank", session.Text(" \n\t\u2003"), "read 1 file"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := ResultText(session.ToolResult{Summary: "read 1 file", Content: test.content}); got != test.want {
				t.Errorf("ResultText = %q, want %q", got, test.want)
			}
		})
	}
	if got := CallID(42); got != "call_42" {
		t.Errorf("CallID(42) = %q", got)
	}
}
