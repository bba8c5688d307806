package store

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"loadline/internal/session"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppendTurn is a turn of text: two commits, six events.
func BenchmarkAppendTurn(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := openStore(b, b.TempDir())
			chats := make(chan *chat, writers)
			for range writers {
				chats <- newChat(b, s)
			}
			var turns atomic.Int64
			answer := strings.Repeat("token ", 20)
			b.SetParallelism((writers + 1) / 2)
			before := cpuTime()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c := <-chats
					c.say("what is in this folder?", answer)
					chats <- c
					turns.Add(1)
				}
			})
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(turns.Load()), "cpu-µs/turn")
			b.ReportMetric(float64(turns.Load()*7)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// longChat fills a session with items of a usual mix.
func longChat(tb testing.TB, s *Store, items int) *chat {
	c := newChat(tb, s)
	for c.n < int64(items) {
		t := c.newTurn("please look at the next file and say what it does")
		events := []session.Event{c.queued(t), c.started(&t), c.item(t.ID, userItem(t.Input))}
		for range 4 {
			call := c.item(t.ID, session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{
				Tool: "Read", Arguments: []byte(`{"path":"internal/store/store.go"}`),
			}})
			result := c.item(t.ID, session.Item{Kind: session.KindToolResult, ToolResult: &session.ToolResult{
				CallN: call.Item.N, Tool: "Read", Summary: "read 12 lines of internal/store/store.go",
				Content: session.Text(strings.Repeat("some line of code\n", 30)),
			}})
			events = append(events, call, c.step(&t, session.Usage{}), result)
		}
		c.must(append(events, c.item(t.ID, assistantItem("It opens the store.")), c.step(&t, session.Usage{}),
			c.ended(&t, session.TurnCompleted))...)
	}
	return c
}

func BenchmarkHistory10k(b *testing.B) {
	s := openStore(b, b.TempDir())
	c := longChat(b, s, 10_000)
	for b.Loop() {
		items, err := s.History(b.Context(), c.lease.SessionID)
		if err != nil || len(items) < 10_000 {
			b.Fatal(len(items), err)
		}
	}
}

func BenchmarkFirstPageOf10k(b *testing.B) {
	s := openStore(b, b.TempDir())
	c := longChat(b, s, 10_000)
	for b.Loop() {
		items, err := s.Items(b.Context(), c.lease.SessionID, 0, 200)
		if err != nil || len(items) != 200 {
			b.Fatal(len(items), err)
		}
	}
}

// BenchmarkStart opens a store of 10,000 sessions of 100 items.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	s := openStore(b, dir)
	fill(b, s, 10_000, 100)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := openStore(b, dir)
		if _, err := s.Unfinished(b.Context()); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// fill makes sessions, many in one commit.
func fill(tb testing.TB, s *Store, sessions, items int) {
	work := make(chan int)
	done := make(chan struct{})
	for range 64 {
		go func() {
			for range work {
				longChat(tb, s, items)
			}
			done <- struct{}{}
		}()
	}
	for i := range sessions {
		work <- i
	}
	close(work)
	for range 64 {
		<-done
	}
}
