package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// cutResult is the line of go test about the benchmark that cuts 24 MB.
var cutResult = regexp.MustCompile(`BenchmarkCut24MB\S*\s+\d+\s+([\d.]+) ns/op.*?\s(\d+) B/op`)

// measureToolCut runs the worker's benchmark of cutting one line of 24 MB.
func measureToolCut(ctx context.Context, _ *lab) ([]row, error) {
	text, err := goBenchmark(ctx, "./internal/worker", "BenchmarkCut24MB", "-benchmem")
	if err != nil {
		return nil, err
	}
	return parseCut(text)
}

// goBenchmark runs a benchmark of a package and returns what it printed.
func goBenchmark(ctx context.Context, pkg, name string, flags ...string) (string, error) {
	args := append([]string{"test", pkg, "-run", "^$", "-bench", "^" + name + "$"}, flags...)
	text, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return string(text), nil
}

func parseCut(text string) ([]row, error) {
	found := cutResult.FindStringSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("no result of BenchmarkCut24MB in %q", text)
	}
	nanoseconds, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return nil, err
	}
	allocated, err := strconv.ParseFloat(found[2], 64)
	if err != nil {
		return nil, err
	}
	ms, kib := nanoseconds/1e6, allocated/1024
	return []row{
		{what: "tool that prints 24 MB in one line: cut", server: fmt.Sprintf("%.3f ms", ms), got: ms, unit: " ms", limit: 5},
		{what: "the same: memory beyond what was captured", server: fmt.Sprintf("%.1f KiB", kib), got: kib, unit: " KiB", limit: 64},
	}, nil
}
