package openai

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const typicalChunk = `data: {"id":"chatcmpl-0123456789abcdef0123456789abc","object":"chat.completion.chunk","created":1782321945,"model":"some-model-2026-08-07",` +
	`"service_tier":"default","system_fingerprint":null,"usage":null,"choices":[{"index":0,"delta":{"content":" hello"},"finish_reason":null}]}` + "\n\n"

// BenchmarkChunk is one token of a stream, from the body to the delta.
func BenchmarkChunk(b *testing.B) {
	b.ReportAllocs()
	x := llm.NewExchange(b.Context(), time.Minute)
	defer func() { x.Close() }()
	x.Receive(strings.NewReader(""))
	deltas := 0
	s := stream{assembly: llm.Assembly{Emit: func(llm.Delta) { deltas++ }}}
	for b.Loop() {
		data, err := x.Next()
		if errors.Is(err, io.EOF) {
			x.Close()
			x = llm.NewExchange(b.Context(), time.Minute)
			x.Receive(strings.NewReader(strings.Repeat(typicalChunk, 10_000)))
			s = stream{assembly: s.assembly}
			s.assembly = llm.Assembly{Emit: s.assembly.Emit}
			data, err = x.Next()
		}
		if err != nil {
			b.Fatal(err)
		}
		if err := s.take(x, data); err != nil {
			b.Fatal(err)
		}
	}
	if deltas == 0 {
		b.Fatal("no deltas")
	}
}

// BenchmarkEncode is the request of a history of 10,000 items.
func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	content := strings.Repeat("hello world\n", 30)
	var r llm.Request
	for n := int64(1); n <= 10_000; n += 4 {
		r.Items = append(r.Items,
			session.Item{N: n, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: content[:120]}},
			session.Item{N: n + 1, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Arguments: []byte(`{"path":"a/b/c"}`)}},
			session.Item{N: n + 2, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: n + 1, Tool: "Read", Summary: "read 1 file", Content: &content}},
			session.Item{N: n + 3, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: content[:120]}})
	}
	p := New(Config{Name: "some-model"})
	for b.Loop() {
		body, _, err := p.encode(r)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
