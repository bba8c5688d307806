package stream

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

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
	st.written[5]++ // a hole
	st.write(5, "f")
	st.progress(4, "later")
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
		"tool.progress 3 kept", "tool.progress 4 other", "3.1 item.delta 5@0 e",
		"3.2 item.delta 5@2 f", "tool.progress 4 later"}
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
	st.progress(1, "three")
	if got, want := drain(t, first), []string{"tool.progress 1 three"}; !cmp.Equal(got, want) {
		t.Errorf("connected reader got %q, want %q", got, want)
	}
	want := []string{"tool.progress 1 two", "tool.progress 1 three"}
	if got := drain(t, second); !cmp.Equal(got, want) {
		t.Errorf("later reader got %q, want %q", got, want)
	}
}

func TestWaitingReaderHoldsNoEvent(t *testing.T) {
	st := newStage()
	s := st.topic.Subscribe(session.Cursor{})
	defer s.Close()
	item := &session.Item{N: 1}
	held := weak.Make(item)
	st.topic.Publish([]session.Event{{Type: session.EventItem, Seq: 1, Item: item}})
	if got, want := drain(t, s), []string{"1 item"}; !cmp.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	runtime.GC()
	if held.Value() != nil {
		t.Error("the item is still held")
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
