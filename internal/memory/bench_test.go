package memory

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loadline/internal/session"
)

// backlogItems is a history like that of long sessions: a third of it tool calls with
// their results.
func backlogItems(n int) (items []session.Item) {
	content := strings.Repeat("content ", 256)
	for len(items) < n {
		at := int64(len(items))
		items = append(items,
			user(fmt.Sprintf("Please do step %d, and mind that the key of the door is green.", at)),
			call("Read", `{"path":"a/b/c.go"}`), result(at+2, "Read", "read 120 lines of a/b/c.go", content, false),
			call("Grep", `{"pattern":"x"}`), result(at+4, "Grep", "Grep: 12 matches in 3 files", content, false),
			assistant(strings.Repeat("Here is what I found. ", 10)),
		)
	}
	return items[:n]
}

// The bound is 2 s and 64 MiB for 50,000 items, the model's time left out.
func BenchmarkBacklogOf50000Items(b *testing.B) {
	w := newWorld(b, setup{})
	for b.Loop() {
		b.StopTimer()
		id := w.session(user("first"))
		for range 50 {
			w.add(id, backlogItems(1000)...)
		}
		var peak atomic.Uint64
		stop := watchHeap(&peak)
		b.StartTimer()
		w.settle(id)
		b.StopTimer()
		stop()
		b.ReportMetric(float64(peak.Load())/(1<<20), "MiB-peak")
		b.ReportMetric(float64(len(w.passes(id))), "passes")
		if w.backlog(id).Items != 0 {
			b.Fatal("it is not read to its end")
		}
		b.StartTimer()
	}
}

// watchHeap looks at the heap until it is stopped; peak is what it grew by at most.
func watchHeap(peak *atomic.Uint64) (stop func()) {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				if now.HeapAlloc > before.HeapAlloc {
					peak.Store(max(peak.Load(), now.HeapAlloc-before.HeapAlloc))
				}
			}
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}
