package main

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// tokenEvery is how fast the slow model answers.
const tokenEvery = 10 * time.Millisecond

// slowModel is a model for extraction. Its answer comes token by token until it is
// released, and is then an empty submission.
type slowModel struct {
	asked   chan struct{} // receives when an answer has begun
	release chan struct{} // ends it
}

// ServeHTTP speaks OpenAI's streaming chat completions.
func (m *slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the client is gone
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(call, finish string) {
		_, _ = fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[%s]},"finish_reason":%s}]}`+"\n\n", call, finish)
		_ = http.NewResponseController(w).Flush() // both fail when the client is gone
	}
	send(`{"index":0,"id":"1","type":"function","function":{"name":"SubmitRecords","arguments":"{\"records\":["}}`, "null")
	m.asked <- struct{}{}
	m.talk(r, func() { send(`{"index":0,"function":{"arguments":" "}}`, "null") })
	send(`{"index":0,"function":{"arguments":"]}"}}`, "null")
	send("", `"tool_calls"`)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// talk sends tokens until the model is released or the client is gone.
func (m *slowModel) talk(r *http.Request, token func()) {
	ticker := time.NewTicker(tokenEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			token()
		case <-m.release:
			return
		case <-r.Context().Done():
			return
		}
	}
}
