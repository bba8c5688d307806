package stream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"loadline/internal/session"
)

const (
	testSession = session.ID("ses_test")
	running     = session.TurnID("trn_running")
	queued      = session.TurnID("trn_queued")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryLog holds stored events, seq 1 first.
type memoryLog struct {
	mu     sync.Mutex
	stored []session.Event
	before func() // called at the start of each read, when set
	err    error
	page   int // most events of one read; 0 is as many as are asked for
}

func (l *memoryLog) Events(_ context.Context, _ session.ID, after, upTo int64, limit int) ([]session.Event, error) {
	if l.before != nil {
		l.before()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	if l.page > 0 {
		limit = min(limit, l.page)
	}
	end := min(upTo, after+int64(limit), int64(len(l.stored)))
	if after >= end {
		return nil, nil
	}
	return append([]session.Event(nil), l.stored[after:end]...), nil
}

// onRead calls do at the start of the nth read, from 1.
func (l *memoryLog) onRead(nth int, do func()) {
	l.before = func() {
		if nth--; nth == 0 {
			do()
		}
	}
}

// stage is a topic over a log, and what a host does with both.
type stage struct {
	log     *memoryLog
	topic   *Topic
	reg     *prometheus.Registry
	at      session.Time
	written map[int64]int64 // bytes of each item's text
}

func newStage() *stage {
	st := &stage{log: &memoryLog{}, reg: prometheus.NewRegistry(), written: map[int64]int64{}}
	st.topic = NewTopic(testSession, 0, st.log, NewMetrics(st.reg))
	return st
}

// metrics are the values of all series, by name.
func (st *stage) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := st.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		values[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
	}
	return values
}

// publish stores events and publishes them as one batch.
func (st *stage) publish(events ...session.Event) {
	st.log.mu.Lock()
	for i := range events {
		events[i].Seq = int64(len(st.log.stored)) + 1
		events[i].SessionID = testSession
		st.log.stored = append(st.log.stored, events[i])
	}
	st.log.mu.Unlock()
	st.topic.Publish(events)
}

// event is a durable event of the running turn.
func event(types ...session.EventType) []session.Event {
	var events []session.Event
	for _, t := range types {
		events = append(events, session.Event{Type: t, TurnID: running})
	}
	return events
}

// write emits the next piece of an item.
func (st *stage) write(itemN int64, text string) {
	st.at++
	st.topic.Emit(session.Event{
		Type: session.EventItemDelta, SessionID: testSession, TurnID: running, At: st.at,
		Delta: &session.Delta{ItemN: itemN, Kind: session.KindAssistantMessage, AtByte: st.written[itemN], Text: text},
	})
	st.written[itemN] += int64(len(text))
}

func (st *stage) progress(itemN int64, text string) {
	st.topic.Emit(session.Event{
		Type: session.EventToolProgress, SessionID: testSession, TurnID: running,
		Activity: &session.Activity{ItemN: itemN, Tool: "Bash", Text: text},
	})
}

// show writes an event in short: id, type, what it carries.
func show(ev session.Event) string {
	line := strings.TrimSpace(ev.ID() + " " + string(ev.Type))
	switch {
	case ev.Delta != nil:
		line += fmt.Sprintf(" %d@%d %s", ev.Delta.ItemN, ev.Delta.AtByte, ev.Delta.Text)
	case ev.Activity != nil:
		line += fmt.Sprintf(" %d %s", ev.Activity.ItemN, ev.Activity.Text)
	case ev.Reset != nil:
		line += fmt.Sprintf(" from %d", ev.Reset.From)
	}
	return line
}

// drain reads what there is, without waiting.
func drain(t *testing.T, s *Subscription) []string {
	t.Helper()
	var lines []string
	for {
		events, err := s.poll(t.Context())
		if err != nil {
			return append(lines, err.Error())
		}
		if len(events) == 0 {
			return lines
		}
		for _, ev := range events {
			lines = append(lines, show(ev))
		}
	}
}
