package host

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

const (
	// wedgedAfterFailures is how many turns in a row must fail for their size.
	wedgedAfterFailures = 3
	// maxSuspects bounds how many sessions are watched for that.
	maxSuspects = 10_000
)

type metrics struct {
	turns    *prometheus.CounterVec
	duration prometheus.Histogram

	mu       sync.Mutex         // guards suspects
	suspects map[session.ID]int // turns in a row that failed with request_too_large
}

func newMetrics(reg prometheus.Registerer, wedged func() float64) *metrics {
	m := &metrics{
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loadline_turns_total", Help: "Turns, by how they ended.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "loadline_turn_duration_seconds", Help: "Time from the start of a turn to its end.",
			Buckets: []float64{.01, .05, .25, 1, 5, 15, 60, 300, 1800},
		}),
		suspects: map[session.ID]int{},
	}
	for _, s := range []session.TurnState{session.TurnCompleted, session.TurnFailed, session.TurnCancelled, session.TurnInterrupted} {
		m.turns.WithLabelValues(string(s))
	}
	reg.MustRegister(m.turns, m.duration, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "loadline_sessions_wedged",
		Help: "Sessions whose running turn gave no sign of life for worker.stall_after, or whose last three turns failed with request_too_large.",
	}, wedged))
	return m
}

// ended counts a turn that has reached its end.
func (m *metrics) ended(t session.Turn) {
	m.turns.WithLabelValues(string(t.State)).Inc()
	if t.StartedAt != 0 {
		m.duration.Observe(t.EndedAt.Time().Sub(t.StartedAt.Time()).Seconds())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Error == nil || t.Error.Code != session.CodeRequestTooLarge {
		delete(m.suspects, t.SessionID)
	} else if len(m.suspects) < maxSuspects {
		m.suspects[t.SessionID]++
	}
}

func (m *metrics) forget(id session.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.suspects, id)
}

// countWedged counts at each scrape. It waits for no session.
func (h *Host) countWedged() float64 {
	h.metrics.mu.Lock()
	wedged := map[session.ID]bool{}
	for id, n := range h.metrics.suspects {
		if n >= wedgedAfterFailures {
			wedged[id] = true
		}
	}
	h.metrics.mu.Unlock()
	now := time.Now().UnixMicro()
	for _, l := range h.held() {
		if after := l.stallAfter.Load(); after > 0 && now-l.lastSign.Load() > after {
			wedged[l.id] = true
		}
	}
	return float64(len(wedged))
}
