package stream

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"loadline/internal/session"
)

// TestReadersAndWritersAtOnce lets real goroutines meet: one runs a turn, one
// queues others, one shows progress, and readers come and go, some of them slow.
func TestReadersAndWritersAtOnce(t *testing.T) {
	p := newPlay(t.Context())
	var readers, writers sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		leaves := i / 2 * 10 // percent of its reads
		readers.Go(func() { errs <- watch(p.joins(session.Cursor{Offset: -1}), leaves) })
	}
	writers.Go(func() { perform(p, 60) })
	writers.Go(func() {
		for range 300 {
			p.queue(session.EventTurnQueued, "later")
			p.queue(session.EventTurnCancelled, "never")
		}
	})
	writers.Go(func() {
		for range 1000 {
			p.work(1)
		}
	})
	writers.Wait()
	p.topic.Close()
	readers.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := p.topic.Subscribers(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

// perform runs steps of a turn.
func perform(p *play, steps int) {
	for range steps {
		for range rand.IntN(300) {
			p.speak(rand.IntN(3), "aé🦆"[:1+rand.IntN(2)*2])
		}
		switch rand.IntN(4) {
		case 0:
			p.restart()
		case 1:
			p.finish(session.EventTurnFailed, session.EventTurnStarted)
		default:
			p.finish(session.EventStepCompleted)
		}
	}
}

// watch reads to the end of the stream, leaving and coming back at random.
func watch(r *reader, leavePercent int) error {
	defer func() { r.sub.Close() }()
	for {
		if rand.IntN(100) < leavePercent {
			r.returns()
		}
		events, err := r.sub.Next(r.play.ctx)
		switch {
		case err == io.EOF:
			return r.check()
		case errors.Is(err, session.ErrSlow):
			r.returns()
		case err != nil:
			return err
		}
		for _, ev := range events {
			if err := r.apply(ev); err != nil {
				return fmt.Errorf("after %+v: %s: %w", r.cursor, show(ev), err)
			}
		}
	}
}
