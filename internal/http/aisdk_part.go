package http

import (
	"slices"

	"loadline/internal/session"
)

// item ends a text that deltas have brought, and passes on whatever comes as a whole.
func (a *aisdk) item(b []byte, it *session.Item) ([]byte, error) {
	switch it.Kind {
	case session.KindUserMessage:
		if a.users++; a.users > 1 {
			return appendData(b, uiPart{Type: "data-input", Data: it.UserMessage})
		}
	case session.KindAssistantMessage:
		return a.whole(b, it, it.AssistantMessage.Text)
	case session.KindReasoning:
		return a.whole(b, it, it.Reasoning.Text)
	case session.KindToolCall:
		return a.call(b, it)
	case session.KindToolResult:
		return a.result(b, it.ToolResult)
	}
	return b, nil
}

// whole passes on what of a text has not been, and ends it.
func (a *aisdk) whole(b []byte, it *session.Item, text string) ([]byte, error) {
	b, err := a.text(b, it.N, it.Kind, a.sent.rest(it.N, text))
	at := a.find(it.N)
	if err != nil || at < 0 {
		return b, err
	}
	ended := a.open[at]
	a.open = slices.Delete(a.open, at, at+1)
	return appendData(b, uiPart{Type: ended.kind + "-end", ID: ended.id})
}

func (a *aisdk) call(b []byte, it *session.Item) ([]byte, error) {
	b, err := a.enter(b)
	if err != nil {
		return b, err
	}
	part := uiPart{Type: "tool-input-available", CallID: callID(it.N), ToolName: it.ToolCall.Tool, Dynamic: true, ProviderExecuted: true, Input: it.ToolCall.Raw}
	if it.ToolCall.Arguments != nil {
		part.Input = it.ToolCall.Arguments
	}
	return appendData(b, part)
}

func (a *aisdk) result(b []byte, r *session.ToolResult) (_ []byte, err error) {
	id := callID(r.CallN)
	if r.Truncated != nil {
		cut := uiPart{Type: "data-truncated", ID: id, Data: uiTruncated{id, *r.Truncated, r.KeptOutput}}
		if b, err = appendData(b, cut); err != nil {
			return b, err
		}
	}
	part := uiPart{Type: "tool-output-available", CallID: id, Dynamic: true, ProviderExecuted: true}
	if r.Failed {
		part.Type, part.ErrorText = "tool-output-error", resultText(r)
	} else {
		part.Output = uiOutput{r.Summary, r.Content}
	}
	return appendData(b, part)
}

// uiPart is a part of a UI message stream, a chunk in the words of the package. Its
// fields are optional there, and never null.
type uiPart struct {
	Type             string `json:"type"`
	MessageID        string `json:"messageId,omitempty"`
	ID               string `json:"id,omitempty"`
	CallID           string `json:"toolCallId,omitempty"`
	ToolName         string `json:"toolName,omitempty"`
	Input            any    `json:"input,omitempty"`
	Output           any    `json:"output,omitempty"`
	ErrorText        string `json:"errorText,omitempty"`
	Dynamic          bool   `json:"dynamic,omitempty"`
	ProviderExecuted bool   `json:"providerExecuted,omitempty"`
	Data             any    `json:"data,omitempty"`
	Transient        bool   `json:"transient,omitempty"`
	FinishReason     string `json:"finishReason,omitempty"`
	Metadata         any    `json:"messageMetadata,omitempty"`
}

type uiMetadata struct {
	TurnID session.TurnID     `json:"turn_id"`
	State  session.TurnState  `json:"state,omitempty"`
	Usage  *session.Usage     `json:"usage,omitempty"`
	Error  *session.TurnError `json:"error,omitempty"`
}

type uiOutput struct {
	Summary string  `json:"summary"`
	Content *string `json:"content,omitempty"`
}

type uiProgress struct {
	CallID string `json:"toolCallId"`
	Text   string `json:"text"`
}

type uiRestart struct {
	Reason string `json:"reason"`
}

type uiTruncated struct {
	CallID string `json:"toolCallId"`
	session.Truncated
	KeptOutput *session.KeptOutput `json:"kept_output,omitempty"`
}

func appendParts(b []byte, parts ...uiPart) (_ []byte, err error) {
	for _, part := range parts {
		if b, err = appendData(b, part); err != nil {
			return b, err
		}
	}
	return b, nil
}
