package http

import (
	"net/http"
	"slices"
	"strconv"

	"loadline/internal/session"
)

// The UI message stream of the Vercel AI SDK, protocol version 1: one turn as one
// message of the assistant. Its clients end a stream at a part that they do not know,
// without a word; so only parts are sent that the packages "ai" 5, 6 and 7 know.
//
//	Loadline                    UI message stream
//	turn.queued                 start: messageId is the turn's id, metadata {turn_id}
//	first text or call of an    start-step, after the finish-step of the step before: what its tools
//	answer                      returned belongs to the step that called them
//	item.delta of a message     text-start first, text-delta
//	item.delta of reasoning     reasoning-start first, reasoning-delta
//	item.delta of a call        nothing: a call begins with its name, which comes with its item
//	item, of a message or       what deltas have not brought, text-end or reasoning-end
//	reasoning
//	item, tool_call             tool-input-available, of a dynamic tool that the server has run
//	item, tool_result           tool-output-available {summary, content}, of a failed one
//	                            tool-output-error; of a cut one before that data-truncated
//	item, user_message          nothing; from the second on (steered) data-input {text}
//	item, summary               nothing
//	tool.started                nothing
//	tool.progress               data-progress {toolCallId, text}, transient
//	step.waiting, .retrying     data-waiting, data-retrying, transient
//	step.restarted              ends what is open, data-restarted {reason}: the parts of this step before it are
//	                            void, as the protocol cannot take text back; the new ones follow it.
//	                            Nothing when the step has brought no part
//	step.completed              nothing: its usage is in the sum at the end
//	memory.extract              nothing: it belongs to no turn
//	turn.completed              finish-step, finish "stop" with metadata {state, usage}
//	turn.cancelled              finish-step, message-metadata {state, usage, error}, abort
//	turn.failed, .interrupted   finish-step, message-metadata {state, usage, error}, error, finish "error"
//	a stream that breaks off    error: the client takes a cut stream for a success
//	the end                     [DONE]
//
// Whatever is open ends before a step does.

// aisdk is one turn as a UI message stream.
type aisdk struct {
	stepping bool // a step is open
	answered bool // its answer is stored: what comes next of a model is another step
	users    int  // messages of the user seen
	parts    int  // texts opened
	sent     forwarded
	open     []openText
	over     bool
}

// openText is a text that grows, of a message or of reasoning.
type openText struct {
	n    int64 // of its item
	kind string
	id   string
}

func newAISDK() *aisdk { return &aisdk{sent: forwarded{}} }

