package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// stream puts the chunks of one answer together.
type stream struct {
	assembly llm.Assembly
	calls    []call
	stop     llm.Stop // empty until the model has finished
	refused  bool
	usage    session.Usage
	hasUsage bool
	endWait  time.Duration // how long the end is waited for; 0 before the finish
	key      string
}

// call is a call that is still being written.
type call struct {
	index   int64 // as the service counts; -1 when it does not
	id      string
	block   int    // -1 until its name is known
	pending string // arguments that came before the name
}

// deepBytes is the length from which on a chunk is checked by the slower check,
// whose depth is bounded.
const deepBytes = 64 << 10

// take reads the data of one event. After the finish it only waits for the usage
// and the end, and makes x give up soon.
func (s *stream) take(x *llm.Exchange, data []byte) error {
	if string(data) == "[DONE]" {
		if s.stop == "" {
			return errors.New("the stream is done, but its answer has no finish_reason")
		}
		s.endWithin(x, drainWait)
		return nil
	}
	if len(data) > deepBytes && !json.Valid(data) || !gjson.ValidBytes(data) {
		return errors.New("a chunk of the stream is no JSON")
	}
	finished := s.stop != ""
	var failure error
	gjson.ParseBytes(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "choices":
			if !finished {
				failure = s.choices(value)
			}
		case "usage":
			s.takeUsage(value)
		case "x_groq":
			s.takeUsage(value.Get("usage"))
		case "error":
			failure = s.failure(value)
		}
		return failure == nil
	})
	switch {
	case failure != nil:
		return failure
	case s.stop != "" && s.hasUsage:
		s.endWithin(x, drainWait)
	case s.stop != "":
		s.endWithin(x, usageWait)
	}
	return nil
}

// endWithin makes x give up after wait, unless it is about to already.
func (s *stream) endWithin(x *llm.Exchange, wait time.Duration) {
	if s.endWait == 0 || wait < s.endWait {
		s.endWait = wait
		x.Limit(wait)
	}
}

// choices takes the first choice; no other was asked for.
func (s *stream) choices(choices gjson.Result) error {
	var finish string
	var failure error
	choices.ForEach(func(_, choice gjson.Result) bool {
		if choice.Get("index").Int() != 0 {
			return true
		}
		choice.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "delta":
				s.delta(value)
			case "finish_reason":
				finish = value.Str
			case "error":
				failure = s.failure(value)
			}
			return true
		})
		return false
	})
	if failure != nil || finish == "" {
		return failure
	}
	return s.finish(finish)
}

func (s *stream) delta(delta gjson.Result) {
	var reasoning, reasoningContent string
	delta.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "content":
			s.text(session.KindAssistantMessage, value.Str)
		case "refusal":
			s.refused = s.refused || value.Str != ""
			s.text(session.KindAssistantMessage, value.Str)
		case fieldReasoningContent:
			reasoningContent = value.Str
		case "reasoning":
			reasoning = value.Str
		case "tool_calls":
			value.ForEach(func(_, part gjson.Result) bool {
				s.callPart(part)
				return true
			})
		}
		return true
	})
	if reasoningContent != "" { // some services send the same under both names
		s.text(session.KindReasoning, reasoningContent)
	} else if reasoning != "" {
		s.text(session.KindReasoning, reasoning)
		last, _ := s.assembly.Last(session.KindReasoning)
		s.assembly.Block(last).Signature = fieldReasoning
	}
}

// text goes on with the last block, or begins a new one of this kind.
func (s *stream) text(kind session.ItemKind, text string) {
	if text == "" {
		return
	}
	block, ok := s.assembly.Last(kind)
	if !ok {
		block = s.assembly.Open(kind, "")
	}
	s.assembly.Add(block, text)
}

// callPart takes a piece of a call. Most services number their calls. Some leave
// out the number, the id or both, and some give each the number 0: then a name
// with a new id, or with none and without a number, begins a call.
func (s *stream) callPart(part gjson.Result) {
	id, tool := part.Get("id").Str, part.Get("function.name").Str
	arguments := part.Get("function.arguments")
	text := arguments.Str
	if arguments.IsObject() {
		text = arguments.Raw
	}
	index := int64(-1)
	if n := part.Get("index"); n.Type == gjson.Number {
		index = n.Int()
	}
	c := s.find(index, id, tool)
	if c.id == "" {
		c.id = id
	}
	if c.block < 0 && tool == "" {
		c.pending += text
		return
	}
	if c.block < 0 {
		c.block = s.assembly.Open(session.KindToolCall, tool)
		text, c.pending = c.pending+text, ""
	}
	s.assembly.Add(c.block, text)
}

func (s *stream) find(index int64, id, tool string) *call {
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := &s.calls[i]
		another := tool != "" && c.block >= 0 && (id != "" && c.id != id || id == "" && index < 0)
		if !another && c.index == index && (index >= 0 || id == "" || c.id == id) {
			return c
		}
	}
	s.calls = append(s.calls, call{index: index, id: id, block: -1})
	return &s.calls[len(s.calls)-1]
}

func (s *stream) finish(reason string) error {
	switch reason {
	case "length", "max_tokens", "model_length":
		s.stop = llm.StopLength
	case "content_filter", "refusal":
		s.stop = llm.StopRefusal
	case "error", "abort", "insufficient_system_resource":
		return fmt.Errorf("the service gave up its answer: finish_reason is %q", reason)
	default:
		s.stop = llm.StopEnd
	}
	if s.refused {
		s.stop = llm.StopRefusal
	}
	for i := range s.calls {
		if c := &s.calls[i]; c.block < 0 {
			c.block = s.assembly.Open(session.KindToolCall, "")
			s.assembly.Add(c.block, c.pending)
		}
	}
	return nil
}

func (s *stream) takeUsage(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	cached := usage.Get("prompt_tokens_details.cached_tokens").Int()
	if cached == 0 {
		cached = usage.Get("prompt_cache_hit_tokens").Int() // DeepSeek
	}
	s.hasUsage = true
	s.usage = session.Usage{
		InputTokens:       max(0, usage.Get("prompt_tokens").Int()),
		CachedInputTokens: max(0, cached),
		OutputTokens:      max(0, usage.Get("completion_tokens").Int()),
	}
}

// failure makes the error of one that came inside the stream; null is none.
func (s *stream) failure(value gjson.Result) error {
	if value.Type == gjson.Null {
		return nil
	}
	raw := []byte(value.Raw)
	if s.key != "" {
		raw = bytes.ReplaceAll(raw, []byte(s.key), []byte("[secret]"))
	}
	status := 0
	if code := value.Get("code"); code.Type == gjson.Number && code.Int() >= 400 && code.Int() < 600 {
		status = int(code.Int())
	}
	message := llm.Message(append(append([]byte(`{"error":`), raw...), '}'))
	return &llm.Error{Class: llm.Classify(status, string(raw)), Err: errors.New(message)}
}
