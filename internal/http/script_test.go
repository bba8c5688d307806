package http

import (
	"context"
	"io"
	"sync"

	"loadline/internal/session"
)

// script is a subscription that yields what it is sent.
type script struct {
	events chan []session.Event // closed at the end of the stream
	closed chan struct{}        // closed by Close
	once   sync.Once
}

func newScript(batches ...[]session.Event) *script {
	s := &script{events: make(chan []session.Event, 1024), closed: make(chan struct{})}
	for _, batch := range batches {
		s.events <- batch
	}
	return s
}

func (s *script) Next(ctx context.Context) ([]session.Event, error) {
	select {
	case events, open := <-s.events:
		if !open {
			return nil, io.EOF
		}
		return events, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *script) Close() { s.once.Do(func() { close(s.closed) }) }
