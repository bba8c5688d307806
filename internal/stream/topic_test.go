package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
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

// memoryLog holds stored events, seq 1 first. before, when set, is called at the
// start of each read.
type memoryLog struct {
	mu     sync.Mutex
	stored []session.Event
	before func()
	err    error
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
	end := min(upTo, after+int64(limit), int64(len(l.stored)))
	if after >= end {
		return nil, nil
	}
	return append([]session.Event(nil), l.stored[after:end]...), nil
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

// inStep is a session in the middle of its second step: events 1 to 7, of which
// turn.queued came between two pieces of text.
func inStep() *stage {
	st := newStage()
	st.publish(event(session.EventTurnQueued, session.EventTurnStarted, session.EventItem)...)
	st.write(2, "first")
	st.publish(event(session.EventItem, session.EventStepCompleted)...)
	st.topic.Emit(session.Event{Type: session.EventToolStarted, TurnID: running, Activity: &session.Activity{ItemN: 2}})
	st.publish(event(session.EventItem)...) // 6
	st.write(4, "ab")
	st.write(4, "あ")
	st.write(5, "c")
	st.publish(session.Event{Type: session.EventTurnQueued, TurnID: queued}) // 7
	st.write(5, "de")
	return st
}

func TestCursorInRunningStep(t *testing.T) {
	run1, run2, run3 := "6.5 item.delta 4@0 abあ", "6.6 item.delta 5@0 c", "7.8 item.delta 5@1 de"
	var stored []string
	for i, name := range []session.EventType{session.EventTurnQueued, session.EventTurnStarted, session.EventItem, session.EventItem,
		session.EventStepCompleted, session.EventItem, session.EventTurnQueued} {
		stored = append(stored, fmt.Sprintf("%d %s", i+1, name))
	}
	from := func(after int) []string { // the stored events after one, then the running text in its place
		return append(append([]string{}, stored[after:6]...), run1, run2, stored[6], run3)
	}
	tests := []struct {
		name, cursor string
		want         []string
	}{
		{"none is everything", "", from(0)},
		{"zero is everything", "0", from(0)},
		{"an offset at the beginning is everything", "0.9", from(0)},
		{"a finished step", "2", from(2)},
		{"text of a finished step", "3.4", from(3)},
		{"beyond the text of a finished step", "3.99", from(3)},
		{"the last event before the text", "6", from(6)},
		{"no byte of the text", "6.0", from(6)},
		{"within a run", "6.1", []string{"6.5 item.delta 4@1 bあ", run2, stored[6], run3}},
		{"before a wide rune", "6.2", []string{"6.5 item.delta 4@2 あ", run2, stored[6], run3}},
		{"end of a run", "6.5", []string{run2, stored[6], run3}},
		{"end of the text before an event", "6.6", []string{stored[6], run3}},
		{"an event in the text", "7", []string{run3}},
		{"the same with its offset", "7.6", []string{run3}},
		{"within the last run", "7.7", []string{"7.8 item.delta 5@2 e"}},
		{"the end", "7.8", nil},
		{"an event and less text than came before it", "7.5", []string{"7.6 item.delta 5@0 c", run3}},
		{"inside a rune", "6.3", append([]string{"stream.reset from 6"}, from(6)...)},
		{"beyond the text before the next event", "6.7", append([]string{"stream.reset from 6"}, from(6)...)},
		{"beyond the text", "7.9", []string{"stream.reset from 7", "7.5 item.delta 4@0 abあ", "7.6 item.delta 5@0 c", run3}},
		{"beyond the last event", "8", append([]string{"stream.reset from 0"}, from(0)...)},
		{"far beyond the last event", "800.1", append([]string{"stream.reset from 0"}, from(0)...)},
		{"now", "now", []string{"7.5 item.delta 4@0 abあ", "7.6 item.delta 5@0 c", run3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := inStep()
			cursor, err := session.ParseCursor(tt.cursor)
			if err != nil {
				t.Fatal(err)
			}
			s := st.topic.Subscribe(cursor)
			defer s.Close()
			if diff := cmp.Diff(tt.want, drain(t, s)); diff != "" {
				t.Errorf("events after %q (-want +got):\n%s", tt.cursor, diff)
			}
			st.write(5, "f")
			st.publish(event(session.EventItem)...)
			want := []string{"7.9 item.delta 5@3 f", "8 item"}
			if diff := cmp.Diff(want, drain(t, s)); diff != "" {
				t.Errorf("live events after %q (-want +got):\n%s", tt.cursor, diff)
			}
		})
	}
}

func TestCursorBetweenSteps(t *testing.T) {
	retried := event(session.EventTurnStarted, session.EventStepRetrying)
	tests := []struct {
		name   string
		build  func(*stage)
		cursor string
		want   []string
	}{
		{"new session", func(*stage) {}, "0", nil},
		{"new session, unknown event", func(*stage) {}, "1", []string{"stream.reset from 0"}},
		{"new session, now", func(*stage) {}, "now", nil},
		{"idle, last event", func(st *stage) { st.publish(retried...) }, "2", nil},
		{"idle, text that is gone", func(st *stage) { st.publish(retried...) }, "2.5", []string{"stream.reset from 2"}},
		{"text begins without an event", func(st *stage) { st.write(1, "a") }, "0", []string{"0.1 item.delta 1@0 a"}},
		{"voided text", func(st *stage) {
			st.publish(retried...)
			st.write(1, "void")
			st.publish(event(session.EventStepRestarted)...)
			st.written[1] = 0
			st.write(1, "new")
		}, "2.3", []string{"3 step.restarted", "3.3 item.delta 1@0 new"}},
		{"ended turn", func(st *stage) {
			st.publish(retried...)
			st.write(1, "half")
			st.publish(event(session.EventItem, session.EventTurnCancelled)...)
		}, "2.3", []string{"3 item", "4 turn.cancelled"}},
		{"the end of a queued turn leaves the text", func(st *stage) {
			st.publish(retried...)
			st.write(1, "ab")
			st.publish(session.Event{Type: session.EventTurnCancelled, TurnID: queued})
			st.write(1, "c")
		}, "2.1", []string{"2.2 item.delta 1@1 b", "3 turn.cancelled", "3.3 item.delta 1@2 c"}},
		{"retrying leaves the text", func(st *stage) {
			st.publish(retried...)
			st.write(1, "ab")
			st.publish(event(session.EventStepRetrying)...)
		}, "2.1", []string{"2.2 item.delta 1@1 b", "3 step.retrying"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := newStage()
			tt.build(st)
			cursor, err := session.ParseCursor(tt.cursor)
			if err != nil {
				t.Fatal(err)
			}
			s := st.topic.Subscribe(cursor)
			defer s.Close()
			if diff := cmp.Diff(tt.want, drain(t, s)); diff != "" {
				t.Errorf("events after %q (-want +got):\n%s", tt.cursor, diff)
			}
		})
	}
}

func TestLaggingReaderGetsOneDeltaForEachRun(t *testing.T) {
	st := newStage()
	s := st.topic.Subscribe(session.Cursor{Live: true})
	defer s.Close()
	st.write(1, "a")
	if got, want := drain(t, s), []string{"0.1 item.delta 1@0 a"}; !cmp.Equal(got, want) {
		t.Errorf("first read %q, want %q", got, want)
	}
	for range 5 {
		st.write(1, "b")
	}
	st.write(2, "c")
	st.write(2, "d")
	st.publish(event(session.EventItem, session.EventItem, session.EventStepCompleted)...)
	st.progress(3, "lost")
	st.progress(3, "kept")
	st.progress(4, "other")
	st.write(5, "e")
	events, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if events[0].At != 6 {
		t.Errorf("a coalesced delta is dated %d, want that of its last piece, 6", events[0].At)
	}
	var got []string
	for _, ev := range events {
		got = append(got, show(ev))
	}
	want := []string{"0.6 item.delta 1@1 bbbbb", "0.8 item.delta 2@0 cd", "1 item", "2 item", "3 step.completed",
		"tool.progress 3 kept", "tool.progress 4 other", "3.1 item.delta 5@0 e"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSignsOfLifeReachConnectedReadersOnly(t *testing.T) {
	st := newStage()
	first := st.topic.Subscribe(session.Cursor{})
	defer first.Close()
	st.progress(1, "one")
	second := st.topic.Subscribe(session.Cursor{})
	defer second.Close()
	st.progress(1, "two")
	if got, want := drain(t, first), []string{"tool.progress 1 one", "tool.progress 1 two"}; !cmp.Equal(got, want) {
		t.Errorf("connected reader got %q, want %q", got, want)
	}
	if got, want := drain(t, second), []string{"tool.progress 1 two"}; !cmp.Equal(got, want) {
		t.Errorf("later reader got %q, want %q", got, want)
	}
}

func TestStepsThatEndWhileTheLogIsRead(t *testing.T) {
	st := newStage()
	for range 2*pageEvents + 7 {
		st.publish(event(session.EventItem)...)
	}
	st.write(1, "old")
	reads := 0
	st.log.before = func() {
		if reads++; reads == 2 {
			st.publish(event(session.EventItem, session.EventStepCompleted)...)
			st.write(2, "new")
			st.publish(event(session.EventMemoryExtract)...)
			st.write(2, "er")
		}
	}
	s := st.topic.Subscribe(session.Cursor{})
	defer s.Close()
	got := drain(t, s)
	last := int64(2*pageEvents + 9)
	var want []string
	for _, ev := range st.log.stored[:last] {
		want = append(want, show(ev))
	}
	want = append(want, fmt.Sprintf("%d.3 item.delta 2@0 new", last), fmt.Sprintf("%d memory.extract", last+1),
		fmt.Sprintf("%d.5 item.delta 2@3 er", last+1))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNextReportsWhatTheLogSays(t *testing.T) {
	broken := errors.New("disk on fire")
	tests := []struct {
		name string
		log  *memoryLog
		want error
	}{
		{"error", &memoryLog{err: broken}, broken},
		{"events missing", &memoryLog{}, session.ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewTopic(testSession, 3, tt.log, NewMetrics(prometheus.NewRegistry())).Subscribe(session.Cursor{})
			defer s.Close()
			if _, err := s.Next(t.Context()); !errors.Is(err, tt.want) {
				t.Errorf("Next() = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestNextWaits(t *testing.T) {
	cause := errors.New("server is leaving")
	tests := []struct {
		name string
		do   func(st *stage, s *Subscription, cancel context.CancelCauseFunc)
		want string
	}{
		{"for a stored event", func(st *stage, _ *Subscription, _ context.CancelCauseFunc) { st.publish(event(session.EventItem)...) }, "1 item"},
		{"for text", func(st *stage, _ *Subscription, _ context.CancelCauseFunc) { st.write(1, "x") }, "0.1 item.delta 1@0 x"},
		{"until its context ends", func(_ *stage, _ *Subscription, cancel context.CancelCauseFunc) { cancel(cause) }, cause.Error()},
		{"until the topic closes", func(st *stage, _ *Subscription, _ context.CancelCauseFunc) { st.topic.Close() }, io.EOF.Error()},
		{"until it is closed", func(_ *stage, s *Subscription, _ context.CancelCauseFunc) { s.Close() }, io.EOF.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage()
				s := st.topic.Subscribe(session.Cursor{})
				defer s.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				got := ""
				go func() {
					events, err := s.Next(ctx)
					if err != nil {
						got = err.Error()
						return
					}
					got = show(events[0])
				}()
				synctest.Wait()
				if got != "" {
					t.Fatalf("Next did not wait: %s", got)
				}
				tt.do(st, s, cancel)
				synctest.Wait()
				if got != tt.want {
					t.Errorf("Next() = %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestCloseDeliversWhatWasPublished(t *testing.T) {
	st := newStage()
	early := st.topic.Subscribe(session.Cursor{})
	defer early.Close()
	st.publish(event(session.EventItem, session.EventTurnCompleted)...)
	st.topic.Close()
	st.publish(event(session.EventItem)...)
	st.write(1, "late")
	late := st.topic.Subscribe(session.Cursor{})
	defer late.Close()
	want := []string{"1 item", "2 turn.completed", io.EOF.Error()}
	for _, s := range []*Subscription{early, late} {
		if diff := cmp.Diff(want, drain(t, s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestSlowReader(t *testing.T) {
	big := func(bytes int) session.Event {
		return session.Event{Type: session.EventItem, TurnID: running,
			Item: &session.Item{UserMessage: &session.UserMessage{Text: strings.Repeat("x", bytes)}}}
	}
	tests := []struct {
		name string
		do   func(*stage)
		slow bool
	}{
		{"one event over the bound", func(st *stage) { st.publish(big(9 * maxLagBytes)) }, false},
		{"one batch over the bound", func(st *stage) { st.publish(big(maxLagBytes), big(maxLagBytes)) }, false},
		{"one piece of text over the bound", func(st *stage) { st.write(1, strings.Repeat("x", 2*maxLagBytes)) }, false},
		{"the bound beyond a batch", func(st *stage) {
			st.publish(big(maxLagBytes))
			st.publish(big(maxLagBytes - eventBytes))
		}, false},
		{"over the bound beyond a batch", func(st *stage) {
			st.publish(big(1))
			st.publish(big(maxLagBytes - eventBytes + 1))
		}, true},
		{"text over the bound", func(st *stage) {
			for range maxLagBytes/1024 + 2 {
				st.write(1, strings.Repeat("x", 1024))
			}
		}, true},
		{"many small events", func(st *stage) {
			for range maxLagBytes/eventBytes + 2 {
				st.publish(event(session.EventStepRetrying)...)
			}
		}, true},
		{"a chatty tool", func(st *stage) {
			for range 10 * maxLagBytes / eventBytes {
				st.progress(1, "line")
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := newStage()
			s := st.topic.Subscribe(session.Cursor{})
			defer s.Close()
			tt.do(st)
			_, err := s.Next(t.Context())
			if tt.slow != errors.Is(err, session.ErrSlow) {
				t.Errorf("Next() error = %v, want slow: %t", err, tt.slow)
			}
			if held := s.place != nil; held == tt.slow {
				t.Errorf("subscription holds events: %t, want %t", held, !tt.slow)
			}
			want := map[bool]float64{true: 1}[tt.slow]
			if got := st.metrics(t)["loadline_stream_slow_closed_total"]; got != want {
				t.Errorf("slow_closed_total = %v, want %v", got, want)
			}
		})
	}
}

func TestJoiningALongTextIsNotSlow(t *testing.T) {
	st := newStage()
	for range 8 {
		st.write(1, strings.Repeat("x", maxLagBytes))
	}
	s := st.topic.Subscribe(session.Cursor{Offset: 5})
	defer s.Close()
	st.write(1, "y")
	events, err := s.Next(t.Context())
	if err != nil || len(events) != 1 || events[0].Delta.AtByte != 5 || len(events[0].Delta.Text) != 8*maxLagBytes-5 {
		t.Fatalf("Next() = %d events, %v, want one delta with the whole text from byte 5", len(events), err)
	}
}

func TestRunsOfAStepAreBounded(t *testing.T) {
	st := newStage()
	s := st.topic.Subscribe(session.Cursor{})
	defer s.Close()
	for i := range int64(2 * maxRuns) {
		st.write(1+i%2, "x")
		if i%100 == 0 {
			drain(t, s)
		}
	}
	if len(st.topic.runs) != maxRuns {
		t.Errorf("the topic keeps %d runs, want %d", len(st.topic.runs), maxRuns)
	}
	st.publish(event(session.EventItem, session.EventItem, session.EventStepCompleted)...)
	st.write(3, "again")
	lines := drain(t, s)
	if got, want := lines[len(lines)-1], "3.5 item.delta 3@0 again"; got != want {
		t.Errorf("after the step the reader gets %q, want %q", got, want)
	}
}

func TestMetricsCountSubscriptions(t *testing.T) {
	st := newStage()
	a, b := st.topic.Subscribe(session.Cursor{}), st.topic.Subscribe(session.Cursor{})
	check := func(want int) {
		t.Helper()
		if got := st.topic.Subscribers(); got != want {
			t.Errorf("Subscribers() = %d, want %d", got, want)
		}
		if got := st.metrics(t)["loadline_stream_subscribers"]; got != float64(want) {
			t.Errorf("stream_subscribers = %v, want %d", got, want)
		}
	}
	check(2)
	a.Close()
	a.Close()
	check(1)
	if _, err := a.Next(t.Context()); err != io.EOF {
		t.Errorf("Next() after Close = %v, want io.EOF", err)
	}
	b.Close()
	check(0)
}

func TestMetricsExistFromTheStart(t *testing.T) {
	want := map[string]float64{"loadline_stream_subscribers": 0, "loadline_stream_slow_closed_total": 0}
	if diff := cmp.Diff(want, newStage().metrics(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
