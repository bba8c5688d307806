package llmtest

import (
	"fmt"
	"net/http"
	"strconv"

	"loadline/internal/llm"
)

// messages is the face of Anthropic Messages.
type messages struct{}

func (messages) tooLong(size, maximum int64, unit string) string {
	return fmt.Sprintf("prompt is too long: %d %s > %d maximum", size, unit, maximum)
}

func (messages) errorBody(status int, message string) []byte {
	kind := "api_error"
	switch status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusUnauthorized:
		kind = "authentication_error"
	case http.StatusForbidden:
		kind = "permission_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	}
	return fmt.Appendf(nil, `{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_1"}`, kind, quote(message))
}

// piece belongs to the only block of an endless answer.
func (messages) piece(text string, _ answerFacts) []byte {
	return blockDelta(0, `{"type":"text_delta","text":`+quote(text)+`}`)
}

func (messages) frames(step Step, facts answerFacts) (before, after []frame) {
	u := step.Usage
	before = append(before, frame{bytes: event("message_start", fmt.Sprintf(
		`"message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,`+
			`"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":1}}`,
		facts.n, quote(facts.model), u.InputTokens-u.CachedInputTokens, u.CachedInputTokens))})
	if step.Endless {
		return append(before, blockStart(0, `{"type":"text","text":""}`)), nil
	}
	before = append(before, messageBlocks(step, facts)...)
	if step.StreamError != (StreamError{}) {
		return before, []frame{{bytes: event("error", fmt.Sprintf(`"error":{"type":%q,"message":%s}`,
			step.StreamError.Type, quote(step.StreamError.Message)))}}
	}
	after = []frame{
		{bytes: event("message_delta", fmt.Sprintf(
			`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, messageStop(step), u.OutputTokens))},
		{bytes: []byte("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")},
	}
	return before, after
}

// messageBlocks are the frames of the blocks, one after the other.
func messageBlocks(step Step, facts answerFacts) []frame {
	var all []frame
	index := 0
	block := func(start string, deltas ...string) {
		all = append(all, blockStart(index, start))
		for _, delta := range deltas {
			all = append(all, frame{blockDelta(index, delta), true})
		}
		all = append(all, frame{bytes: event("content_block_stop", `"index":`+strconv.Itoa(index))})
		index++
	}
	if step.Redacted != "" {
		block(`{"type":"redacted_thinking","data":` + quote(step.Redacted) + `}`)
	}
	if len(step.Reasoning) > 0 || step.Signature != "" {
		deltas := deltasOf("thinking_delta", "thinking", step.Reasoning)
		deltas = append(deltas, deltasOf("signature_delta", "signature", []string{step.Signature})...)
		block(`{"type":"thinking","thinking":"","signature":""}`, deltas...)
	}
	if len(step.Text) > 0 {
		block(`{"type":"text","text":""}`, deltasOf("text_delta", "text", step.Text)...)
	}
	for i, call := range step.Calls {
		pieces := split(call.Arguments, call.Pieces)
		if call.Arguments != "" {
			pieces = append([]string{""}, pieces...)
		}
		block(`{"type":"tool_use","id":"`+callID(facts, i)+`","name":`+quote(call.Tool)+`,"input":{}}`,
			deltasOf("input_json_delta", "partial_json", pieces)...)
	}
	return all
}

func deltasOf(kind, field string, texts []string) []string {
	deltas := make([]string, len(texts))
	for i, text := range texts {
		deltas[i] = fmt.Sprintf(`{"type":%q,%q:%s}`, kind, field, quote(text))
	}
	return deltas
}

func messageStop(step Step) string {
	switch {
	case step.Stop == llm.StopLength:
		return "max_tokens"
	case step.Stop == llm.StopRefusal:
		return "refusal"
	case len(step.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func blockStart(index int, block string) frame {
	return frame{bytes: event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, index, block))}
}

func blockDelta(index int, delta string) []byte {
	return event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, index, delta))
}

func event(kind, fields string) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, fields)
}
