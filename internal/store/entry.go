package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"loadline/internal/session"
)

// code is the type of an event, or the kind of the item that it brought. The
// numbers are stored: they never change, and queries.sql knows some.
type code int64

const (
	codeTurnQueued      code = 1
	codeTurnStarted     code = 2
	codeTurnCompleted   code = 3
	codeTurnFailed      code = 4
	codeTurnCancelled   code = 5
	codeTurnInterrupted code = 6 // codes up to here carry their turn
	codeStepRetrying    code = 7
	codeStepRestarted   code = 8
	codeStepCompleted   code = 9
	codeMemoryExtract   code = 10
	codeStepWaiting     code = 11

	codeUserMessage      code = 16 // codes from here on are items
	codeAssistantMessage code = 17
	codeReasoning        code = 18
	codeToolCall         code = 19
	codeToolCallRaw      code = 20 // a call whose arguments are no object
	codeToolResult       code = 21
	codeSummary          code = 22
	codeToolCallRead     code = 23 // a call that changes nothing
	codeToolCallNone     code = 24 // a call that never runs, with arguments
)

var eventCodes = map[session.EventType]code{ //nolint:gochecknoglobals // a table, never changed
	session.EventTurnQueued: codeTurnQueued, session.EventTurnStarted: codeTurnStarted,
	session.EventTurnCompleted: codeTurnCompleted, session.EventTurnFailed: codeTurnFailed,
	session.EventTurnCancelled: codeTurnCancelled, session.EventTurnInterrupted: codeTurnInterrupted,
	session.EventStepRetrying: codeStepRetrying, session.EventStepRestarted: codeStepRestarted,
	session.EventStepCompleted: codeStepCompleted, session.EventMemoryExtract: codeMemoryExtract,
	session.EventStepWaiting: codeStepWaiting,
}

var errShape = errors.New("it does not carry what its type says")

// entry is one row of the log. An item's main text has a column of its own, which
// keeps it byte for byte; whatever else it has is JSON in the form of its type, but
// for the tool of a call, which is as it is.
type entry struct {
	code   code
	turnID session.TurnID // empty when it belongs to no turn
	at     session.Time   // 0 when it is written: that of the turn
	n      any            // int64, or nil when it is no item
	text   any            // string or nil
	data   any            // string or nil

	turnName any   // string or nil: turnID as it was read
	seq      int64 // of an event that was read
	turnRow  any   // int64 or nil: of an event that was read
}

// encode fills in what is stored of ev. A user message that is the input of
// its turn, as it usually is, gets no text: the turn has it.
func (e *entry) encode(ev *session.Event, input string) (err error) {
	e.turnID, e.at = ev.TurnID, ev.At
	switch {
	case ev.Type == session.EventItem && ev.Item != nil && ev.TurnID != "":
		return e.encodeItem(ev, input)
	case ev.Turn != nil && ev.TurnID != "" && eventCodes[ev.Type] <= codeTurnInterrupted:
	case ev.Retry != nil && (ev.Type == session.EventStepRetrying || ev.Type == session.EventStepRestarted):
		err = e.setData(ev.Retry)
	case ev.Wait != nil && ev.Type == session.EventStepWaiting:
		err = e.setData(ev.Wait)
	case ev.Step != nil && ev.Type == session.EventStepCompleted:
		err = e.setData(stepNumbers{ev.Step.Usage.InputTokens, ev.Step.Usage.CachedInputTokens, ev.Step.Usage.OutputTokens, ev.Step.RequestBytes})
	case ev.Extract != nil && ev.Type == session.EventMemoryExtract:
		err = e.setData(ev.Extract)
	default:
		return errShape
	}
	e.code = eventCodes[ev.Type]
	if e.code == 0 {
		return errShape
	}
	return err
}

func (e *entry) encodeItem(ev *session.Event, input string) error {
	it := ev.Item
	if it.N < 1 || it.SessionID != ev.SessionID || it.TurnID != ev.TurnID || it.At != ev.At {
		return fmt.Errorf("its item %d is not of the same session, turn and time", it.N)
	}
	e.n = it.N
	switch {
	case it.Kind == session.KindUserMessage && it.UserMessage != nil:
		e.code = codeUserMessage
		if it.UserMessage.Text != input {
			e.text = it.UserMessage.Text
		}
	case it.Kind == session.KindAssistantMessage && it.AssistantMessage != nil:
		e.code, e.text = codeAssistantMessage, it.AssistantMessage.Text
		if it.AssistantMessage.Incomplete {
			return e.setData(session.AssistantMessage{Incomplete: true})
		}
	case it.Kind == session.KindReasoning && it.Reasoning != nil:
		rest := *it.Reasoning
		e.code, e.text, rest.Text = codeReasoning, rest.Text, ""
		return e.setData(rest)
	case it.Kind == session.KindToolCall && it.ToolCall != nil:
		e.encodeCall(it.ToolCall)
	case it.Kind == session.KindToolResult && it.ToolResult != nil:
		return e.encodeResult(*it.ToolResult)
	case it.Kind == session.KindSummary && it.Summary != nil:
		rest := *it.Summary
		e.code, e.text, rest.Text = codeSummary, rest.Text, ""
		if rest != (session.Summary{}) {
			return e.setData(rest)
		}
	default:
		return errShape
	}
	return nil
}

