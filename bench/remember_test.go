package main

import (
	"strings"
	"testing"
)

func TestParseBacklog(t *testing.T) {
	line := func(ns, peak string) string {
		return "BenchmarkBacklogOf50000Items-2   \t       1\t " + ns + " ns/op\t        " + peak + " MiB-peak\t        38.00 passes\n"
	}
	rows, err := parseBacklog("goos: linux\n" + line("900000000", "10.5") + line("700000000", "30.5") + line("800000000", "20.5") + "PASS\n")
	if err != nil || len(rows) != 2 || rows[0].got != 800 || rows[1].got != 20.5 {
		t.Errorf("parseBacklog = %+v, %v, want 800 ms and 20.5 MiB", rows, err)
	}
	if _, err := parseBacklog("PASS\n"); err == nil {
		t.Error("parseBacklog accepts an output without a result")
	}
}

func TestParseSearch(t *testing.T) {
	var b strings.Builder
	for _, line := range []string{"rare-2 1000000", "frequent_words-2 9000000", "rare-2 2000000", "frequent_words-2 7000000", "rare-2 30000000", "frequent_words-2 8000000"} {
		name, ns, _ := strings.Cut(line, " ")
		b.WriteString("BenchmarkSearchMemory/" + name + "         \t      20\t   " + ns + " ns/op\n")
	}
	rows, err := parseSearch(b.String())
	if err != nil || len(rows) != 1 || rows[0].got != 8 || !strings.Contains(rows[0].what, "of 2 queries") {
		t.Errorf("parseSearch = %+v, %v, want the median of the slower query, 8 ms", rows, err)
	}
	if _, err := parseSearch("PASS\n"); err == nil {
		t.Error("parseSearch accepts an output without a result")
	}
}
