package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"loadline/internal/session"
)

// maxMessageBytes bounds what of a provider's words goes into an error.
const maxMessageBytes = 2000

// StatusError makes an Error of an answer that is no success, from its status,
// its header and what was read of its body.
func StatusError(status int, h http.Header, body []byte) *Error {
	if status < 400 {
		return &Error{Class: ClassFail, Status: status, Err: fmt.Errorf(
			"the server answers with a redirect to %q: set base_url to where the service really is", h.Get("Location"))}
	}
	message := Message(body)
	if message == "" {
		message = http.StatusText(status)
	}
	return &Error{
		Class:      Classify(status, string(body)),
		Status:     status,
		RetryAfter: retryAfter(h),
		Err:        errors.New(message),
	}
}

// Classify says what to do about an error, from the status of the answer and the
// text of its body: type, code and message, in any form. Status is 0 for an error
// that came inside a stream.
func Classify(status int, text string) Class {
	text = strings.ToLower(text)
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return ClassShrink
	case status == http.StatusTooManyRequests:
		return classifyLimit(text)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return ClassFail
	case containsAny(text, tooLongWords()):
		return ClassShrink
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return ClassRetry
	case status >= 400:
		return ClassFail
	case containsAny(text, []string{"authentication", "permission", "not_found", "invalid_request", "invalid_api_key", "billing"}):
		return ClassFail
	}
	return classifyLimit(text)
}

// classifyLimit judges a limit of requests or tokens in a time. Waiting helps,
// unless the request alone is above it, or the limit is money.
func classifyLimit(text string) Class {
	switch {
	case containsAny(text, []string{"request too large", "request_too_large", "larger than", "must be reduced", "reduce your message size"}):
		return ClassShrink
	case containsAny(text, []string{"insufficient_quota", "current quota", "credit balance", "spend_limit"}):
		return ClassFail
	}
	return ClassRetry
}

// tooLongWords are how services say that a request is above the model's window, or
// above what they take: OpenAI, vLLM, llama.cpp, Anthropic and those like them.
func tooLongWords() []string {
	return []string{
		"context_length", "context length", "context window", "context size", "context_window", "too many tokens",
		"is too long", "reduce the length", "reduce your prompt", "request too large", "request_too_large",
	}
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// Message finds the words for a person in the body of an error answer: its
// error.message, error or message; else the text itself. It is clean and short.
func Message(body []byte) string {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	var inner struct {
		Message string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &answer) == nil {
		var plain string
		switch {
		case json.Unmarshal(answer.Error, &inner) == nil && inner.Message != "":
			text = inner.Message
		case json.Unmarshal(answer.Error, &plain) == nil && plain != "":
			text = plain
		case answer.Message != "":
			text = answer.Message
		}
	}
	text = session.Clean(strings.Join(strings.Fields(text), " "))
	if len(text) > maxMessageBytes {
		text = strings.ToValidUTF8(text[:maxMessageBytes], "") + " …"
	}
	return text
}
