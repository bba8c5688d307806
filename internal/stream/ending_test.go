package stream

import (
	"context"
	"io"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

// A reader whose context ends as the stream does still gets what was published.
func TestWhatWasPublishedComesBeforeTheEnd(t *testing.T) {
	topic := NewTopic(session.NewID(), 0, nil, NewMetrics(prometheus.NewRegistry()))
	sub := topic.Subscribe(session.Cursor{Offset: -1, Live: true})
	topic.Publish([]session.Event{{Type: session.EventTurnQueued, Seq: 1}})
	topic.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if events, err := sub.Next(ctx); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
	if _, err := sub.Next(ctx); err != io.EOF {
		t.Errorf("then %v, want the end", err)
	}
}
