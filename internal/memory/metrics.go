package memory

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

// scrapeTimeout bounds what a scrape waits for the store.
const scrapeTimeout = time.Second

// metrics is what extraction counts. What the store knows is read at each scrape, so
// that it is also right after a restart.
type metrics struct {
	runs  *prometheus.CounterVec
	items prometheus.Counter

	extractor *Extractor
	backlog   [2]*prometheus.Desc // items, bytes
	letters   *prometheus.Desc
	held      *prometheus.Desc

	mu   sync.Mutex // guards last
	last standing
}

// standing is what the store knows.
type standing struct{ items, bytes, letters int64 }

func newMetrics(reg prometheus.Registerer, x *Extractor) *metrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("loadline_memory_"+name, help, nil, nil)
	}
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loadline_memory_extract_runs_total", Help: "Passes of memory extraction, by how they ended.",
		}, []string{"outcome"}),
		items: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "loadline_memory_extract_items_total", Help: "Items of histories that extraction has consumed.",
		}),
		extractor: x,
		backlog: [2]*prometheus.Desc{
			desc("extract_backlog_items", "Items after the pointers of all sessions in projects with memory."),
			desc("extract_backlog_bytes", "Size of these items, as a model would read them."),
		},
		letters: desc("dead_letters", "Ranges of items that were set aside and not read again."),
		held:    desc("dead_letters_held", "Sessions whose pointer holds because no dead letter may be made yet."),
	}
	for _, o := range session.Outcomes() {
		m.runs.WithLabelValues(string(o))
	}
	reg.MustRegister(m.runs, m.items, m)
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.backlog[0]
	to <- m.backlog[1]
	to <- m.letters
	to <- m.held
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	s := m.standing()
	gauge := func(d *prometheus.Desc, v int64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	gauge(m.backlog[0], s.items)
	gauge(m.backlog[1], s.bytes)
	gauge(m.letters, s.letters)
	gauge(m.held, int64(m.extractor.gate.holds()))
}

// standing asks the store; when that cannot tell, it is what it told last.
func (m *metrics) standing() standing {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	now, err := m.ask(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.last = now
	}
	return m.last
}

func (m *metrics) ask(ctx context.Context) (s standing, err error) {
	store := m.extractor.Store
	for project := range m.extractor.Projects {
		items, bytes, err := store.BacklogTotal(ctx, project)
		if err != nil {
			return s, err
		}
		s.items, s.bytes = s.items+items, s.bytes+bytes
	}
	s.letters, err = store.CountDeadLetters(ctx)
	return s, err
}

// count notes a pass, and the items that it has consumed.
func (m *metrics) count(p *session.Pass, e *session.Extracted) {
	m.runs.WithLabelValues(string(p.Outcome)).Inc()
	if e.To != 0 || e.RedrivenTo != 0 {
		m.items.Add(float64(p.Items))
	}
}
