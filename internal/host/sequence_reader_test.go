package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"loadline/internal/session"
)

// reader reads the stream of the session, leaves at any moment and comes back.
type reader struct {
	s   *sequence
	sub interface {
		Next(ctx context.Context) ([]session.Event, error)
		Close()
	}
	place session.Cursor
	seq   int64            // of the last durable event that it got
	got   [][]byte         // durable events
	texts map[int64]string // live text of items that are still written
}

func newReader(s *sequence) *reader {
	return &reader{s: s, place: session.Cursor{Offset: -1}, texts: map[int64]string{}}
}

func (r *reader) leave() {
	if r.sub != nil {
		r.sub.Close()
		r.sub = nil
	}
}

// read takes what there is, at most so many times.
func (r *reader) read(times int) (some bool) {
	if r.sub == nil {
		sub, err := r.s.life.host.Subscribe(r.s.ctx, r.s.id, r.place)
		if err != nil {
			r.s.Fatalf("subscribe at %+v: %v", r.place, err)
		}
		r.sub = sub
	}
	for range times {
		ctx, cancel := context.WithTimeout(r.s.ctx, time.Nanosecond)
		events, err := r.sub.Next(ctx)
		cancel()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, session.ErrSlow):
			r.leave()
			return true
		case errors.Is(err, context.DeadlineExceeded):
			return some
		case err != nil:
			r.s.Fatalf("read the stream after %+v: %v", r.place, err)
		}
		some = true
		for i := range events {
			r.take(&events[i])
		}
	}
	return some
}

// take puts one event behind those before it.
func (r *reader) take(ev *session.Event) {
	switch {
	case ev.Type == session.EventStreamReset:
		r.place = session.Cursor{Seq: ev.Reset.From, Offset: -1}
		clear(r.texts)
		if ev.Reset.From != r.seq {
			r.s.Fatalf("a reader that has read up to %d is sent back to %d", r.seq, ev.Reset.From)
		}
		return
	case ev.Type == session.EventItemDelta:
		r.place = session.Cursor{Seq: ev.Seq, Offset: ev.Delta.Offset}
		if had := int64(len(r.texts[ev.Delta.ItemN])); had != ev.Delta.AtByte {
			r.s.Fatalf("a delta of item %d begins at byte %d, the reader has %d", ev.Delta.ItemN, ev.Delta.AtByte, had)
		}
		r.texts[ev.Delta.ItemN] += ev.Delta.Text
		return
	case !ev.Type.Durable():
		return
	}
	if ev.Seq != r.seq+1 {
		r.s.Fatalf("event %d came after event %d", ev.Seq, r.seq)
	}
	r.seq, r.place = ev.Seq, session.Cursor{Seq: ev.Seq, Offset: -1}
	line, err := ev.AppendJSON(nil)
	if err != nil {
		r.s.Fatal(err)
	}
	r.got = append(r.got, line)
	if ev.Item != nil {
		r.compare(ev.Item)
	}
	if ev.Type == session.EventStepCompleted || ev.Type == session.EventStepRestarted || ev.Type.Terminal() && ev.Turn.StartedAt != 0 {
		clear(r.texts)
	}
}

// compare holds that the live text of an item was that of the item.
func (r *reader) compare(item *session.Item) {
	live, whole := r.texts[item.N], ""
	switch {
	case live == "":
		return
	case item.AssistantMessage != nil:
		whole = item.AssistantMessage.Text
	case item.Reasoning != nil:
		whole = item.Reasoning.Text
	default:
		return
	}
	if live != whole {
		r.s.Fatalf("item %d has %d bytes, its live text had %d", item.N, len(whole), len(live))
	}
}

// readAll reads to the end of the log and compares.
func (r *reader) readAll() {
	r.s.Helper()
	events := r.s.events()
	for r.seq < int64(len(events)) {
		if !r.read(1) {
			r.s.Fatalf("the stream ends after event %d of %d", r.seq, len(events))
		}
	}
	r.leave()
	for i := range events {
		line, err := events[i].AppendJSON(nil)
		if err != nil {
			r.s.Fatal(err)
		}
		if !bytes.Equal(line, r.got[i]) {
			r.s.Fatalf("event %d was streamed and is stored as:\n%s\n%s", i+1, short(r.got[i]), short(line))
		}
	}
}

func short(line []byte) string { return fmt.Sprintf("%.600s", line) }
