package stream

import (
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

// speakTo emits n deltas of four bytes, in answers of 500. After each it calls wait.
func speakTo(topic *Topic, n int, wait func()) {
	var at int64
	ev := session.Event{Type: session.EventItemDelta, SessionID: testSession, TurnID: running,
		Delta: &session.Delta{ItemN: 1, Kind: session.KindAssistantMessage, Text: "word"}}
	for i := range n {
		ev.Delta.AtByte = at
		topic.Emit(ev)
		at += int64(len(ev.Delta.Text))
		if i%500 == 499 {
			topic.Publish([]session.Event{{Type: session.EventStepCompleted, Seq: int64(i/500) + 1, TurnID: running}})
			at = 0
			wait()
		}
	}
}

// readToEnd counts the bytes of text that reach a reader, and calls done at the end
// of each answer.
func readToEnd(tb testing.TB, s *Subscription, done func()) (textBytes int) {
	defer s.Close()
	for {
		events, err := s.Next(tb.Context())
		if err != nil {
			if err != io.EOF {
				tb.Error(err)
			}
			return textBytes
		}
		for i := range events {
			if d := events[i].Delta; d != nil {
				textBytes += len(d.Text)
			} else {
				done()
			}
		}
	}
}

func BenchmarkEmitAndRead(b *testing.B) {
	for _, bm := range []struct {
		name   string
		topics int
	}{{"1 topic", 1}, {"8 topics", 8}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			metrics := NewMetrics(prometheus.NewRegistry())
			var wg sync.WaitGroup
			for range bm.topics {
				topic := NewTopic(testSession, 0, &memoryLog{}, metrics)
				s := topic.Subscribe(session.Cursor{})
				n := b.N/bm.topics + 1
				read := make(chan struct{}, 100) // answers that the reader may lag behind
				wg.Go(func() {
					speakTo(topic, n, func() { read <- struct{}{} })
					topic.Close()
				})
				wg.Go(func() {
					if got := readToEnd(b, s, func() { <-read }); got != 4*n {
						b.Errorf("read %d bytes of text, want %d", got, 4*n)
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkEmitUnread(b *testing.B) {
	b.ReportAllocs()
	speakTo(NewTopic(testSession, 0, &memoryLog{}, NewMetrics(prometheus.NewRegistry())), b.N, func() {})
}

// TestIdleSubscriptionIsSmall counts what a reader holds who has read something
// and waits for more.
func TestIdleSubscriptionIsSmall(t *testing.T) {
	const readers, limit = 1000, 1024
	st := newStage()
	subs := make([]*Subscription, readers)
	before := heapBytes()
	for i := range subs {
		subs[i] = st.topic.Subscribe(session.Cursor{Live: true})
	}
	st.publish(event(session.EventTurnStarted, session.EventItem, session.EventItem, session.EventStepCompleted)...)
	st.write(1, "text")
	for _, s := range subs {
		for range 3 { // a batch of many, one of one, and nothing
			drain(t, s)
			st.write(1, "x")
		}
		drain(t, s)
	}
	each := (heapBytes() - before) / readers
	for _, s := range subs {
		s.Close()
	}
	if each > limit {
		t.Errorf("an idle subscription holds %d bytes, want at most %d", each, limit)
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