// encodeCall has a code for each effect: these rows are the ledger of calls, which
// says after a crash what a call without a result may have done.
func (e *entry) encodeCall(call *session.ToolCall) {
	e.code, e.text, e.data = codeToolCall, string(call.Arguments), call.Tool
	switch {
	case call.Arguments == nil:
		e.code, e.text = codeToolCallRaw, call.Raw
	case call.Effect == session.EffectRead:
		e.code = codeToolCallRead
	case call.Effect == session.EffectNone:
		e.code = codeToolCallNone
	}
}

// call is the call that e stands for.
func (e *entry) call(text string) *session.ToolCall {
	tool, _ := e.data.(string)
	if e.code == codeToolCallRaw {
		return &session.ToolCall{Tool: tool, Raw: text}
	}
	call := &session.ToolCall{Tool: tool, Arguments: json.RawMessage(text)}
	switch e.code {
	case codeToolCallRead:
		call.Effect = session.EffectRead
	case codeToolCallNone:
		call.Effect = session.EffectNone
	}
	return call
}

func (e *entry) encodeResult(rest session.ToolResult) error {
	e.code = codeToolResult
	if rest.Content != nil {
		e.text, rest.Content = *rest.Content, nil
	}
	return e.setData(rest)
}

func (e *entry) setData(v any) error {
	b, err := session.EncodeJSON(v)
	e.data = string(b)
	return err
}

// event is the event of session id that e stands for. The turn of events that carry
// theirs is left to the caller.
func (e *entry) event(id session.ID) (ev session.Event, err error) {
	ev = session.Event{Seq: e.seq, SessionID: id, TurnID: e.turnID, At: e.at}
	if e.n != nil {
		ev.Type = session.EventItem
		it, err := e.item(id)
		ev.Item = &it
		return ev, err
	}
	for t, c := range eventCodes {
		if c == e.code {
			ev.Type = t
		}
	}
	switch e.code {
	case codeStepRetrying, codeStepRestarted:
		ev.Retry = new(session.Retry)
		err = e.rest(ev.Retry)
	case codeStepWaiting:
		ev.Wait = new(session.Wait)
		err = e.rest(ev.Wait)
	case codeStepCompleted:
		ev.Step, err = e.step()
	case codeMemoryExtract:
		ev.Extract = new(session.Extract)
		err = e.rest(ev.Extract)
	}
	return ev, err
}

// stepNumbers is a step as it is stored: there is one for each request, and its names
// would take more than its numbers.
type stepNumbers [4]int64

func (e *entry) step() (*session.Step, error) {
	var n stepNumbers
	err := e.rest(&n)
	return &session.Step{Usage: session.Usage{InputTokens: n[0], CachedInputTokens: n[1], OutputTokens: n[2]}, RequestBytes: n[3]}, err
}

// item is the item of session id that e stands for.
func (e *entry) item(id session.ID) (it session.Item, err error) {
	n, _ := e.n.(int64)
	text, hasText := e.text.(string)
	it = session.Item{N: n, SessionID: id, TurnID: e.turnID, At: e.at}
	switch e.code {
	case codeUserMessage:
		it.Kind, it.UserMessage = session.KindUserMessage, &session.UserMessage{Text: text}
	case codeAssistantMessage:
		it.Kind, it.AssistantMessage = session.KindAssistantMessage, new(session.AssistantMessage)
		err = e.rest(it.AssistantMessage)
		it.AssistantMessage.Text = text
	case codeReasoning:
		it.Kind, it.Reasoning = session.KindReasoning, new(session.Reasoning)
		err = e.rest(it.Reasoning)
		it.Reasoning.Text = text
	case codeToolCall, codeToolCallRaw, codeToolCallRead, codeToolCallNone:
		it.Kind, it.ToolCall = session.KindToolCall, e.call(text)
	case codeToolResult:
		it.Kind, it.ToolResult = session.KindToolResult, new(session.ToolResult)
		err = e.rest(it.ToolResult)
		if hasText {
			it.ToolResult.Content = &text
		}
	case codeSummary:
		it.Kind, it.Summary = session.KindSummary, new(session.Summary)
		err = e.rest(it.Summary)
		it.Summary.Text = text
	default:
		err = fmt.Errorf("item %d has the unknown code %d", n, e.code)
	}
	return it, err
}

// rest decodes what has no column into v.
func (e *entry) rest(v any) error {
	data, ok := e.data.(string)
	if !ok {
		return nil
	}
	if err := json.Unmarshal([]byte(data), v); err != nil {
		return fmt.Errorf("decode an entry of code %d: %w", e.code, err)
	}
	return nil
}
