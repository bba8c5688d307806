package session

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// EventType tells what happened, and which field of an Event is set.
type EventType string

// The types of event. Those that are not durable are never stored.
const (
	EventTurnQueued      EventType = "turn.queued"      // Turn
	EventTurnStarted     EventType = "turn.started"     // Turn
	EventItem            EventType = "item"             // Item
	EventItemDelta       EventType = "item.delta"       // Delta; not durable
	EventToolStarted     EventType = "tool.started"     // Activity; not durable
	EventToolProgress    EventType = "tool.progress"    // Activity; not durable
	EventStepWaiting     EventType = "step.waiting"     // Wait
	EventStepRetrying    EventType = "step.retrying"    // Retry
	EventStepRestarted   EventType = "step.restarted"   // Retry; voids the deltas of the step
	EventStepCompleted   EventType = "step.completed"   // Step
	EventTurnCompleted   EventType = "turn.completed"   // Turn
	EventTurnFailed      EventType = "turn.failed"      // Turn
	EventTurnCancelled   EventType = "turn.cancelled"   // Turn
	EventTurnInterrupted EventType = "turn.interrupted" // Turn
	EventMemoryExtract   EventType = "memory.extract"   // Extract
	EventStreamReset     EventType = "stream.reset"     // Reset; not durable
)

// Durable reports whether events of this type are stored and have a seq.
func (t EventType) Durable() bool {
	switch t {
	case EventItemDelta, EventToolStarted, EventToolProgress, EventStreamReset:
		return false
	}
	return true
}

// Terminal reports whether an event of this type is the last one of its turn.
func (t EventType) Terminal() bool {
	switch t {
	case EventTurnCompleted, EventTurnFailed, EventTurnCancelled, EventTurnInterrupted:
		return true
	}
	return false
}

// TerminalEvent is the type of the event that ends a turn in state s.
func TerminalEvent(s TurnState) EventType { return EventType("turn." + string(s)) }

// Event is one entry of a session's stream. Exactly the field of its type is set.
type Event struct {
	Type      EventType
	Seq       int64 // of a durable event its number, of a delta that of the last durable one before it
	SessionID ID
	TurnID    TurnID // empty when it belongs to no turn
	At        Time

	Turn     *Turn
	Item     *Item
	Delta    *Delta
	Activity *Activity
	Wait     *Wait
	Retry    *Retry
	Step     *Step
	Extract  *Extract
	Reset    *Reset
}

// Delta is a piece of an item that the model is still writing.
type Delta struct {
	ItemN  int64    `json:"item_n"` // the number that the item will have
	Kind   ItemKind `json:"kind"`   // assistant_message, reasoning or tool_call
	AtByte int64    `json:"at_byte"`
	Text   string   `json:"text"`

	Offset int64 `json:"-"` // bytes of the step's live text up to the end of Text
}

// Activity is a sign of life of a running tool.
type Activity struct {
	ItemN int64  `json:"item_n"` // of the call
	Tool  string `json:"tool"`
	Text  string `json:"text,omitempty"`
}

// Wait says that a model request waits for its turn in the budget of input tokens a
// minute.
type Wait struct {
	WaitMS int64 `json:"wait_ms"`
}

// Retry says that the model is asked again: why, for the how-manieth time, and
// after which wait.
type Retry struct {
	Attempt int    `json:"attempt"` // the attempt that follows; the first request is attempt 1
	WaitMS  int64  `json:"wait_ms"`
	Reason  string `json:"reason"`
}

// Step is what a completed model request cost.
type Step struct {
	Usage Usage `json:"usage"`
	// RequestBytes is how large the request was: bytes of its texts, with a little
	// for each message. Steps of older servers have none.
	RequestBytes int64 `json:"request_bytes,omitempty"`
}

// Extract is the notice of one pass of memory extraction.
type Extract struct {
	Outcome string `json:"outcome"`
	FromN   int64  `json:"from_n"`
	ToN     int64  `json:"to_n"`
	Items   int64  `json:"items"`
	Records int64  `json:"records"`
	Text    string `json:"text"`
}

// Reset says that the reader's cursor is unknown and where the stream goes on.
type Reset struct {
	From int64 `json:"from"`
}

