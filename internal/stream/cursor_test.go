package stream

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

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
		{"an event in the text, and no byte of it", "7.0", []string{"7.5 item.delta 4@0 abあ", "7.6 item.delta 5@0 c", run3}},
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
		{"idle, last event and no text", func(st *stage) { st.publish(retried...) }, "2.0", nil},
		{"idle, text that is gone", func(st *stage) { st.publish(retried...) }, "2.5", []string{"stream.reset from 2"}},
		{"text begins without an event", func(st *stage) { st.write(1, "a") }, "0", []string{"0.1 item.delta 1@0 a"}},
		{"a delta without text", func(st *stage) {
			st.write(1, "a")
			st.write(2, "")
		}, "0", []string{"0.1 item.delta 1@0 a"}},
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
