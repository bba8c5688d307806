package http

import (
	"slices"

	"loadline/internal/session"
)

// item ends a message that deltas have brought, and passes on whatever comes as a whole.
func (a *agui) item(b []byte, it *session.Item) ([]byte, error) {
	switch it.Kind {
	case session.KindUserMessage:
		if a.users++; a.users > 1 {
			return a.whole(b, it.N, it.Kind, it.UserMessage.Text)
		}
	case session.KindAssistantMessage, session.KindReasoning:
		return a.answerItem(b, it)
	case session.KindToolCall:
		return a.call(b, it)
	case session.KindToolResult:
		return a.result(b, it)
	}
	return b, nil
}

func (a *agui) answerItem(b []byte, it *session.Item) ([]byte, error) {
	b, err := a.enter(b)
	if err != nil {
		return b, err
	}
	if it.Kind == session.KindReasoning {
		return a.whole(b, it.N, it.Kind, it.Reasoning.Text)
	}
	a.parentID = a.messageID(it.N)
	return a.whole(b, it.N, it.Kind, it.AssistantMessage.Text)
}

// whole passes on what of a message has not been, and ends it.
func (a *agui) whole(b []byte, n int64, kind session.ItemKind, text string) ([]byte, error) {
	b, err := a.text(b, n, kind, a.sent.rest(n, text))
	if err != nil {
		return b, err
	}
	delete(a.sent, n)
	a.unsettled = slices.DeleteFunc(a.unsettled, func(m int64) bool { return m == n })
	if a.openN == n {
		return a.closeMessage(b)
	}
	return b, nil
}

// call passes on a call. Those of one answer belong to its message, or without one to
// the first of them.
func (a *agui) call(b []byte, it *session.Item) ([]byte, error) {
	b, err := a.enter(b)
	if err != nil {
		return b, err
	}
	if a.parentID == "" {
		a.parentID = a.messageID(it.N)
	}
	arguments := it.ToolCall.Raw
	if it.ToolCall.Arguments != nil {
		arguments = string(it.ToolCall.Arguments)
	}
	return appendAGUI(b,
		aguiEvent{Type: "TOOL_CALL_START", CallID: callID(it.N), CallName: it.ToolCall.Tool, ParentID: a.parentID},
		aguiEvent{Type: "TOOL_CALL_ARGS", CallID: callID(it.N), Delta: arguments},
		aguiEvent{Type: "TOOL_CALL_END", CallID: callID(it.N)})
}

func (a *agui) result(b []byte, it *session.Item) (_ []byte, err error) {
	r := it.ToolResult
	if r.Truncated != nil {
		if b, err = a.custom(b, "truncated", aguiTruncated{callID(r.CallN), *r.Truncated, r.KeptOutput}); err != nil {
			return b, err
		}
	}
	ev := aguiEvent{Type: "TOOL_CALL_RESULT", MessageID: a.messageID(it.N), CallID: callID(r.CallN), Content: resultText(r), Role: "tool"}
	if r.Failed {
		ev.Metadata = &aguiMetadata{aguiFailed{true}}
	}
	return appendAGUI(b, ev)
}

// messageNames are the names of the events that a message is streamed with.
type messageNames struct{ start, content, end, role string }

func messageEvents(kind session.ItemKind) messageNames {
	switch kind {
	case session.KindReasoning:
		return messageNames{"REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "reasoning"}
	case session.KindUserMessage:
		return messageNames{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "user"}
	}
	return messageNames{"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "assistant"}
}

// aguiEvent is an event of AG-UI. Its fields are optional there, and never null.
type aguiEvent struct {
	Type      string        `json:"type"`
	ThreadID  string        `json:"threadId,omitempty"`
	RunID     string        `json:"runId,omitempty"`
	StepName  string        `json:"stepName,omitempty"`
	MessageID string        `json:"messageId,omitempty"`
	CallID    string        `json:"toolCallId,omitempty"`
	CallName  string        `json:"toolCallName,omitempty"`
	ParentID  string        `json:"parentMessageId,omitempty"`
	Role      string        `json:"role,omitempty"`
	Delta     string        `json:"delta,omitempty"`
	Content   string        `json:"content,omitempty"`
	Name      string        `json:"name,omitempty"`
	Value     any           `json:"value,omitempty"`
	Code      string        `json:"code,omitempty"`
	Message   string        `json:"message,omitempty"`
	Outcome   *aguiOutcome  `json:"outcome,omitempty"`
	Usage     []aguiUsage   `json:"usage,omitempty"`
	Metadata  *aguiMetadata `json:"metadata,omitempty"`
}

type aguiOutcome struct {
	Type string `json:"type"`
}

type aguiUsage struct {
	InputTokens       int64 `json:"inputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	CachedInputTokens int64 `json:"cachedInputTokens"`
}

type aguiMetadata struct {
	Loadline aguiFailed `json:"loadline"`
}

type aguiFailed struct {
	Failed bool `json:"failed"`
}

type aguiProgress struct {
	CallID string `json:"tool_call_id"`
	Text   string `json:"text"`
}

type aguiRestart struct {
	MessageIDs []string `json:"message_ids"`
	Reason     string   `json:"reason"`
}

type aguiTruncated struct {
	CallID string `json:"tool_call_id"`
	session.Truncated
	KeptOutput *session.KeptOutput `json:"kept_output,omitempty"`
}

func appendAGUI(b []byte, events ...aguiEvent) (_ []byte, err error) {
	for _, ev := range events {
		if b, err = appendData(b, ev); err != nil {
			return b, err
		}
	}
	return b, nil
}
