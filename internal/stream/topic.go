// Package stream carries the events of a session to its readers: first what is
// stored, then what happens, in one order, without a gap and without a double.
//
// Connected readers share one linked list. Each holds the place it has reached;
// what nobody needs any more is left to the garbage collector. Readers that come
// later, or come back, get stored events from the log, and the text that the model
// is writing from the runs that the topic keeps until the step ends.
package stream

import (
	"context"
	"slices"
	"sync"

	"loadline/internal/session"
)

const (
	// maxLagBytes is how much may wait for a reader that has not come back for
	// it, beyond the entry that made it fall behind.
	maxLagBytes = 1 << 20
	// maxRuns bounds the runs of text in one step. Only a model that changes from
	// item to item with nearly each piece gets there; the rest of that step's text
	// is not sent live, its items come whole.
	maxRuns = 1 << 15
)

// Log reads a session's stored events.
type Log interface {
	// Events returns those with after < seq <= upTo, in order: the first limit of
	// them at most, and at least one when there is one.
	Events(ctx context.Context, id session.ID, after, upTo int64, limit int) ([]session.Event, error)
}

// Topic is the stream of one session. It is safe for concurrent use.
type Topic struct {
	id      session.ID
	log     Log
	metrics *Metrics

	mu       sync.Mutex // guards the fields below, all entries and all runs
	lastSeq  int64      // of the newest published event
	runs     []*run     // the live text of the running step, in order; empty while it has none
	written  int64      // bytes that all entries so far are worth; readers' lag is measured by it
	tail     *entry     // the end of the list: empty, filled by the next append
	open     *entry     // the newest entry when it is a run, which the next delta may continue
	progress *entry     // the newest entry when it is a line of progress that nobody has read
	subs     []*Subscription
	closed   bool
}

// entry is one link of the list: an event, or a run of text.
type entry struct {
	next  *entry // nil while the entry is empty
	event session.Event
	run   *run
}

// NewTopic makes the stream of a session whose newest stored event is lastSeq, 0
// when it has none. No step of it may be running.
func NewTopic(id session.ID, lastSeq int64, log Log, m *Metrics) *Topic {
	return &Topic{id: id, log: log, metrics: m, lastSeq: lastSeq, tail: new(entry)}
}

// Publish sends stored events, whose numbers follow those published before
// without a hole. It is called after their commit, by one goroutine at a time. It
// never waits for a reader, and does nothing after Close.
func (t *Topic) Publish(events []session.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(events) == 0 {
		return
	}
	for _, ev := range events {
		t.append(ev)
		t.lastSeq = ev.Seq
		if t.endsText(&ev) {
			t.runs = nil
		}
	}
	t.notify()
}

// endsText reports whether the live text so far is void or replaced by items from
// ev on. The end of a queued turn does not touch the text of the running one.
func (t *Topic) endsText(ev *session.Event) bool {
	switch {
	case len(t.runs) == 0:
		return false
	case ev.Type == session.EventStepCompleted, ev.Type == session.EventStepRestarted:
		return true
	}
	return ev.Type.Terminal() && ev.TurnID == t.runs[0].event.TurnID
}

// Emit sends an event that is not stored: a delta or a tool's sign of life. It
// may be called at the same time as Publish, never waits for a reader, and does
// nothing after Close. Of a delta the caller sets everything but Seq and Offset;
// ev.Delta is not kept. A delta without text is not sent. A line of progress that
// nobody has read gives way to the next one of the same call.
func (t *Topic) Emit(ev session.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return
	case ev.Type == session.EventItemDelta:
		t.appendText(&ev)
	case t.replacesProgress(&ev):
		t.written += weight(&ev) - weight(&t.progress.event)
		t.progress.event = ev
	default:
		progress := t.append(ev)
		if ev.Type == session.EventToolProgress {
			t.progress = progress
		}
	}
	t.notify()
}

// replacesProgress reports whether ev is a newer line of the call whose last line
// nobody has read yet. So a chatty tool drives no reader away.
func (t *Topic) replacesProgress(ev *session.Event) bool {
	return t.progress != nil && ev.Type == session.EventToolProgress &&
		ev.Activity.ItemN == t.progress.event.Activity.ItemN
}

// append puts ev at the end of the list and returns its entry.
func (t *Topic) append(ev session.Event) *entry {
	e := t.push()
	e.event = ev
	t.written += weight(&ev)
	return e
}

// appendText adds a delta to the open run, or begins the next one.
func (t *Topic) appendText(ev *session.Event) {
	if ev.Delta.Text == "" {
		return
	}
	if t.open == nil || !t.open.run.continuedBy(ev) {
		if len(t.runs) == maxRuns {
			return
		}
		r := newRun(ev, t.lastSeq, t.liveBytes())
		e := t.push()
		e.run, t.open = r, e
		t.runs = append(t.runs, r)
		t.written += eventBytes
	}
	t.open.run.add(ev)
	t.written += int64(len(ev.Delta.Text))
}

// push fills the end of the list with an entry for its caller to set.
func (t *Topic) push() *entry {
	e := t.tail
	e.next = new(entry)
	t.tail, t.open, t.progress = e.next, nil, nil
	return e
}

// notify wakes the readers that had read everything, and takes the place of those
// that lag too far, so that they hold no memory until they notice.
func (t *Topic) notify() {
	for _, s := range t.subs {
		switch {
		case s.caughtUp:
			s.caughtUp, s.limit = false, t.written+maxLagBytes
			s.signal()
		case s.place != nil && t.written > s.limit:
			s.place = nil
			if !s.early {
				s.slow = true
				t.metrics.slowClosed.Inc()
			}
		}
	}
}

// Subscribe starts reading after c: what is stored, the text of the running step
// that c has not seen, one delta for each run, and then all that comes. It never
// fails: a cursor that this stream cannot have given is answered by a stream.reset.
// The caller closes the subscription.
func (t *Topic) Subscribe(c session.Cursor) *Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Subscription{topic: t, wake: make(chan struct{}, 1)}
	s.start(c)
	t.subs = append(t.subs, s)
	t.metrics.subscribers.Inc()
	return s
}

// Subscribers counts the open subscriptions.
func (t *Topic) Subscribers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subs)
}

// Close ends the stream, because its session is deleted or the server stops:
// subscriptions, later ones too, deliver what was published and then io.EOF.
func (t *Topic) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, s := range t.subs {
		s.signal()
	}
}

// remove forgets s. It may be called again.
func (t *Topic) remove(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.subs, s)
	if i < 0 {
		return
	}
	last := len(t.subs) - 1
	t.subs[i] = t.subs[last]
	t.subs[last] = nil
	t.subs = t.subs[:last]
	s.closed, s.place, s.caughtUp = true, nil, false
	s.signal()
	t.metrics.subscribers.Dec()
}
