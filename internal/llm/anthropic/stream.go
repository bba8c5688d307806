package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// event is one event of the stream: what is needed of all its types in one struct.
// The SDK's own decoder takes many times as long.
type event struct {
	Type         string  `json:"type"`
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	ContentBlock content `json:"content_block"`
	Usage        usage   `json:"usage"`
	Message      struct {
		Usage usage `json:"usage"`
	} `json:"message"`
}

// delta is a piece of a block, or of the message itself.
type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

// content is a block at its start.
type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// usage counts tokens, from the start of the message. InputTokens is without those
// that were read from the cache or written to it.
type usage struct {
	InputTokens              int64 `json:"input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
}

// reading is an answer on its way.
type reading struct {
	answer      llm.Assembly
	blocks      map[int]*block // those that have not ended, by the service's index
	opaqueBytes int            // of signatures and redacted data
	stopReason  string
	usage       usage
}

// block is one block of the stream. It is opened in the answer with its first
// piece, so that none is empty.
type block struct {
	kind      session.ItemKind
	at        int // its index in the answer; -1 before its first piece
	signature []byte
	input     string // the arguments that came with its start
}

// read reads the answer up to its last event. Errors are for x.Error; the key does
// not occur in them.
func read(x *llm.Exchange, emit func(llm.Delta), key string) (llm.Answer, error) {
	r := reading{answer: llm.Assembly{Emit: emit}, blocks: map[int]*block{}}
	var e event // one for all: it is large, and the decoder makes it escape
	for !r.full() {
		if err := x.Context().Err(); err != nil {
			return llm.Answer{}, err
		}
		line, err := x.Next()
		if err != nil {
			return llm.Answer{}, err
		}
		if err := e.decode(line); err != nil {
			return llm.Answer{}, fmt.Errorf("read an event of the stream: %w", err)
		}
		switch e.Type {
		case "message_stop":
			awaitEnd(x)
			return r.finish()
		case "error":
			return llm.Answer{}, streamError(line, key)
		}
		r.take(&e)
	}
	return r.end(llm.StopLength), nil
}

func (e *event) decode(line []byte) error {
	*e = event{}
	if index, text, ok := quickText(line); ok {
		e.Type, e.Index, e.Delta.Text = "content_block_delta", index, string(text)
		return nil
	}
	return json.Unmarshal(line, e)
}

// awaitEnd reads what follows the last event: nothing, from a good server.
func awaitEnd(x *llm.Exchange) {
	x.Limit(endWait)
	for {
		if _, err := x.Next(); err != nil {
			return
		}
	}
}

// streamError reads an error that came in the stream, after status 200.
func streamError(line []byte, key string) *llm.Error {
	if key != "" {
		line = bytes.ReplaceAll(line, []byte(key), []byte("[secret]"))
	}
	return &llm.Error{Class: llm.Classify(0, string(line)), Err: errors.New(llm.Message(line))}
}

func (r *reading) full() bool { return r.answer.Full() || r.opaqueBytes >= llm.MaxAnswerBytes }

// take adds an event to the answer. Types of event, block and delta that it does
// not know it skips: new ones may come at any time, as the API's documentation says.
func (r *reading) take(e *event) {
	switch e.Type {
	case "message_start":
		r.usage.raise(e.Message.Usage)
	case "content_block_start":
		r.start(e.Index, &e.ContentBlock)
	case "content_block_delta":
		if b := r.blocks[e.Index]; b != nil {
			r.add(b, e.Delta.Text+e.Delta.Thinking+e.Delta.PartialJSON)
			r.sign(b, e.Delta.Signature)
		}
	case "content_block_stop":
		r.stop(e.Index)
	case "message_delta":
		r.usage.raise(e.Usage)
		if e.Delta.StopReason != "" {
			r.stopReason = e.Delta.StopReason
		}
	}
}

func (r *reading) start(index int, c *content) {
	b := &block{at: -1}
	switch c.Type {
	case "text":
		b.kind = session.KindAssistantMessage
	case "thinking", "redacted_thinking":
		b.kind = session.KindReasoning
	case "tool_use":
		b.kind, b.at = session.KindToolCall, r.answer.Open(session.KindToolCall, c.Name)
		if input := string(c.Input); input != "{}" && input != "null" {
			b.input = input // some servers send it at once; then no piece follows
		}
	default:
		return
	}
	r.blocks[index] = b
	r.add(b, c.Text+c.Thinking)
	r.sign(b, c.Signature)
	r.redact(b, c.Data)
}

func (r *reading) stop(index int) {
	b := r.blocks[index]
	if b == nil {
		return
	}
	r.add(b, b.input)
	if len(b.signature) > 0 {
		r.answer.Block(b.at).Signature = string(b.signature)
	}
	delete(r.blocks, index)
}

func (r *reading) add(b *block, text string) {
	if text == "" {
		return
	}
	b.input = ""
	r.answer.Add(r.open(b), text)
}

func (r *reading) sign(b *block, signature string) {
	if signature != "" && b.kind == session.KindReasoning {
		b.signature = append(b.signature, signature...)
		r.opaque(b, len(signature))
	}
}

func (r *reading) redact(b *block, data string) {
	if data != "" && b.kind == session.KindReasoning {
		r.answer.Block(r.open(b)).Redacted = data
		r.opaque(b, len(data))
	}
}

func (r *reading) opaque(b *block, dataBytes int) {
	r.opaqueBytes += dataBytes
	r.answer.Emit(llm.Delta{Block: r.open(b), Kind: b.kind, Opaque: true})
}

// open returns the block's index in the answer.
func (r *reading) open(b *block) int {
	if b.at < 0 {
		b.at = r.answer.Open(b.kind, "")
	}
	return b.at
}

// finish ends the answer for the reason that the service gave. What it calls
// pause_turn is an answer that it cut, so that it can be asked to go on.
func (r *reading) finish() (llm.Answer, error) {
	switch r.stopReason {
	case "":
		return llm.Answer{}, errors.New("the stream ended without a stop reason")
	case "model_context_window_exceeded":
		return llm.Answer{}, &llm.Error{Class: llm.ClassShrink, Err: errors.New("the request and its answer do not fit the model's context window")}
	case "max_tokens", "pause_turn":
		return r.end(llm.StopLength), nil
	case "refusal":
		return r.end(llm.StopRefusal), nil
	}
	return r.end(llm.StopEnd), nil
}

func (r *reading) end(why llm.Stop) llm.Answer {
	for _, index := range slices.Sorted(maps.Keys(r.blocks)) {
		r.stop(index)
	}
	return r.answer.Answer(why, r.usage.total())
}

// raise takes newer counts. They never fall; a server that leaves one out of a
// later event means no change.
func (u *usage) raise(newer usage) {
	u.InputTokens = max(u.InputTokens, newer.InputTokens)
	u.CacheCreationInputTokens = max(u.CacheCreationInputTokens, newer.CacheCreationInputTokens)
	u.CacheReadInputTokens = max(u.CacheReadInputTokens, newer.CacheReadInputTokens)
	u.OutputTokens = max(u.OutputTokens, newer.OutputTokens)
}

func (u *usage) total() session.Usage {
	return session.Usage{
		InputTokens:       u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens,
		CachedInputTokens: u.CacheReadInputTokens,
		OutputTokens:      u.OutputTokens,
	}
}
