package manifest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCallLimit(t *testing.T) {
	limits := ToolOutput{DefaultMaxBytes: 1000, StepMaxBytes: 8000, PerTool: map[string]int{"Read": 3000, "Huge": 1 << 40, "Grep": 128}}
	tests := []struct {
		tool  string
		calls int
		want  int
	}{
		{"Glob", 1, 1000}, {"Glob", 8, 1000}, {"Glob", 9, 888}, {"Glob", 1 << 40, 128}, {"Glob", 0, 1000}, {"Glob", -1, 1000},
		{"Read", 1, 3000}, {"Read", 2, 3000}, {"Read", 3, 2666}, {"read", 1, 1000},
		{"Huge", 1, 8000}, {"Huge", 2, 4000}, {"Grep", 62, 128}, {"Grep", 64, 128},
	}
	for _, test := range tests {
		if got := limits.CallLimit(test.tool, test.calls); got != test.want {
			t.Errorf("CallLimit(%s, %d) = %d, want %d", test.tool, test.calls, got, test.want)
		}
	}
	if got := (ToolOutput{}).CallLimit("Read", 1); got != MinLimitBytes {
		t.Errorf("CallLimit() of no limits = %d, want %d", got, MinLimitBytes)
	}
}

func TestCallLimitsKeepTheBudgetOfTheStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.IntRange(MinLimitBytes, 1<<40)
		limits := ToolOutput{
			DefaultMaxBytes: bytes.Draw(t, "default"), StepMaxBytes: bytes.Draw(t, "step"),
			PerTool: map[string]int{"Read": bytes.Draw(t, "Read")},
		}
		calls := rapid.IntRange(1, 2000).Draw(t, "calls")
		sum := 0
		for i := range calls {
			tool := []string{"Read", "Glob"}[i%2]
			limit := limits.CallLimit(tool, calls)
			if limit < MinLimitBytes || limit > limits.Limit(tool) {
				t.Fatalf("CallLimit(%s, %d) = %d, outside %d to %d", tool, calls, limit, MinLimitBytes, limits.Limit(tool))
			}
			sum += limit
		}
		if sum > max(limits.StepMaxBytes, calls*MinLimitBytes) {
			t.Fatalf("%d calls share %d bytes of %d", calls, sum, limits.StepMaxBytes)
		}
	})
}
