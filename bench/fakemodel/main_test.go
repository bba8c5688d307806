package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
)

func TestAnswerIsAValidStreamOfTheTokensAskedFor(t *testing.T) {
	m, err := newModel([]string{"1", "20", "2000"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(m)
	defer server.Close()
	config := openai.DefaultConfig("key")
	config.BaseURL = server.URL
	client := openai.NewClientWithConfig(config)

	for name, tokens := range map[string]int{"fake-1": 1, "fake-20": 20, "fake-2000": 2000} {
		t.Run(name, func(t *testing.T) {
			s, err := client.CreateChatCompletionStream(t.Context(), openai.ChatCompletionRequest{
				Model: name, Messages: []openai.ChatCompletionMessage{{Role: "user", Content: strings.Repeat("long ", 1e5)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			text, finish, used := readAll(t, s)
			if want := strings.Repeat(token, tokens); text != want {
				t.Errorf("text has %d bytes, want %d", len(text), len(want))
			}
			if finish != openai.FinishReasonStop || used != tokens {
				t.Errorf("finish reason %q and %d tokens used, want stop and %d", finish, used, tokens)
			}
		})
	}
}

func readAll(t *testing.T, s *openai.ChatCompletionStream) (text string, finish openai.FinishReason, used int) {
	t.Helper()
	var b strings.Builder
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return b.String(), finish, used
		}
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Usage != nil {
			used = chunk.Usage.CompletionTokens
		}
		for _, choice := range chunk.Choices {
			b.WriteString(choice.Delta.Content)
			finish = choice.FinishReason
		}
	}
}

func TestUnknownModelIsRefused(t *testing.T) {
	m, err := newModel([]string{"20"})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"model":"fake-21"}`, `{"model":`, `{`, `{"pad":"` + strings.Repeat("x", headBytes) + `","model":"fake-20"}`} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if w.Code != http.StatusNotFound {
			t.Errorf("%.40s: status %d, want 404", body, w.Code)
		}
	}
}

func TestLengthsAreBounded(t *testing.T) {
	for _, bad := range []string{"", "0", "-1", "x", "1000001"} {
		if _, err := newModel([]string{bad}); err == nil {
			t.Errorf("newModel(%q) is accepted", bad)
		}
	}
}