// ID is the event's id in the stream: "seq" of a durable event, "seq.offset" of a
// delta, and "" of any other, which a reader cannot resume from.
func (e *Event) ID() string {
	switch {
	case e.Type == EventItemDelta:
		return strconv.FormatInt(e.Seq, 10) + "." + strconv.FormatInt(e.Delta.Offset, 10)
	case e.Type.Durable():
		return strconv.FormatInt(e.Seq, 10)
	}
	return ""
}

// columns are the fields that an event carries beside its head.
func (e *Event) columns() any {
	switch {
	case e.Turn != nil:
		return struct {
			Turn *Turn `json:"turn"`
		}{e.Turn}
	case e.Item != nil:
		return struct {
			Item *Item `json:"item"`
		}{e.Item}
	case e.Delta != nil:
		return e.Delta
	case e.Activity != nil:
		return e.Activity
	case e.Wait != nil:
		return e.Wait
	case e.Retry != nil:
		return e.Retry
	case e.Step != nil:
		return e.Step
	case e.Extract != nil:
		return e.Extract
	case e.Reset != nil:
		return e.Reset
	}
	return struct{}{}
}

// AppendJSON appends the event's wire form to b.
func (e *Event) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"type":"`...)
	b = append(b, e.Type...)
	if e.Type.Durable() {
		b = append(b, `","seq":`...)
		b = strconv.AppendInt(b, e.Seq, 10)
		b = append(b, `,"session_id":"`...)
	} else {
		b = append(b, `","session_id":"`...)
	}
	b = append(b, e.SessionID...)
	if e.TurnID != "" {
		b = append(b, `","turn_id":"`...)
		b = append(b, e.TurnID...)
	}
	b = append(b, `","at":"`...)
	b = e.At.AppendFormat(b)
	b = append(b, `",`...)
	if e.Delta != nil {
		return e.Delta.appendColumns(b), nil
	}
	columns, err := EncodeJSON(e.columns())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return append(b, columns[1:]...), nil
}

// appendColumns is the hot path of a stream: one delta is one token.
func (d *Delta) appendColumns(b []byte) []byte {
	b = append(b, `"item_n":`...)
	b = strconv.AppendInt(b, d.ItemN, 10)
	b = append(b, `,"kind":"`...)
	b = append(b, d.Kind...)
	b = append(b, `","at_byte":`...)
	b = strconv.AppendInt(b, d.AtByte, 10)
	b = append(b, `,"text":`...)
	b = AppendJSONString(b, d.Text)
	return append(b, '}')
}

// MarshalJSON writes the wire form.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// UnmarshalJSON reads the wire form. Unknown types keep their head alone.
func (e *Event) UnmarshalJSON(b []byte) error {
	var head struct {
		Type      EventType `json:"type"`
		Seq       int64     `json:"seq"`
		SessionID ID        `json:"session_id"`
		TurnID    TurnID    `json:"turn_id"`
		At        Time      `json:"at"`
		Turn      *Turn     `json:"turn"`
		Item      *Item     `json:"item"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	*e = Event{Type: head.Type, Seq: head.Seq, SessionID: head.SessionID, TurnID: head.TurnID, At: head.At, Turn: head.Turn, Item: head.Item}
	switch e.Type {
	case EventItemDelta:
		e.Delta = new(Delta)
		return json.Unmarshal(b, e.Delta)
	case EventToolStarted, EventToolProgress:
		e.Activity = new(Activity)
		return json.Unmarshal(b, e.Activity)
	case EventStepWaiting:
		e.Wait = new(Wait)
		return json.Unmarshal(b, e.Wait)
	case EventStepRetrying, EventStepRestarted:
		e.Retry = new(Retry)
		return json.Unmarshal(b, e.Retry)
	case EventStepCompleted:
		e.Step = new(Step)
		return json.Unmarshal(b, e.Step)
	case EventMemoryExtract:
		e.Extract = new(Extract)
		return json.Unmarshal(b, e.Extract)
	case EventStreamReset:
		e.Reset = new(Reset)
		return json.Unmarshal(b, e.Reset)
	}
	return nil
}