func (a *aisdk) header(h http.Header) { h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1") }

func (a *aisdk) event(b []byte, ev *session.Event) ([]byte, error) {
	switch ev.Type {
	case session.EventItemDelta:
		return a.delta(b, ev.Delta)
	case session.EventTurnQueued:
		return appendData(b, uiPart{Type: "start", MessageID: string(ev.TurnID), Metadata: uiMetadata{TurnID: ev.TurnID}})
	case session.EventItem:
		return a.item(b, ev.Item)
	case session.EventStepCompleted:
		a.answered = true
	case session.EventToolProgress:
		return appendData(b, uiPart{Type: "data-progress", Data: uiProgress{callID(ev.Activity.ItemN), ev.Activity.Text}, Transient: true})
	case session.EventStepWaiting:
		return appendData(b, uiPart{Type: "data-waiting", Data: ev.Wait, Transient: true})
	case session.EventStepRetrying:
		return appendData(b, uiPart{Type: "data-retrying", Data: ev.Retry, Transient: true})
	case session.EventStepRestarted:
		return a.restart(b, ev.Retry)
	case session.EventTurnCompleted, session.EventTurnFailed, session.EventTurnCancelled, session.EventTurnInterrupted:
		return a.finish(b, ev.Turn)
	}
	return b, nil
}

// end is the last frame. A stream that broke off has an error before it.
func (a *aisdk) end(b []byte) (_ []byte, err error) {
	if !a.over {
		if b, err = a.closeStep(b); err != nil {
			return b, err
		}
		if b, err = appendData(b, uiPart{Type: "error", ErrorText: streamBrokenDetail}); err != nil {
			return b, err
		}
	}
	return append(b, "data: [DONE]\n\n"...), nil
}

func (a *aisdk) finish(b []byte, t *session.Turn) ([]byte, error) {
	a.over = true
	b, err := a.closeStep(b)
	if err != nil {
		return b, err
	}
	told := uiMetadata{t.ID, t.State, &t.Usage, t.Error}
	switch t.State {
	case session.TurnCompleted:
		return appendData(b, uiPart{Type: "finish", FinishReason: "stop", Metadata: told})
	case session.TurnCancelled:
		return appendParts(b, uiPart{Type: "message-metadata", Metadata: told}, uiPart{Type: "abort"})
	}
	return appendParts(b,
		uiPart{Type: "message-metadata", Metadata: told},
		uiPart{Type: "error", ErrorText: t.Error.Detail},
		uiPart{Type: "finish", FinishReason: "error"})
}

// enter begins a step with the first that comes of its answer.
func (a *aisdk) enter(b []byte) ([]byte, error) {
	if a.stepping && !a.answered {
		return b, nil
	}
	b, err := a.closeStep(b)
	if err != nil {
		return b, err
	}
	a.stepping, a.answered = true, false
	return appendData(b, uiPart{Type: "start-step"})
}

func (a *aisdk) closeStep(b []byte) ([]byte, error) {
	b, err := a.closeTexts(b)
	if err != nil || !a.stepping {
		return b, err
	}
	a.stepping = false
	return appendData(b, uiPart{Type: "finish-step"})
}

func (a *aisdk) delta(b []byte, d *session.Delta) ([]byte, error) {
	if d.Kind == session.KindToolCall {
		return b, nil
	}
	return a.text(b, d.ItemN, d.Kind, a.sent.delta(d))
}

// text passes on a piece of a text, which it opens.
func (a *aisdk) text(b []byte, n int64, kind session.ItemKind, piece string) (_ []byte, err error) {
	if piece == "" {
		return b, nil
	}
	at := a.find(n)
	if at < 0 {
		if b, err = a.enter(b); err != nil {
			return b, err
		}
		a.parts++
		text := openText{n: n, kind: "text", id: strconv.Itoa(a.parts)}
		if kind == session.KindReasoning {
			text.kind = "reasoning"
		}
		if b, err = appendData(b, uiPart{Type: text.kind + "-start", ID: text.id}); err != nil {
			return b, err
		}
		at, a.open = len(a.open), append(a.open, text)
	}
	// The hot path of a stream: one delta is one token.
	b = append(b, `data: {"type":"`...)
	b = append(b, a.open[at].kind...)
	b = append(b, `-delta","id":"`...)
	b = append(b, a.open[at].id...)
	b = append(b, `","delta":`...)
	b = session.AppendJSONString(b, piece)
	return append(b, "}\n\n"...), nil
}

// find is where the text of item n is in open; -1 when it is not there.
func (a *aisdk) find(n int64) int {
	return slices.IndexFunc(a.open, func(t openText) bool { return t.n == n })
}

func (a *aisdk) closeTexts(b []byte) (_ []byte, err error) {
	for _, text := range a.open {
		if b, err = appendData(b, uiPart{Type: text.kind + "-end", ID: text.id}); err != nil {
			return b, err
		}
	}
	a.open = a.open[:0]
	return b, nil
}

// restart ends what is open, and tells that it is void with all else of its step.
func (a *aisdk) restart(b []byte, retry *session.Retry) ([]byte, error) {
	clear(a.sent)
	if !a.stepping || a.answered {
		return b, nil
	}
	b, err := a.closeTexts(b)
	if err != nil {
		return b, err
	}
	return appendData(b, uiPart{Type: "data-restarted", Data: uiRestart{retry.Reason}})
}
