package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// check holds what is true at every moment.
func (s *sequence) check() {
	s.Helper()
	if problems := s.model.trouble(); len(problems) > 0 {
		s.Fatalf("requests:\n%s", indent(problems))
	}
	events := s.events()
	running := session.TurnID("")
	for i, ev := range events {
		if ev.Seq != int64(i+1) {
			s.Fatalf("event %d of the log has the number %d", i+1, ev.Seq)
		}
		switch {
		case ev.Type == session.EventTurnStarted && running != "":
			s.Fatalf("event %d: turn %s starts while %s runs", ev.Seq, ev.TurnID, running)
		case ev.Type == session.EventTurnStarted:
			running = ev.TurnID
		case ev.Type.Terminal() && ev.TurnID == running:
			running = ""
		}
	}
	history := itemsOf(events)
	s.checkHistory(history, running)
	if running == "" {
		s.checkNext(history)
	}
}

// events is the whole log.
func (s *sequence) events() []session.Event {
	s.Helper()
	var all []session.Event
	for {
		page, err := s.life.store.Events(s.ctx, s.id, int64(len(all)), math.MaxInt64, 500)
		if err != nil {
			s.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

func itemsOf(events []session.Event) []session.Item {
	var all []session.Item
	for _, ev := range events {
		if ev.Item != nil {
			all = append(all, *ev.Item)
		}
	}
	slices.SortFunc(all, func(a, b session.Item) int { return int(a.N - b.N) })
	return all
}

// checkHistory holds that each call has one result, in order and with no other item
// between, but for the calls of the turn that runs; that nothing is longer than the
// largest limit; and that the facts of a cut add up.
func (s *sequence) checkHistory(items []session.Item, running session.TurnID) {
	s.Helper()
	var open []session.Item
	for i, item := range items {
		r := item.ToolResult
		switch {
		case i > 0 && items[i-1].N == item.N:
			s.Fatalf("two items have the number %d", item.N)
		case item.ToolCall != nil:
			open = append(open, item)
			continue
		case r == nil:
			continue
		}
		at := slices.IndexFunc(open, func(call session.Item) bool { return call.N == r.CallN })
		if at < 0 || at > 0 && running == "" {
			s.Fatalf("item %d answers call %d, but call %d is next of %d", item.N, r.CallN, first(open), len(open))
		}
		open = slices.Delete(open, at, at+1)
		if r.Content != nil && len(*r.Content) > 16384 || r.Summary == "" || len(r.Summary) > 4096 {
			s.Fatalf("item %d has a summary of %d bytes and a content of %d", item.N, len(r.Summary), len(*r.Content))
		}
		if c := r.Truncated; c != nil && (c.KeptBytes+c.DroppedBytes != c.OriginalBytes || len(*r.Content) > c.Limit) {
			s.Fatalf("item %d: %+v, content of %d bytes", item.N, *c, len(*r.Content))
		}
	}
	for _, call := range open {
		if call.TurnID != running {
			s.Fatalf("call %d of turn %s, which has ended, has no result", call.N, call.TurnID)
		}
	}
}

func first(items []session.Item) int64 {
	if len(items) == 0 {
		return 0
	}
	return items[0].N
}

// checkNext holds that a request with a new input fits.
func (s *sequence) checkNext(history []session.Item) {
	s.Helper()
	n := int64(len(history) + 1)
	if len(history) > 0 {
		n = history[len(history)-1].N + 1
	}
	next := session.Item{N: n, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "next"}}
	h := worker.History{Items: append(slices.Clip(history), next)}
	if p := s.life.engine.Project(&h); !p.Fits {
		s.Fatalf("the next request does not fit: %+v", p)
	}
}

// checkEnds holds that no turn has failed for a reason that nobody gave it.
func (s *sequence) checkEnds() {
	s.Helper()
	for _, id := range s.turns {
		t, err := s.life.store.Turn(s.ctx, s.id, id)
		switch {
		case errors.Is(err, session.ErrNotFound): // the crash was first
		case err != nil:
			s.Fatal(err)
		case !t.State.Ended():
			s.Fatalf("turn %s is %s", id, t.State)
		}
	}
}

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
