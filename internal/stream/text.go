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

// continuedBy reports whether ev is the next piece of the same item.
func (r *run) continuedBy(ev *session.Event) bool {
	return ev.Delta.ItemN == r.start.ItemN && ev.Delta.AtByte == r.start.AtByte+int64(r.text.Len())
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
