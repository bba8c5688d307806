package stream

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

func TestStepEndsWhileTheLogIsRead(t *testing.T) {
	const stored = 2*pageEvents + 6 // events before the text, three pages
	old, more, end := "134.3 item.delta 1@0 old", "134.7 item.delta 1@3 more", "137 step.completed"
	next := []string{"137.3 item.delta 2@0 new", "138 memory.extract", "138.5 item.delta 2@3 er"}
	tests := []struct {
		name  string
		input int // bytes of a turn that is queued meanwhile
		want  []string
	}{
		{"the reader keeps the place of its coming", 0, []string{old, more, "135 item", "136 turn.queued", end}},
		{"the reader lags, and joins again later", maxLagBytes, []string{old, "135 item", "136 turn.queued", end}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := newStage()
			for range stored {
				st.publish(event(session.EventItem)...)
			}
			st.write(1, "old")
			st.log.onRead(2, func() {
				st.write(1, "more")
				st.publish(event(session.EventItem)...)
				st.publish(session.Event{Type: session.EventTurnQueued, Turn: &session.Turn{Input: strings.Repeat("x", tt.input)}})
				st.publish(event(session.EventStepCompleted)...)
				st.write(2, "new")
				st.publish(event(session.EventMemoryExtract)...)
				st.write(2, "er")
			})
			s := st.topic.Subscribe(session.Cursor{})
			defer s.Close()
			got := drain(t, s)
			if diff := cmp.Diff(append(tt.want, next...), got[stored:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := st.metrics(t)["loadline_stream_slow_closed_total"]; n != 0 {
				t.Errorf("slow_closed_total = %v, want 0", n)
			}
		})
	}
}

func TestReaderOfTheLogIsNotSlow(t *testing.T) {
	big := session.Event{Type: session.EventTurnQueued, TurnID: queued, Turn: &session.Turn{Input: strings.Repeat("x", maxLagBytes)}}
	tests := []struct {
		name string
		read int // the read of the log during which the reader loses its place; 0 is before
	}{{"before its first page", 0}, {"at its last page", 1}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := newStage()
			st.publish(event(session.EventTurnStarted)...)
			st.write(1, "ab")
			s := st.topic.Subscribe(session.Cursor{})
			defer s.Close()
			fallBehind := func() {
				st.publish(big)
				st.publish(big)
			}
			st.log.onRead(tt.read, fallBehind)
			if tt.read == 0 {
				fallBehind()
			}
			got := drain(t, s)
			st.write(1, "c")
			got = append(got, drain(t, s)...)
			want := []string{"1 turn.started", "1.2 item.delta 1@0 ab", "2 turn.queued", "3 turn.queued", "3.3 item.delta 1@2 c"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextReportsWhatTheLogSays(t *testing.T) {
	broken, cause := errors.New("disk on fire"), errors.New("server is leaving")
	tests := []struct {
		name   string
		err    error
		cancel bool // the context ends during the read
		want   error
	}{
		{"error", broken, false, broken},
		{"events missing", nil, false, session.ErrNotFound},
		{"cancelled", context.Canceled, true, cause},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			log := &memoryLog{err: tt.err}
			log.onRead(1, func() {
				if tt.cancel {
					cancel(cause)
				}
			})
			s := NewTopic(testSession, 3, log, NewMetrics(prometheus.NewRegistry())).Subscribe(session.Cursor{})
			defer s.Close()
			if _, err := s.Next(ctx); !errors.Is(err, tt.want) {
				t.Errorf("Next() = %v, want %v", err, tt.want)
			}
		})
	}
}
