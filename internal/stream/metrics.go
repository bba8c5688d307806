package stream

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts the readers of all topics. It is safe for concurrent use.
type Metrics struct {
	subscribers prometheus.Gauge
	slowClosed  prometheus.Counter
}

// NewMetrics registers the series with reg. Both exist from then on, with 0.
// Registering them twice is a programmer's mistake and panics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	factory := promauto.With(reg)
	return &Metrics{
		subscribers: factory.NewGauge(prometheus.GaugeOpts{
			Name: "loadline_stream_subscribers",
			Help: "Open subscriptions to the events of sessions.",
		}),
		slowClosed: factory.NewCounter(prometheus.CounterOpts{
			Name: "loadline_stream_slow_closed_total",
			Help: "Subscriptions that ended because their reader lagged too far.",
		}),
	}
}
