package anthropic

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const deltas = 10_000

func longStream(n int) string {
	var b strings.Builder
	b.WriteString("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}\n\n")
	b.WriteString("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	for range n {
		b.WriteString("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n")
	}
	b.WriteString("event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	return b.String()
}

func BenchmarkRead(b *testing.B) {
	s := longStream(deltas)
	b.ReportAllocs()
	for b.Loop() {
		x := llm.NewExchange(context.Background(), time.Minute)
		x.Receive(strings.NewReader(s))
		n := 0
		if _, err := read(x, func(llm.Delta) { n++ }, ""); err != nil || n != deltas {
			b.Fatal(err, n)
		}
		x.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/delta")
}

// FuzzEventDecode compares the quick way with the general decoder.
func FuzzEventDecode(f *testing.F) {
	for _, seed := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé"}               }`,
		`{"type":"content_block_delta","index":12,"delta":{"type":"thinking_delta","thinking":""}}`,
		`{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"a"}}`,
		`{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"a"} } `,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\n"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","type":"b"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}`,
		"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xff\x00\"}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		index, text, ok := quickText(line)
		if !ok {
			return
		}
		var want event
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("the quick way takes %q: %v", line, err)
		}
		if got := session.Clean(string(text)); index != want.Index || want.Type != "content_block_delta" || got != session.Clean(want.Delta.Text+want.Delta.Thinking) {
			t.Errorf("%q is read as %d %q, want %+v", line, index, got, want)
		}
	})
}
