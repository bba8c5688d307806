package llmtest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/llm/llmtest"
)

func TestLimitsRefuseByTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := llmtest.New()
		model.Limits = llmtest.Limits{Window: 40_000, PerMinute: 30_000}
		for _, test := range []struct {
			name   string
			bytes  int
			after  time.Duration
			status int
			says   string
		}{
			{"beyond the window", 80_000, 0, 400, "maximum context length is 40000 tokens"},
			{"beyond the minute", 60_000, 0, 429, "Request too large"},
			{"fits", 45_000, 0, 200, `"prompt_tokens":25205`},
			{"too early", 45_000, 10 * time.Second, 429, "Please try again in"},
			{"in its time", 45_000, 31 * time.Second, 200, "prompt_tokens"},
		} {
			time.Sleep(test.after)
			body := chatBody(`{"role":"user","content":"` + strings.Repeat("x", test.bytes) + `"}`)
			w := httptest.NewRecorder()
			model.ServeHTTP(w, httptest.NewRequest(http.MethodPost, chatPath, strings.NewReader(body)))
			text, err := io.ReadAll(w.Body)
			if err != nil || w.Code != test.status || !strings.Contains(string(text), test.says) {
				t.Errorf("%s: %d %s, want %d and %q", test.name, w.Code, text, test.status, test.says)
			}
			if early := w.Header().Get("Retry-After"); (early != "") != (test.name == "too early") {
				t.Errorf("%s: Retry-After = %q", test.name, early)
			}
		}
		if model.Limited() != 1 {
			t.Errorf("%d requests came too early, want 1", model.Limited())
		}
	})
}
