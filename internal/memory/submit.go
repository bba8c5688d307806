package memory

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// SubmitTool is the name of the tool that the model submits records with.
const SubmitTool = "SubmitRecords"

// Bounds of one submission. submitSchema says the same to the model.
const (
	maxRecords    = 64
	maxEvidence   = 64
	maxTextChars  = 1000
	maxTotalBytes = 128 << 10 // of claims and whys
)

//go:embed submit.md
var submitDescription string

//go:embed submit.json
var submitSchema string

// submission is the one tool of an extract pass. It only takes records; the host
// stages them.
type submission struct {
	from, to int64 // the items that evidence may name
	mask     func(string) string
	done     func() // called when a valid submission is there

	mu      sync.Mutex // guards the fields below
	verdict verdict
	refusal string           // of the last submission, when it was invalid
	records []session.Record // of a valid submission; without ids
}

// verdict is what came of the last submission.
type verdict int

const (
	verdictNone    verdict = iota // there was none
	verdictOpen                   // it was never judged to its end
	verdictInvalid                // the model was told what is wrong
	verdictValid
)

// Spec implements tool.Tool.
func (s *submission) Spec() session.ToolSpec {
	return session.ToolSpec{Name: SubmitTool, Description: strings.TrimSpace(submitDescription), Parameters: json.RawMessage(submitSchema)}
}

// submitted is one record as the model writes it.
type submitted struct {
	Kind       session.RecordKind `json:"kind"`
	Claim      string             `json:"claim"`
	Why        string             `json:"why"`
	Evidence   []int64            `json:"evidence"`
	StaleAfter *string            `json:"stale_after"`
}

// Run implements tool.Tool: it takes all records or none.
func (s *submission) Run(_ context.Context, call tool.Call) (session.Output, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdict == verdictValid {
		return session.Output{Summary: SubmitTool + ": already submitted"}, nil
	}
	s.verdict = verdictOpen
	records, err := s.read(call.Arguments)
	if err != nil {
		s.verdict, s.refusal = verdictInvalid, err.Error()
		return session.Output{}, err
	}
	s.verdict, s.refusal, s.records = verdictValid, "", records
	s.done()
	return session.Output{Summary: fmt.Sprintf("%s: %d records taken", SubmitTool, len(records))}, nil
}

// result is what came of all submissions, and why the last was refused.
func (s *submission) result() (v verdict, records []session.Record, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdict, s.records, s.refusal
}

func (s *submission) read(arguments json.RawMessage) ([]session.Record, error) {
	var all struct {
		Records *[]submitted `json:"records"`
	}
	if err := tool.Decode(arguments, &all); err != nil {
		return nil, fmt.Errorf("nothing was taken: %w", err)
	}
	switch {
	case all.Records == nil:
		return nil, fmt.Errorf("nothing was taken: %w: records is missing; an empty list is allowed", tool.ErrArguments)
	case len(*all.Records) > maxRecords:
		return nil, fmt.Errorf("nothing was taken: %w: %d records, at most %d are allowed: keep those that matter most", tool.ErrArguments, len(*all.Records), maxRecords)
	}
	records := make([]session.Record, 0, len(*all.Records))
	total := 0
	for i, r := range *all.Records {
		record, err := s.check(r)
		if err != nil {
			return nil, fmt.Errorf("nothing was taken: %w: records[%d].%w", tool.ErrArguments, i, err)
		}
		total += len(record.Claim) + len(record.Why)
		records = append(records, record)
	}
	if total > maxTotalBytes {
		return nil, fmt.Errorf("nothing was taken: %w: %d bytes of claims and whys, at most %d are allowed", tool.ErrArguments, total, maxTotalBytes)
	}
	return records, nil
}

// check reads one record. Its errors go on after the record's path.
func (s *submission) check(r submitted) (record session.Record, err error) {
	record = session.Record{Kind: r.Kind, State: session.RecordOpen}
	if !slices.Contains(session.RecordKinds(), r.Kind) {
		return record, fmt.Errorf("kind is %.40q, it must be one of %v", r.Kind, session.RecordKinds())
	}
	if record.Claim, err = s.text(r.Claim); err != nil {
		return record, fmt.Errorf("claim %w", err)
	}
	if record.Why, err = s.text(r.Why); err != nil {
		return record, fmt.Errorf("why %w", err)
	}
	if record.Evidence, err = s.evidence(r.Evidence); err != nil {
		return record, fmt.Errorf("evidence %w", err)
	}
	if r.StaleAfter != nil && *r.StaleAfter != "" {
		if record.StaleAfter, err = staleAfter(*r.StaleAfter); err != nil {
			return record, fmt.Errorf("stale_after %w", err)
		}
	}
	return record, nil
}

// text is a claim or a why as it is kept: clean, masked, trimmed.
func (s *submission) text(text string) (string, error) {
	text = strings.TrimSpace(s.mask(session.Clean(text)))
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		return "", fmt.Errorf("is blank")
	case n > maxTextChars:
		return "", fmt.Errorf("has %d characters, at most %d are allowed", n, maxTextChars)
	}
	return text, nil
}

func (s *submission) evidence(numbers []int64) ([]int64, error) {
	if len(numbers) == 0 || len(numbers) > maxEvidence {
		return nil, fmt.Errorf("has %d numbers, it must have 1 to %d", len(numbers), maxEvidence)
	}
	for _, n := range numbers {
		if n < s.from || n > s.to {
			return nil, fmt.Errorf("names item %d: only items %d to %d were shown", n, s.from, s.to)
		}
	}
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// staleAfter reads a date, which is over when its day is, or a time.
func staleAfter(text string) (session.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return session.Time(day.AddDate(0, 0, 1).UnixMicro()), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("is %.40q, it must be a date like 2031-05-31 or null", text)
	}
	return session.Time(at.UnixMicro()), nil
}
