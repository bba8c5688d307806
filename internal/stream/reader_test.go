package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"loadline/internal/session"
)

// reader is a client that trusts nothing: it puts together what it is sent and
// fails on the first event that does not follow from the one before.
type reader struct {
	play *play
	sub  *Subscription

	id     session.Cursor // what it comes back with: the last id, or what it began with
	fresh  bool           // it has had no id yet
	cursor session.Cursor // where it stands
	from   int64          // stored holds the events after this one
	stored []session.Event
	texts  map[int64]string // by item, of the running step
	live   int64            // bytes of the running step's live text

	stays  bool // never left: at the end of a step it must have had all of its text
	loose  bool // began in the middle of a text that it has not seen
	unsure bool // its id may be unknown to the stream
}

// joins makes a reader that subscribes with c.
func (p *play) joins(c session.Cursor) *reader {
	r := &reader{play: p, id: c, fresh: true, unsure: true, loose: c.Seq > 0, cursor: c, texts: map[int64]string{}}
	if c.Live {
		r.cursor = session.Cursor{Seq: p.topic.lastSeq, Offset: -1}
	}
	r.from = r.cursor.Seq
	r.sub = p.topic.Subscribe(c)
	return r
}

// returns drops the connection and comes back.
func (r *reader) returns() {
	r.sub.Close()
	if r.fresh {
		*r = *r.play.joins(r.id)
		return
	}
	r.sub, r.stays = r.play.topic.Subscribe(r.id), false
}

// stands moves the reader to the id of an event.
func (r *reader) stands(seq, offset int64) {
	r.cursor = session.Cursor{Seq: seq, Offset: offset}
	r.id, r.fresh, r.unsure = r.cursor, false, false
}

// read reads once, without waiting, or comes back when it was too slow. It counts
// the events and the deltas among them. The error is io.EOF at the end.
func (r *reader) read() (events, deltas int, err error) {
	got, err := r.sub.poll(r.play.ctx)
	if errors.Is(err, session.ErrSlow) {
		r.returns()
		return 1, 0, nil
	}
	for _, ev := range got {
		if ev.Delta != nil {
			deltas++
		}
		if err := r.apply(ev); err != nil {
			return 0, 0, fmt.Errorf("after %+v: %s: %w", r.cursor, show(ev), err)
		}
	}
	return len(got), deltas, err
}

// readAll reads what there is and counts the deltas.
func (r *reader) readAll() (deltas int, err error) {
	for {
		events, more, err := r.read()
		deltas += more
		if events == 0 || err != nil {
			return deltas, err
		}
	}
}

func (r *reader) apply(ev session.Event) error {
	switch {
	case ev.Reset != nil:
		return r.reset(ev.Reset.From)
	case ev.Delta != nil:
		return r.applyDelta(ev)
	case ev.Activity != nil:
		return nil
	}
	if ev.Seq != r.cursor.Seq+1 {
		return fmt.Errorf("event %d follows %d", ev.Seq, r.cursor.Seq)
	}
	r.stands(ev.Seq, -1)
	r.stored = append(r.stored, ev)
	if ev.Item != nil {
		whole, got := ev.Item.AssistantMessage.Text, r.texts[ev.Item.N]
		if !strings.HasPrefix(whole, got) || r.stays && whole != got {
			return fmt.Errorf("item %d is %q, its deltas were %q", ev.Item.N, whole, got)
		}
	}
	if ends(ev) {
		clear(r.texts)
		r.live, r.loose = 0, false
	}
	return nil
}

// ends reports whether a step's text ends with ev.
func ends(ev session.Event) bool {
	switch ev.Type {
	case session.EventStepCompleted, session.EventStepRestarted:
		return true
	}
	return ev.Type.Terminal() && ev.TurnID == running
}

func (r *reader) reset(from int64) error {
	if !r.unsure {
		return errors.New("the cursor was a good one")
	}
	r.loose, r.live = false, 0
	clear(r.texts)
	r.cursor = session.Cursor{Seq: from, Offset: -1}
	if from < r.from {
		r.from, r.stored = from, nil
	}
	r.stored = r.stored[:from-r.from]
	return nil
}

func (r *reader) applyDelta(ev session.Event) error {
	d := ev.Delta
	switch {
	case ev.Seq != r.cursor.Seq:
		return fmt.Errorf("delta of seq %d after event %d", ev.Seq, r.cursor.Seq)
	case d.Offset <= r.cursor.Offset || d.Text == "":
		return errors.New("the id does not increase")
	case !r.loose && d.Offset != r.live+int64(len(d.Text)):
		return fmt.Errorf("%d bytes of live text after %d", d.Offset, r.live)
	case !r.loose && d.AtByte != int64(len(r.texts[d.ItemN])):
		return fmt.Errorf("at byte %d after %d bytes", d.AtByte, len(r.texts[d.ItemN]))
	}
	whole := r.play.text(ev.Seq, d.ItemN)
	if end := d.AtByte + int64(len(d.Text)); int64(len(whole)) < end || whole[d.AtByte:end] != d.Text {
		return fmt.Errorf("%q is not at byte %d of %q", d.Text, d.AtByte, whole)
	}
	r.stands(ev.Seq, d.Offset)
	r.live = d.Offset
	r.texts[d.ItemN] = whole[:d.AtByte] + d.Text
	return nil
}

// check compares what the reader has at the end of the stream with what is stored.
func (r *reader) check() error {
	want := r.play.log.stored[r.from:]
	same := func(a, b session.Event) bool { return a.Seq == b.Seq && a.Type == b.Type && a.Item == b.Item }
	if !slices.EqualFunc(r.stored, want, same) {
		return fmt.Errorf("a reader from %d has %d events, %d are stored", r.from, len(r.stored), len(want))
	}
	return nil
}
