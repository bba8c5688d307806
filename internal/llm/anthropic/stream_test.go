package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// events writes a stream of these data lines, as the service does.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var head struct{ Type string }
		_ = json.Unmarshal([]byte(d), &head) // some lines are broken on purpose
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, d)
	}
	return b.String()
}

const (
	messageStart = `{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}}}`
	messageStop  = `{"type":"message_stop"           }`
	textStart    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}      }`
	blockStop    = `{"type":"content_block_stop","index":0}`
)

func stopFor(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":7}  }`
}

// readAll reads a stream and checks that the deltas add up to the answer.
func readAll(t *testing.T, body io.Reader) (llm.Answer, error) {
	t.Helper()
	x := llm.NewExchange(t.Context(), time.Minute)
	defer x.Close()
	x.Receive(body)
	var got []llm.Block
	opaque := map[int]bool{}
	answer, err := read(x, func(d llm.Delta) {
		if d.Block == len(got) {
			got = append(got, llm.Block{Kind: d.Kind, Tool: d.Tool})
		}
		got[d.Block].Text += d.Text
		opaque[d.Block] = opaque[d.Block] || d.Opaque
	}, "")
	if err != nil {
		return answer, x.Error(err)
	}
	for i, b := range answer.Blocks {
		if opaque[i] != (b.Signature != "" || b.Redacted != "") {
			t.Errorf("block %d: a delta says opaque: %v, but the block is %+v", i, opaque[i], b)
		}
		b.Signature, b.Redacted = "", ""
		if i >= len(got) || got[i] != b {
			t.Errorf("the deltas are %+v, the answer is %+v", got, answer.Blocks)
		}
	}
	return answer, nil
}

func TestReadPutsAnswersTogether(t *testing.T) {
	usage := session.Usage{InputTokens: 60, CachedInputTokens: 30, OutputTokens: 7}
	tests := []struct {
		name string
		data []string
		want llm.Answer
	}{
		{"text", []string{messageStart, textStart, `{"type": "ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hé"}               }`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d\ude00 \"<\u0000"}}`,
			blockStop, stopFor("end_turn"), messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: usage, Blocks: []llm.Block{{Kind: session.KindAssistantMessage, Text: "Hé😀 \"<\uFFFD"}}}},
		{"thinking, redacted thinking, text, two calls", []string{messageStart,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"think"} }`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"=="}}`,
			blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"secret=="}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"Glob","input":{},"caller":{"type":"direct"}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": "}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"Read","input":{}}}`,
			`{"type":"content_block_stop","index":3}`,
			stopFor("tool_use"), messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: usage, Blocks: []llm.Block{
				{Kind: session.KindReasoning, Text: "I think", Signature: "abc=="},
				{Kind: session.KindReasoning, Redacted: "secret=="},
				{Kind: session.KindToolCall, Tool: "Glob", Text: `{"a": 1}`},
				{Kind: session.KindToolCall, Tool: "Read"},
			}}},
		{"a signature without text", []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc"}}`, blockStop,
			stopFor("end_turn"), messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: session.Usage{OutputTokens: 7}, Blocks: []llm.Block{{Kind: session.KindReasoning, Signature: "abc"}}}},
		{"blocks that come whole, and never end", []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"I think","signature":"abc"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hello"}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","name":"Glob","input":{"a":1}}}`,
			stopFor("tool_use"), messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: session.Usage{OutputTokens: 7}, Blocks: []llm.Block{
				{Kind: session.KindReasoning, Text: "I think", Signature: "abc"},
				{Kind: session.KindAssistantMessage, Text: "Hello"},
				{Kind: session.KindToolCall, Tool: "Glob", Text: `{"a":1}`},
			}}},
		{"arguments at once and in pieces", []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"Glob","input":{"a":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`,
			blockStop, stopFor("tool_use"), messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: session.Usage{OutputTokens: 7}, Blocks: []llm.Block{{Kind: session.KindToolCall, Tool: "Glob", Text: `{"a":1}`}}}},
		{"what nobody knows is skipped", []string{
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","name":"web_search","input":{"q":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, blockStop,
			`{"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":"orphan"}}`,
			`{"type":"content_block_stop","index":5}`, `{"type":"news","of":[1]}`, `{}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"text":"x"}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"of a text"}}`,
			blockStop, stopFor("end_turn"), messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: session.Usage{OutputTokens: 7}}},
		{"counts of the last event win, and none falls", []string{messageStart,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":31,"output_tokens":9}}`, messageStop},
			llm.Answer{Stop: llm.StopEnd, Usage: session.Usage{InputTokens: 61, CachedInputTokens: 31, OutputTokens: 9}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			whole := events(tt.data...)
			for how, body := range map[string]io.Reader{
				"whole":               strings.NewReader(whole),
				"one byte at a time":  iotest.OneByteReader(strings.NewReader(whole)),
				"with CR LF":          strings.NewReader(strings.ReplaceAll(whole, "\n", "\r\n")),
				"without event lines": strings.NewReader("data: " + strings.Join(tt.data, "\ndata:") + "\n\n"),
			} {
				got, err := readAll(t, body)
				if err != nil {
					t.Fatalf("%s: %v", how, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestReadEndsForEachReason(t *testing.T) {
	tests := []struct {
		reason string
		stop   llm.Stop
		class  llm.Class // of the error; empty: none
	}{
		{"end_turn", llm.StopEnd, ""},
		{"tool_use", llm.StopEnd, ""},
		{"stop_sequence", llm.StopEnd, ""},
		{"max_tokens", llm.StopLength, ""},
		{"pause_turn", llm.StopLength, ""},
		{"refusal", llm.StopRefusal, ""},
		{"a new one", llm.StopEnd, ""},
		{"model_context_window_exceeded", "", llm.ClassShrink},
		{"", "", llm.ClassRetry},
	}
	for _, tt := range tests {
		got, err := readAll(t, strings.NewReader(events(messageStart, textStart, stopFor(tt.reason), messageStop)))
		if got.Stop != tt.stop || classOf(err) != tt.class {
			t.Errorf("stop reason %q gives %q and the error %v, want %q and class %q", tt.reason, got.Stop, err, tt.stop, tt.class)
		}
	}
}

func TestStreamCutAnywhereIsBroken(t *testing.T) {
	whole := events(messageStart, textStart,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		blockStop, stopFor("end_turn"), messageStop)
	end := strings.LastIndex(whole, "}")
	for cut := range end + 1 {
		if _, err := readAll(t, strings.NewReader(whole[:cut])); classOf(err) != llm.ClassRetry {
			t.Errorf("cut after %q the error is %v, want class retry", whole[max(0, cut-30):cut], err)
		}
	}
	if _, err := readAll(t, strings.NewReader(whole[:end+1])); err != nil {
		t.Errorf("cut after the last event: %v", err)
	}
}

// classOf is the class of an error of Ask; empty when it has none.
func classOf(err error) llm.Class {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Class
	}
	return ""
}
