package worker

import (
	"context"
	"runtime/debug"
	"time"

	"loadline/internal/session"
)

// abandonAfter is how long a call may go on after its context has ended.
const abandonAfter = 2 * time.Second

// failure is how guarded work went wrong. The zero failure means that it returned;
// err is then what it returned.
type failure struct {
	err       error
	panicked  any
	stack     []byte
	abandoned bool
	late      <-chan struct{} // closed when abandoned work returns after all
}

// guard runs work and contains it: a panic is returned, and work that has not
// returned abandonAfter its context ended is abandoned; it may go on in its own
// goroutine, but what it returns is dropped.
func guard(ctx context.Context, work func(context.Context) (session.Output, error)) (session.Output, failure) {
	type returned struct {
		out session.Output
		failure
	}
	done := make(chan returned, 1)
	late := make(chan struct{})
	go func() {
		defer close(late)
		defer func() {
			if p := recover(); p != nil {
				done <- returned{failure: failure{panicked: p, stack: debug.Stack()}}
			}
		}()
		out, err := work(ctx)
		done <- returned{out: out, failure: failure{err: err}}
	}()
	select {
	case r := <-done:
		return r.out, r.failure
	case <-ctx.Done():
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.out, r.failure
	case <-timer.C:
		return session.Output{}, failure{abandoned: true, late: late}
	}
}
