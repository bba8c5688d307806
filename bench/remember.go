package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// backlogResult and searchResult are lines of go test about benchmarks of memory.
var (
	backlogResult = regexp.MustCompile(`BenchmarkBacklogOf50000Items\S*\s+\d+\s+([\d.]+) ns/op.*?\s([\d.]+) MiB-peak`)
	searchResult  = regexp.MustCompile(`BenchmarkSearchMemory/(\S+)\s+\d+\s+([\d.]+) ns/op`)
)

// measureBacklog runs the benchmark of reading 50,000 items for memory, with a model
// that costs nothing, some times.
func measureBacklog(ctx context.Context, _ *lab) ([]row, error) {
	text, err := goBenchmark(ctx, "./internal/memory", "BenchmarkBacklogOf50000Items", "-benchtime", "1x", "-count", "5")
	if err != nil {
		return nil, err
	}
	return parseBacklog(text)
}

func parseBacklog(text string) ([]row, error) {
	var ms, peak []float64
	for _, found := range backlogResult.FindAllStringSubmatch(text, -1) {
		ms, peak = append(ms, parsed(found[1])/1e6), append(peak, parsed(found[2]))
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("no result of BenchmarkBacklogOf50000Items in %q", text)
	}
	took, grew := median(ms), median(peak)
	return []row{
		{what: "backlog of 50,000 items: rendered and staged", server: showMS(took), got: took, unit: " ms", limit: 2000},
		{what: "the same: memory at its peak", server: fmt.Sprintf("%.1f MiB", grew), got: grew, unit: " MiB", limit: 64},
	}, nil
}

// measureSearch runs the benchmark of searches in 10,000 records.
func measureSearch(ctx context.Context, _ *lab) ([]row, error) {
	text, err := goBenchmark(ctx, "./internal/store", "BenchmarkSearchMemory", "-benchtime", "20x", "-count", "3")
	if err != nil {
		return nil, err
	}
	return parseSearch(text)
}

// parseSearch takes the slowest query, by the median of its runs.
func parseSearch(text string) ([]row, error) {
	runs := map[string][]float64{}
	for _, found := range searchResult.FindAllStringSubmatch(text, -1) {
		runs[found[1]] = append(runs[found[1]], parsed(found[2])/1e6)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no result of BenchmarkSearchMemory in %q", text)
	}
	var medians []float64
	for _, ms := range runs {
		medians = append(medians, median(ms))
	}
	slowest := slices.Max(medians)
	return []row{{
		what: fmt.Sprintf("search of memory, 10,000 records, the slowest of %d queries", len(runs)), server: showMS(slowest), got: slowest, unit: " ms", limit: 20,
	}}, nil
}

// parsed reads what a pattern of digits has found.
func parsed(digits string) float64 {
	n, _ := strconv.ParseFloat(digits, 64)
	return n
}
