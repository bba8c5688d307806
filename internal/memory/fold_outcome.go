package memory

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/session"
)

// foldOutcome is how a pass of consolidation ended, as metrics count it.
type foldOutcome string

const (
	foldConsolidated   foldOutcome = "consolidated"
	foldProviderError  foldOutcome = "provider_error"
	foldContextTooLong foldOutcome = "context_too_long"
	foldToolError      foldOutcome = "tool_error"
	foldInvalid        foldOutcome = "invalid"       // the model did not finish after it was told what is wrong
	foldNoSubmission   foldOutcome = "no_submission" // it did not try to finish
	foldTurnLimit      foldOutcome = "turn_limit"
	foldConflict       foldOutcome = "conflict" // memory was changed meanwhile
	foldStorageError   foldOutcome = "storage_error"
	foldCancelled      foldOutcome = "cancelled"
)

func foldOutcomes() []foldOutcome {
	return []foldOutcome{
		foldConsolidated, foldProviderError, foldContextTooLong, foldToolError, foldInvalid,
		foldNoSubmission, foldTurnLimit, foldConflict, foldStorageError, foldCancelled,
	}
}

// foldOutcomeOf says how a pass ended. The cause is that of its context, nil unless
// that ended before the pass did; failure is what ended the engine's turn.
func foldOutcomeOf(v verdict, cause error, failure *session.TurnError) foldOutcome {
	switch {
	case v == verdictValid:
		return foldConsolidated
	case errors.Is(cause, errPassTimeout):
		return foldProviderError
	case cause != nil:
		return foldCancelled
	}
	if failure == nil {
		failure = &session.TurnError{Code: session.CodeEmptyResponse}
	}
	switch failure.Code {
	case session.CodeRequestTooLarge, session.CodeInputTooLarge:
		return foldContextTooLong
	case session.CodeProviderError:
		return foldProviderError
	case session.CodeStepLimit:
		return foldTurnLimit
	case session.CodeEmptyResponse:
		if v == verdictInvalid {
			return foldInvalid
		}
		return foldNoSubmission
	}
	return foldToolError // an error of the engine itself
}

// foldMetrics is what consolidation counts.
type foldMetrics struct {
	runs    *prometheus.CounterVec
	records *prometheus.CounterVec
}

func newFoldMetrics(reg prometheus.Registerer) *foldMetrics {
	m := &foldMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loadline_memory_consolidation_runs_total", Help: "Passes of consolidation, by how they ended.",
		}, []string{"outcome"}),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loadline_memory_records_closed_total", Help: "Records that consolidation has closed, by the reason.",
		}, []string{"reason"}),
	}
	for _, o := range foldOutcomes() {
		m.runs.WithLabelValues(string(o))
	}
	for _, r := range session.CloseReasons() {
		m.records.WithLabelValues(string(r))
	}
	reg.MustRegister(m.runs, m.records)
	return m
}

// count counts a pass. Done counts only when it was stored.
func (m *foldMetrics) count(outcome foldOutcome, done *session.Consolidation) {
	m.runs.WithLabelValues(string(outcome)).Inc()
	if outcome != foldConsolidated {
		return
	}
	for _, c := range done.Closed {
		m.records.WithLabelValues(string(c.Reason)).Inc()
	}
}
