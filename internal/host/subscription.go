package host

import (
	"context"
	"io"

	"loadline/internal/session"
)

// subscription holds its session in memory until it is closed.
type subscription struct {
	Subscription
	release func()
}

func (s *subscription) Close() {
	s.Subscription.Close()
	s.release()
}

// turnSubscription passes on the events of one turn.
type turnSubscription struct {
	Subscription
	turn session.TurnID
	over bool
}

func (s *turnSubscription) Next(ctx context.Context) ([]session.Event, error) {
	for !s.over {
		events, err := s.Subscription.Next(ctx)
		if err != nil {
			return nil, err
		}
		own := events[:0]
		for _, ev := range events {
			if ev.TurnID == s.turn && !s.over {
				own = append(own, ev)
				s.over = ev.Type.Terminal()
			}
		}
		if len(own) > 0 {
			return own, nil
		}
	}
	return nil, io.EOF
}
