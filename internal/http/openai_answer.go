package http

import (
	"net/http"
	"strings"

	"loadline/internal/session"
)

// The answer of a turn in the form of Chat Completions. It is the text of all messages
// of the model in the turn, parted by blank lines; streamed or whole, it is the same.
//
//	Loadline                    Chat Completions, streamed
//	turn.queued                 chunk with the role, and loadline {session_id, turn_id}
//	item.delta of a message     delta.content; the first of a further message begins with a blank line
//	item.delta of reasoning     delta.reasoning_content, in the same way
//	item, of a message or       what deltas have not brought
//	reasoning
//	calls, results, progress    nothing: as tool_calls the client would try to run them
//	step.restarted              nothing; what was said of the step stays, as the protocol cannot take text
//	                            back, and is said again after a blank line. A whole answer has it once
//	turn.completed              chunk with finish_reason: length when the output limit cut the last message,
//	                            else stop; then, if the client wants it, a chunk with the usage
//	turn.failed, .cancelled,    {"error": {code, message, type}}
//	.interrupted
//	a stream that breaks off    {"error": {"code": "stream_broken", …}}
//	the end, always             [DONE]

// chatHead is what all parts of one answer have in common.
type chatHead struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // seconds since 1970
	Model   string `json:"model"`
	// Loadline names what was made. In a stream only the first chunk has it.
	Loadline *chatOrigin `json:"loadline,omitempty"`
}

type chatOrigin struct {
	SessionID session.ID     `json:"session_id"`
	TurnID    session.TurnID `json:"turn_id"`
}

func newChatHead(chat chatRequest, turn session.Turn, object string) chatHead {
	return chatHead{
		ID: string(turn.ID), Object: object, Created: int64(turn.CreatedAt) / 1e6, Model: chat.project,
		Loadline: &chatOrigin{turn.SessionID, turn.ID},
	}
}

