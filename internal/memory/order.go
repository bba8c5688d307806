package memory

import (
	"context"
	"sync"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// order is the log of an engine whose history nobody keeps, and runs the calls of an
// answer one after the other as they stand in it: what the second of them writes may
// rest on the first.
type order struct {
	mu      sync.Mutex // guards the fields below
	open    map[int64]bool
	changed chan struct{} // closed when a call was answered; then there is another
}

func newOrder() *order { return &order{open: map[int64]bool{}, changed: make(chan struct{})} }

// Commit implements worker.Log.
func (o *order) Commit(_ context.Context, events []session.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, ev := range events {
		switch {
		case ev.Item == nil:
		case ev.Item.ToolCall != nil:
			o.open[ev.Item.N] = true
		case ev.Item.ToolResult != nil:
			delete(o.open, ev.Item.ToolResult.CallN)
			close(o.changed)
			o.changed = make(chan struct{})
		}
	}
	return nil
}

// Emit implements worker.Log.
func (o *order) Emit(session.Event) {}

// before waits until the calls before this one have their results.
func (o *order) before(ctx context.Context, call worker.Call) worker.Verdict {
	for {
		turn, changed := o.turnOf(call.N)
		if turn {
			return worker.Verdict{}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return worker.Verdict{} // the tool sees that itself
		}
	}
}

func (o *order) turnOf(n int64) (turn bool, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other := range o.open {
		if other < n {
			return false, o.changed
		}
	}
	return true, nil
}
