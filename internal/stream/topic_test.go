package stream

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

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
