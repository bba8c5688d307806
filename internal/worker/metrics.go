package worker

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

// otherTool is the label of tools that are not registered.
const otherTool = "other"

// outcome is how a tool call ended, as metrics count it.
type outcome string

const (
	outcomeOK           outcome = "ok"
	outcomeFailed       outcome = "failed"
	outcomeTimeout      outcome = "timeout"
	outcomeDenied       outcome = "denied"
	outcomePanic        outcome = "panic"
	outcomeCancelled    outcome = "cancelled"
	outcomeUnknownTool  outcome = "unknown_tool"
	outcomeBadArguments outcome = "bad_arguments"
	outcomeInterrupted  outcome = "interrupted"
)

// stepOutcome is how one model request ended, as metrics count it.
type stepOutcome string

const (
	stepOK        stepOutcome = "ok"
	stepRetried   stepOutcome = "retried"
	stepFailed    stepOutcome = "failed"
	stepCancelled stepOutcome = "cancelled"
)

// compactOutcome is how old messages were summed up, as metrics count it.
type compactOutcome string

const (
	compactedByModel compactOutcome = "model"
	compactedByRule  compactOutcome = "rule"
)

// Who waits for a minute's input tokens, as metrics count it.
const (
	waitedTurn   = "turn"
	waitedMemory = "memory"
)

// Metrics is what all engines of a server count together.
type Metrics struct {
	tools map[string]bool

	outputBytes    *prometheus.CounterVec
	truncatedBytes *prometheus.CounterVec
	truncations    *prometheus.CounterVec
	calls          *prometheus.CounterVec
	duration       *prometheus.HistogramVec
	steps          *prometheus.CounterVec
	firstTokenTime *prometheus.HistogramVec
	tokens         *prometheus.CounterVec
	compactions    *prometheus.CounterVec
	waits          *prometheus.CounterVec
}

// NewMetrics registers the engine's metrics, every series at 0 for each tool and
// each provider named here.
func NewMetrics(reg prometheus.Registerer, tools, providers []string) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadline_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help, label string, buckets []float64) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "loadline_" + name, Help: help, Buckets: buckets}, []string{label})
		reg.MustRegister(h)
		return h
	}
	m := &Metrics{
		tools:          map[string]bool{},
		outputBytes:    counter("tool_output_bytes_total", "Bytes that tools produced, before the limit.", "tool"),
		truncatedBytes: counter("tool_output_truncated_bytes_total", "Bytes of tool output that the limit kept out of the history.", "tool"),
		truncations:    counter("tool_output_truncations_total", "Tool results that the limit cut.", "tool"),
		calls:          counter("tool_calls_total", "Tool calls, by how they ended.", "tool", "outcome"),
		duration:       histogram("tool_duration_seconds", "Time that tools ran.", "tool", []float64{.001, .005, .025, .1, .5, 2, 10, 60, 300}),
		steps:          counter("steps_total", "Model requests, by how they ended.", "outcome"),
		firstTokenTime: histogram("model_first_token_seconds", "Time from a model request to the first piece of its answer.", "provider", []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}),
		tokens:         counter("model_tokens_total", "Tokens as the provider reported them; input includes cached_input.", "provider", "direction"),
		compactions:    counter("compactions_total", "Times that old messages were summed up, by a model or, as far as none did, by rule.", "outcome"),
		waits:          counter("budget_wait_seconds_total", "Time that requests have waited for the input tokens of the minute.", "for"),
	}
	m.start(tools, providers)
	return m
}

// start makes every series exist.
func (m *Metrics) start(tools, providers []string) {
	for _, name := range append(slices.Clone(tools), otherTool) {
		m.tools[name] = true
		m.outputBytes.WithLabelValues(name)
		m.truncatedBytes.WithLabelValues(name)
		m.truncations.WithLabelValues(name)
		m.duration.WithLabelValues(name)
		for _, o := range []outcome{outcomeOK, outcomeFailed, outcomeTimeout, outcomeDenied, outcomePanic, outcomeCancelled, outcomeUnknownTool, outcomeBadArguments, outcomeInterrupted} {
			m.calls.WithLabelValues(name, string(o))
		}
	}
	for _, o := range []stepOutcome{stepOK, stepRetried, stepFailed, stepCancelled} {
		m.steps.WithLabelValues(string(o))
	}
	m.compactions.WithLabelValues(string(compactedByModel))
	m.compactions.WithLabelValues(string(compactedByRule))
	m.waits.WithLabelValues(waitedTurn)
	m.waits.WithLabelValues(waitedMemory)
	for _, p := range providers {
		m.firstTokenTime.WithLabelValues(p)
		for _, d := range []string{"input", "cached_input", "output"} {
			m.tokens.WithLabelValues(p, d)
		}
	}
}

// toolLabel keeps labels a closed set: a model can invent names without end.
func (m *Metrics) toolLabel(name string) string {
	if m.tools[name] {
		return name
	}
	return otherTool
}

func (m *Metrics) result(name string, how outcome, r session.ToolResult) {
	label := m.toolLabel(name)
	m.calls.WithLabelValues(label, string(how)).Inc()
	if cut := r.Truncated; cut != nil {
		m.outputBytes.WithLabelValues(label).Add(float64(cut.OriginalBytes))
		m.truncatedBytes.WithLabelValues(label).Add(float64(cut.DroppedBytes))
		m.truncations.WithLabelValues(label).Inc()
	} else if r.Content != nil {
		m.outputBytes.WithLabelValues(label).Add(float64(len(*r.Content)))
	}
}

func (m *Metrics) toolDuration(name string, d time.Duration) {
	m.duration.WithLabelValues(m.toolLabel(name)).Observe(d.Seconds())
}

func (m *Metrics) step(how stepOutcome) { m.steps.WithLabelValues(string(how)).Inc() }

func (m *Metrics) firstToken(provider string, d time.Duration) {
	m.firstTokenTime.WithLabelValues(provider).Observe(d.Seconds())
}

func (m *Metrics) answered(provider string, u session.Usage) {
	m.step(stepOK)
	m.used(provider, u)
}

func (m *Metrics) compacted(how compactOutcome) { m.compactions.WithLabelValues(string(how)).Inc() }

func (m *Metrics) waited(background bool, d time.Duration) {
	who := waitedTurn
	if background {
		who = waitedMemory
	}
	m.waits.WithLabelValues(who).Add(d.Seconds())
}

func (m *Metrics) used(provider string, u session.Usage) {
	m.tokens.WithLabelValues(provider, "input").Add(float64(u.InputTokens))
	m.tokens.WithLabelValues(provider, "cached_input").Add(float64(u.CachedInputTokens))
	m.tokens.WithLabelValues(provider, "output").Add(float64(u.OutputTokens))
}
