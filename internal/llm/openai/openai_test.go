package openai_test

import (
	"testing"

	"go.uber.org/goleak"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExam(t *testing.T) {
	llmtest.Exam(t, func(baseURL string) llm.Provider {
		return openai.New(openai.Config{BaseURL: baseURL + "/v1", Name: "some-model", Key: llmtest.Key, IdleTimeout: llmtest.IdleTimeout})
	})
}
