package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What stands between these lines of the report is replaced by each run.
const (
	markBegin = "<!-- figures: begin -->\n"
	markEnd   = "<!-- figures: end -->\n"
)

const tableHead = "| figure | floor | server | result | target | |\n|---|---|---|---|---|---|\n"

// row is one line of the table.
type row struct {
	what    string
	floor   string // what the floor reached; empty without a floor
	server  string // what the server reached
	got     float64
	unit    string // of got, limit and aim
	limit   float64
	aim     float64 // better than the limit; 0 when there is none
	atLeast bool    // got must be the limit or more, not less
	open    bool    // there is no target yet
	failure error   // it could not be measured
}

func (r row) met() bool {
	switch {
	case r.failure != nil:
		return false
	case r.open:
		return true
	case r.atLeast:
		return r.got >= r.limit
	}
	return r.got <= r.limit
}

// String is the row in Markdown.
func (r row) String() string {
	if r.failure != nil {
		text := strings.NewReplacer("|", "/", "\n", " ").Replace(r.failure.Error())
		return fmt.Sprintf("| %s | | | not measured: %.300s | | **missed** |\n", r.what, text)
	}
	verdict := "met"
	if !r.met() {
		verdict = "**missed**"
	}
	sign := "≤"
	if r.atLeast {
		sign = "≥"
	}
	target := fmt.Sprintf("%s %s%s", sign, number(r.limit), r.unit)
	if r.aim != 0 {
		target += fmt.Sprintf(" (aim: %s)", number(r.aim))
	}
	if r.open {
		target, verdict = "", ""
	}
	return fmt.Sprintf("| %s | %s | %s | %s%s | %s | %s |\n", r.what, r.floor, r.server, number(r.got), r.unit, target, verdict)
}

// number writes x with three significant digits or more, without idle zeros.
func number(x float64) string {
	decimals := 0
	switch {
	case x < 10:
		decimals = 2
	case x < 100:
		decimals = 1
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if decimals == 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func allMet(rows []row) bool {
	return !slices.ContainsFunc(rows, func(r row) bool { return !r.met() })
}

// writeReport puts the table into the file, and leaves the rest of it alone.
func writeReport(path string, rows []row, at time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("name the commit measured: %w", err)
	}
	table := fmt.Sprintf("Measured on %s at commit `%s`, %s, %d cores.\n\n%s", at.UTC().Format(time.DateOnly),
		strings.TrimSpace(string(commit)), runtime.Version(), runtime.NumCPU(), tableHead)
	for _, r := range rows {
		table += r.String()
	}
	replaced, err := replaceFigures(string(text), table)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(replaced), 0o644)
}

func replaceFigures(text, figures string) (string, error) {
	before, rest, begins := strings.Cut(text, markBegin)
	_, after, ends := strings.Cut(rest, markEnd)
	if !begins || !ends {
		return "", fmt.Errorf("it lacks the lines %q and %q", strings.TrimSpace(markBegin), strings.TrimSpace(markEnd))
	}
	return before + markBegin + "\n" + figures + "\n" + markEnd + after, nil
}

func median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
