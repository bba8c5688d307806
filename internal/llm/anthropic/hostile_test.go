package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/llm"
)

func TestErrorInStream(t *testing.T) {
	tests := []struct {
		kind, message string
		class         llm.Class
	}{
		{"overloaded_error", "Overloaded", llm.ClassRetry},
		{"api_error", "Internal server error", llm.ClassRetry},
		{"timeout_error", "Timed out", llm.ClassRetry},
		{"rate_limit_error", "This would exceed the rate limit for your organization", llm.ClassRetry},
		{"rate_limit_error", "The request is larger than the tokens per minute that you are allowed", llm.ClassShrink},
		{"invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", llm.ClassShrink},
		{"invalid_request_error", "messages.0: text content blocks must be non-empty", llm.ClassFail},
		{"request_too_large", "Request exceeds the maximum size", llm.ClassShrink},
		{"authentication_error", "invalid x-api-key", llm.ClassFail},
		{"permission_error", "not allowed", llm.ClassFail},
		{"not_found_error", "model: m", llm.ClassFail},
		{"billing_error", "Your credit balance is too low", llm.ClassFail},
	}
	for _, tt := range tests {
		line := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, tt.kind, tt.message)
		for form, body := range map[string]string{"an event": events(messageStart, textStart, line), "a bare line": line} {
			if _, err := readAll(t, strings.NewReader(body)); classOf(err) != tt.class || err.Error() != tt.message {
				t.Errorf("%s %s in %s: the error is %v, class %q, want %q", tt.kind, tt.message, form, err, classOf(err), tt.class)
			}
		}
	}
	if err := streamError([]byte(`{"error":{"message":"no key sk-1 here"}}`), "sk-1"); strings.Contains(err.Error(), "sk-1") {
		t.Errorf("the error %q shows the key", err)
	}
}

func TestReadIsBounded(t *testing.T) {
	const mega = 1 << 20
	text := `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("あ", mega/3) + `"}}`
	signature := `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + strings.Repeat("x", mega) + `"}}`
	tests := []struct{ name, start, again string }{
		{"text", textStart, text},
		{"a signature", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, signature},
		{"calls", messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"` + strings.Repeat("x", mega/8) + `","input":{}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(t, io.MultiReader(strings.NewReader(events(tt.start)), &endless{text: events(tt.again)}))
			if err != nil || got.Stop != llm.StopLength {
				t.Fatalf("an endless answer gives %q and %v, want length and no error", got.Stop, err)
			}
			total := 0
			for _, b := range got.Blocks {
				total += len(b.Text) + len(b.Tool) + len(b.Signature)
			}
			if total < llm.MaxAnswerBytes-2*mega || total > llm.MaxAnswerBytes+2*mega {
				t.Errorf("it ends after %d bytes, want about %d", total, llm.MaxAnswerBytes)
			}
		})
	}
	if _, err := readAll(t, io.MultiReader(strings.NewReader("data: "), &endless{text: strings.Repeat("x", mega)})); classOf(err) != llm.ClassRetry {
		t.Errorf("an endless line gives %v, want class retry", err)
	}
}

// endless repeats its text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestReadStopsWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the user has left")
		ctx, cancel := context.WithCancelCause(t.Context())
		x := llm.NewExchange(ctx, time.Minute)
		defer x.Close()
		x.Receive(io.MultiReader(strings.NewReader(events(textStart)), &endless{text: events(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`)}))
		deltas := 0
		_, err := read(x, func(llm.Delta) {
			if deltas++; deltas == 3 {
				cancel(cause)
			}
		}, "")
		if err := x.Error(err); !errors.Is(err, cause) || deltas != 3 {
			t.Errorf("after %d deltas the error is %v, want 3 and %v", deltas, err, cause)
		}
	})
}
