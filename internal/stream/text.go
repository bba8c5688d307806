package stream

import (
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
)

// run is a stretch of live text: pieces of one item with nothing between them.
type run struct {
	event session.Event // as its deltas are sent, without Delta; At is that of the newest piece
	start session.Delta // where the run begins, in its item and in the live text; without Text
	text  strings.Builder
}

// newRun is the empty run that the delta ev begins, after the durable event seq
// and at byte offset of the live text.
func newRun(ev *session.Event, seq, offset int64) *run {
	r := &run{event: *ev, start: *ev.Delta}
	r.event.Seq, r.event.Delta = seq, nil
	r.start.Offset, r.start.Text = offset, ""
	return r
}

func (r *run) continuedBy(ev *session.Event) bool {
	d := ev.Delta
	return d.ItemN == r.start.ItemN && d.Kind == r.start.Kind &&
		d.AtByte == r.start.AtByte+int64(r.text.Len()) && ev.TurnID == r.event.TurnID
}

func (r *run) add(ev *session.Event) {
	r.text.WriteString(ev.Delta.Text)
	r.event.At = ev.At
}

// end is the offset in the live text up to which the run goes.
func (r *run) end() int64 { return r.start.Offset + int64(r.text.Len()) }

// rest is the delta that carries everything in the run from byte read of it on.
// Its text shares the run's memory. Its seq is at least minSeq.
func (r *run) rest(read int, minSeq int64) (session.Event, session.Delta) {
	ev, d := r.event, r.start
	ev.Seq = max(ev.Seq, minSeq)
	d.AtByte += int64(read)
	d.Text = r.text.String()[read:]
	d.Offset = r.end()
	return ev, d
}

// textSeq is the number of the last durable event before the live text. Readers
// that have not seen it yet take stored events from the log alone.
func (t *Topic) textSeq() int64 {
	if len(t.runs) == 0 {
		return t.lastSeq
	}
	return t.runs[0].event.Seq
}

// liveBytes is the length of the live text.
func (t *Topic) liveBytes() int64 {
	if len(t.runs) == 0 {
		return 0
	}
	return t.runs[len(t.runs)-1].end()
}

// bytesBefore is how much of the live text came before the durable event seq.
func (t *Topic) bytesBefore(seq int64) int64 {
	for _, r := range t.runs {
		if r.event.Seq >= seq {
			return r.start.Offset
		}
	}
	return t.liveBytes()
}

// holds reports whether a reader can have seen c.Offset bytes of the live text,
// whole characters, before it saw the durable event after c.Seq.
func (t *Topic) holds(c session.Cursor) bool {
	var end int64
	for _, r := range t.runs {
		if r.event.Seq > c.Seq {
			break
		}
		if c.Offset < r.end() {
			return utf8.RuneStart(r.text.String()[c.Offset-r.start.Offset])
		}
		end = r.end()
	}
	return c.Offset == end
}

// eventBytes is what an entry costs beside the texts it carries, roughly.
const eventBytes = 512

// weight estimates the memory that ev holds, in bytes.
func weight(ev *session.Event) int64 {
	n := eventBytes
	switch {
	case ev.Turn != nil:
		n += len(ev.Turn.Input)
	case ev.Item != nil:
		n += itemBytes(ev.Item)
	case ev.Activity != nil:
		n += len(ev.Activity.Text)
	case ev.Retry != nil:
		n += len(ev.Retry.Reason)
	case ev.Extract != nil:
		n += len(ev.Extract.Text)
	}
	return int64(n)
}

func itemBytes(item *session.Item) int {
	switch {
	case item.UserMessage != nil:
		return len(item.UserMessage.Text)
	case item.AssistantMessage != nil:
		return len(item.AssistantMessage.Text)
	case item.Reasoning != nil:
		return len(item.Reasoning.Text) + len(item.Reasoning.Signature) + len(item.Reasoning.Redacted)
	case item.ToolCall != nil:
		return len(item.ToolCall.Arguments) + len(item.ToolCall.Raw)
	case item.ToolResult != nil && item.ToolResult.Content != nil:
		return len(*item.ToolResult.Content)
	case item.Summary != nil:
		return len(item.Summary.Text)
	}
	return 0
}
