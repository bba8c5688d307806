package stream

import (
	"context"
	"fmt"
	"io"

	"loadline/internal/session"
)

const (
	// pageEvents is how many stored events a reader takes from the log at once.
	pageEvents = 64
	// keptEvents is the size of a batch that a waiting reader keeps for the next.
	keptEvents = 2
)

// Subscription is one reader's way through a topic.
type Subscription struct {
	topic *Topic
	wake  chan struct{} // holds one signal, sent when a waiting Next should look again

	// These belong to the goroutine that calls Next.
	unknown  *session.Event  // the stream.reset to send first; nil when the cursor was a good one
	after    int64           // the last durable event delivered from the log, or the cursor
	textFrom int64           // the last one before the text in pending
	upTo     int64           // the last one that comes from the log; those after it come from the list
	pending  []session.Event // the live text of the moment of joining, by seq
	batch    []session.Event // reused by each Next
	deltas   []session.Delta // of batch

	// These are guarded by topic.mu.
	place    *entry // the next entry to read; nil when it lost its place
	read     int    // bytes of place's run already read
	caughtUp bool   // nothing is behind place
	early    bool   // still reads the log before textFrom: when it lags it joins again, later
	limit    int64  // the value of topic.written beyond which the reader lags too far
	slow     bool
	closed   bool
}

// start places s after c. The topic is locked.
func (s *Subscription) start(c session.Cursor) {
	t := s.topic
	s.after = c.Seq
	var seen int64 // bytes of the live text
	switch {
	case c.Live:
		s.after = t.lastSeq
	case c.Seq > t.lastSeq:
		s.reset(0)
	case c.Seq < t.textSeq():
		// The cursor's own text, if it had any, is finished or void.
	case c.Offset < 0:
		seen = t.bytesBefore(c.Seq)
	case t.holds(c):
		seen = c.Offset
	default:
		s.reset(c.Seq)
	}
	s.join(seen)
}

// reset tells the reader that its cursor is unknown and goes on after from.
func (s *Subscription) reset(from int64) {
	s.after = from
	s.unknown = &session.Event{
		Type:      session.EventStreamReset,
		SessionID: s.topic.id,
		At:        session.Now(),
		Reset:     &session.Reset{From: from},
	}
}

// join places s at the end of the list. What was published since s.after it reads
// from the log; the live text beyond byte seen is pending. The topic is locked.
func (s *Subscription) join(seen int64) {
	t := s.topic
	s.pending = nil
	for _, r := range t.runs {
		if r.end() <= seen {
			continue
		}
		ev, d := r.rest(int(max(0, seen-r.start.Offset)), s.after)
		ev.Delta = &d
		s.pending = append(s.pending, ev)
	}
	s.textFrom, s.upTo = t.textSeq(), t.lastSeq
	s.early = s.after < s.textFrom
	s.place, s.read, s.caughtUp = t.tail, 0, true
	if t.open != nil {
		s.place, s.read = t.open, t.open.run.text.Len()
	}
	t.progress = nil
}

// Next waits for the next events and returns them in order, at least one. The
// slice and the deltas in it are reused by the next call. The error is io.EOF at
// the end of the stream, session.ErrSlow when this reader lagged too far, the
// cause of ctx when that ended, or the log's. One goroutine at a time calls it.
func (s *Subscription) Next(ctx context.Context) ([]session.Event, error) {
	for {
		events, err := s.poll(ctx)
		if len(events) > 0 || err != nil {
			return events, err // what was published comes first, also when the server stops
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
}

// poll returns what there is now.
func (s *Subscription) poll(ctx context.Context) ([]session.Event, error) {
	events, upTo, err := s.take()
	if s.after < upTo {
		return s.readLog(ctx, upTo)
	}
	return events, err
}

// take returns what the topic holds for s, or up to which event s must read the
// log first.
func (s *Subscription) take() (events []session.Event, upTo int64, err error) {
	t := s.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case s.closed:
		return nil, 0, io.EOF
	case s.slow:
		return nil, 0, session.ErrSlow
	case s.unknown != nil:
		events, s.unknown = []session.Event{*s.unknown}, nil
		return events, 0, nil
	case s.place == nil && s.after < t.textSeq():
		return nil, t.textSeq(), nil
	case s.place == nil:
		s.join(0)
	}
	s.early = s.after < s.textFrom
	switch {
	case s.early:
		return nil, s.textFrom, nil
	case s.after < s.upTo:
		return nil, s.upTo, nil
	case len(s.pending) > 0:
		events, s.pending = s.pending, nil
		return events, 0, nil
	}
	s.pending = nil
	events = s.gather()
	if len(events) == 0 && t.closed {
		return nil, 0, io.EOF
	}
	return events, 0, nil
}

// gather reads the list to its end. The topic is locked.
func (s *Subscription) gather() []session.Event {
	s.reuse()
	for s.place.next != nil {
		e := s.place
		if e.run == nil {
			s.batch = append(s.batch, e.event)
		} else if s.read < e.run.text.Len() {
			ev, d := e.run.rest(s.read, 0)
			s.deltas = append(s.deltas, d)
			ev.Delta = &s.deltas[len(s.deltas)-1]
			s.batch = append(s.batch, ev)
		}
		if e == s.topic.open {
			s.read = e.run.text.Len()
			break
		}
		s.place, s.read = e.next, 0
	}
	s.caughtUp, s.topic.progress = true, nil
	return s.batch
}

// reuse empties the batch, so that a reader who then waits holds no event and
// little memory.
func (s *Subscription) reuse() {
	if cap(s.batch) > keptEvents {
		s.batch, s.deltas = nil, nil
		return
	}
	clear(s.batch)
	clear(s.deltas)
	s.batch, s.deltas = s.batch[:0], s.deltas[:0]
}

// readLog returns the next page of stored events, none after upTo, with the live
// text that belongs between them.
func (s *Subscription) readLog(ctx context.Context, upTo int64) ([]session.Event, error) {
	t := s.topic
	page, err := t.log.Events(ctx, t.id, s.after, upTo, pageEvents)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("read events %d to %d: %w", s.after+1, upTo, err)
	case len(page) == 0:
		return nil, fmt.Errorf("read events %d to %d: the log has none: %w", s.after+1, upTo, session.ErrNotFound)
	}
	s.after = page[len(page)-1].Seq
	return s.merge(page), nil
}

// merge puts what is pending between the events of page, each delta before the
// first event with a higher number.
func (s *Subscription) merge(page []session.Event) []session.Event {
	if len(s.pending) == 0 {
		return page
	}
	merged := make([]session.Event, 0, len(page)+len(s.pending))
	for _, ev := range page {
		n := 0
		for n < len(s.pending) && s.pending[n].Seq < ev.Seq {
			n++
		}
		merged = append(merged, s.pending[:n]...)
		merged = append(merged, ev)
		s.pending = s.pending[n:]
	}
	return merged
}

// signal wakes Next, now or when it waits the next time.
func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the subscription; a Next that waits returns io.EOF. It may be called
// again, and by any goroutine.
func (s *Subscription) Close() { s.topic.remove(s) }
