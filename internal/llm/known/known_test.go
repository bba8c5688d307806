package known

import (
	"testing"

	"loadline/internal/llm"
)

func TestWindow(t *testing.T) {
	for _, test := range []struct{ provider, model string }{
		{"anthropic", "claude-sonnet-4-5-20250929"},
		{"openai", "gpt-4o"},
		{"openai", "grok-4.5"}, // of another service with the same protocol
	} {
		got, ok := Window(test.provider, test.model)
		if !ok || got.ContextTokens < 32_000 || got.ContextTokens > 10_000_000 || got.OutputTokens <= 0 {
			t.Errorf("Window(%q, %q) = %+v, %v", test.provider, test.model, got, ok)
		}
	}
	for _, model := range []string{"", "llama-of-my-own", "GPT-4O"} {
		if got, ok := Window("openai", model); ok || got != (llm.Window{}) {
			t.Errorf("Window(%q) = %+v, want nothing", model, got)
		}
	}
}
