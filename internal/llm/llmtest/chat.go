package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// chat is the face of OpenAI Chat Completions.
type chat struct{}

func (chat) tooLong(size, maximum int64, unit string) string {
	return fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d %s. However, your messages resulted in %d %s. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, maximum, unit, size, unit)
}

func (chat) errorBody(status int, message string) []byte {
	kind := "invalid_request_error"
	switch {
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case status >= 500:
		kind = "server_error"
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, quote(message), kind)
}

func (chat) piece(text string, facts answerFacts) []byte {
	return chatChunk(facts, `{"content":`+quote(text)+`}`, "null")
}

func (c chat) frames(step Step, facts answerFacts) (before, after []frame) {
	before = append(before, frame{bytes: chatChunk(facts, `{"role":"assistant","content":""}`, "null")})
	for _, text := range step.Reasoning {
		before = append(before, frame{chatChunk(facts, `{"reasoning_content":`+quote(text)+`}`, "null"), true})
	}
	for _, text := range step.Text {
		before = append(before, frame{c.piece(text, facts), true})
	}
	before = append(before, chatCalls(step, facts)...)
	if step.StreamError != (StreamError{}) {
		return before, []frame{{bytes: fmt.Appendf(nil, "data: {\"error\":{\"message\":%s,\"type\":%q,\"code\":null}}\n\n",
			quote(step.StreamError.Message), step.StreamError.Type)}}
	}
	after = []frame{
		{bytes: chatChunk(facts, "{}", strconv.Quote(chatFinish(step)))},
		{bytes: chatUsage(step.Usage, facts)},
		{bytes: []byte("data: [DONE]\n\n")},
	}
	return before, after
}

// chatCalls are the frames of the calls: the first of each call names it.
func chatCalls(step Step, facts answerFacts) []frame {
	queues := make([][]frame, len(step.Calls))
	for i, call := range step.Calls {
		for j, piece := range split(call.Arguments, call.Pieces) {
			head := ""
			if !call.NoIndex {
				head = `"index":` + strconv.Itoa(i) + `,`
			}
			function := `"arguments":` + quote(piece)
			if j == 0 {
				if !call.NoID {
					head += `"id":"` + callID(facts, i) + `",`
				}
				head += `"type":"function",`
				function = `"name":` + quote(call.Tool) + `,` + function
			}
			delta := `{"tool_calls":[{` + head + `"function":{` + function + `}}]}`
			queues[i] = append(queues[i], frame{chatChunk(facts, delta, "null"), true})
		}
	}
	return drain(queues, step.Interleave)
}

// drain puts the queues behind each other, or takes from each in turn.
func drain(queues [][]frame, interleave bool) []frame {
	var all []frame
	for more := true; more; {
		more = false
		for i, queue := range queues {
			n := len(queue)
			if interleave {
				n = min(n, 1)
			}
			all = append(all, queue[:n]...)
			queues[i] = queue[n:]
			more = more || len(queues[i]) > 0
		}
	}
	return all
}

func chatFinish(step Step) string {
	switch {
	case step.Stop == llm.StopLength:
		return "length"
	case step.Stop == llm.StopRefusal:
		return "content_filter"
	case len(step.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func chatChunk(facts answerFacts, delta, finish string) []byte {
	return fmt.Appendf(nil, "data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":%s,"+
		"\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}],\"usage\":null}\n\n", facts.n, quote(facts.model), delta, finish)
}

func chatUsage(u session.Usage, facts answerFacts) []byte {
	return fmt.Appendf(nil, "data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":%s,\"choices\":[],"+
		"\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n",
		facts.n, quote(facts.model), u.InputTokens, u.OutputTokens, u.InputTokens+u.OutputTokens, u.CachedInputTokens)
}

func callID(facts answerFacts, i int) string { return fmt.Sprintf("call_r%d_%d", facts.n, i) }

func quote(s string) string {
	quoted, _ := json.Marshal(s) // a string always encodes
	return string(quoted)
}