type chatCompletion struct {
	chatHead
	Choices []chatChoice `json:"choices"`
	Usage   chatUsage    `json:"usage"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

type chatMessage struct {
	Role             string `json:"role"`
	Content          string `json:"content"`
	ReasoningContent string `json:"reasoning_content,omitempty"`
}

type chatChunk struct {
	chatHead
	Choices []chunkChoice `json:"choices"`
	Usage   *chatUsage    `json:"usage,omitempty"`
}

type chunkChoice struct {
	Index        int       `json:"index"`
	Delta        chatDelta `json:"delta"`
	FinishReason *string   `json:"finish_reason"` // null until the last one, as clients expect it
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type chatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func newChatUsage(u session.Usage) chatUsage {
	usage := chatUsage{PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens}
	usage.PromptDetails.CachedTokens = u.CachedInputTokens
	return usage
}

// chatEnd is how a turn has ended.
type chatEnd struct {
	last *session.Turn // nil until its terminal event
	cut  bool          // the last message was cut by the output limit
}

func (e *chatEnd) add(ev *session.Event) {
	if ev.Type.Terminal() {
		e.last = ev.Turn
	}
	if ev.Item != nil && ev.Item.AssistantMessage != nil {
		e.cut = ev.Item.AssistantMessage.Incomplete
	}
}

func (e *chatEnd) finishReason() string {
	if e.cut {
		return "length"
	}
	return "stop"
}

// failure is why there is no answer, and the status that says so; nil when there is one.
func (e *chatEnd) failure() (*openAIError, int) {
	if e.last == nil {
		return &openAIError{Message: streamBrokenDetail, Type: "server_error", Code: streamBroken}, http.StatusServiceUnavailable
	}
	if e.last.State == session.TurnCompleted {
		return nil, http.StatusOK
	}
	status := http.StatusInternalServerError
	switch code := e.last.Error.Code; {
	case e.last.State == session.TurnCancelled:
		status = http.StatusConflict
	case code == session.CodeProviderError || code == session.CodeEmptyResponse:
		status = http.StatusBadGateway
	case code == session.CodeRequestTooLarge || code == session.CodeInputTooLarge:
		status = http.StatusRequestEntityTooLarge
	case code == session.CodeStorage || e.last.State == session.TurnInterrupted:
		status = http.StatusServiceUnavailable
	}
	return &openAIError{Message: e.last.Error.Detail, Type: openAIErrorType(status), Code: string(e.last.Error.Code)}, status
}

// chatText gathers a whole answer.
type chatText struct {
	chatEnd
	content, reasoning []string
}

func (t *chatText) add(ev *session.Event) {
	t.chatEnd.add(ev)
	switch {
	case ev.Item == nil:
	case ev.Item.AssistantMessage != nil:
		t.content = append(t.content, ev.Item.AssistantMessage.Text)
	case ev.Item.Reasoning != nil && ev.Item.Reasoning.Text != "":
		t.reasoning = append(t.reasoning, ev.Item.Reasoning.Text)
	}
}

func (t *chatText) completion(head chatHead) chatCompletion {
	message := chatMessage{Role: "assistant", Content: strings.Join(t.content, "\n\n"), ReasoningContent: strings.Join(t.reasoning, "\n\n")}
	return chatCompletion{head, []chatChoice{{0, message, t.finishReason()}}, newChatUsage(t.last.Usage)}
}

// chatStream is an answer as a stream of chunks.
type chatStream struct {
	chatEnd
	head      chatHead
	usage     bool
	prefix    []byte // of every chunk, up to the name of what is added
	sent      forwarded
	content   int64 // item of which content came last; 0 when none has
	reasoning int64
}

func newChatStream(chat chatRequest, turn session.Turn) *chatStream {
	c := &chatStream{head: newChatHead(chat, turn, "chat.completion.chunk"), usage: chat.usage, sent: forwarded{}}
	common := c.head
	common.Loadline = nil
	head, err := session.EncodeJSON(common)
	if err != nil {
		panic("encode the head of a chunk: " + err.Error()) // texts and numbers always encode
	}
	c.prefix = append(append([]byte("data: "), head[:len(head)-1]...), `,"choices":[{"index":0,"delta":{"`...)
	return c
}

func (c *chatStream) header(http.Header) {}

func (c *chatStream) event(b []byte, ev *session.Event) ([]byte, error) {
	c.add(ev)
	switch {
	case ev.Type == session.EventTurnQueued:
		empty := ""
		first := chatChunk{chatHead: c.head, Choices: []chunkChoice{{Delta: chatDelta{Role: "assistant", Content: &empty}}}}
		c.head.Loadline = nil
		return appendData(b, first)
	case ev.Type == session.EventStepRestarted:
		c.sent = forwarded{}
		c.content, c.reasoning = void(c.content), void(c.reasoning)
	case ev.Delta != nil && ev.Delta.Kind == session.KindAssistantMessage:
		return c.piece(b, "content", &c.content, ev.Delta.ItemN, c.sent.delta(ev.Delta)), nil
	case ev.Delta != nil && ev.Delta.Kind == session.KindReasoning:
		return c.piece(b, "reasoning_content", &c.reasoning, ev.Delta.ItemN, c.sent.delta(ev.Delta)), nil
	case ev.Item != nil && ev.Item.AssistantMessage != nil:
		return c.piece(b, "content", &c.content, ev.Item.N, c.sent.rest(ev.Item.N, ev.Item.AssistantMessage.Text)), nil
	case ev.Item != nil && ev.Item.Reasoning != nil:
		return c.piece(b, "reasoning_content", &c.reasoning, ev.Item.N, c.sent.rest(ev.Item.N, ev.Item.Reasoning.Text)), nil
	case ev.Type.Terminal():
		return c.finish(b)
	}
	return b, nil
}

// void is the item before text that comes again: none if nothing was said yet, else one
// that no text is of.
func void(before int64) int64 {
	if before == 0 {
		return 0
	}
	return -1
}

// piece appends a chunk with text of item n. before is the item that the last one of
// its kind was of.
func (c *chatStream) piece(b []byte, name string, before *int64, n int64, text string) []byte {
	if text == "" {
		return b
	}
	b = append(append(append(b, c.prefix...), name...), `":"`...)
	if *before != 0 && *before != n {
		b = append(b, `\n\n`...)
	}
	*before = n
	b = session.AppendJSONText(b, text)
	return append(b, `"},"finish_reason":null}]}`+"\n\n"...)
}

func (c *chatStream) finish(b []byte) ([]byte, error) {
	if failure, _ := c.failure(); failure != nil {
		return appendData(b, openAIFailure{*failure})
	}
	reason := c.finishReason()
	b, err := appendData(b, chatChunk{chatHead: c.head, Choices: []chunkChoice{{FinishReason: &reason}}})
	if err != nil || !c.usage {
		return b, err
	}
	usage := newChatUsage(c.last.Usage)
	return appendData(b, chatChunk{chatHead: c.head, Choices: []chunkChoice{}, Usage: &usage})
}

func (c *chatStream) end(b []byte) ([]byte, error) {
	if c.last == nil {
		failure, _ := c.failure()
		var err error
		if b, err = appendData(b, openAIFailure{*failure}); err != nil {
			return b, err
		}
	}
	return append(b, "data: [DONE]\n\n"...), nil
}
