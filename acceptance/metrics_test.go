package acceptance

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// series are all series of /metrics that are ours, without buckets, with their values.
func (c *client) series() map[string]float64 {
	c.t.Helper()
	_, text := c.send("GET", "/metrics", nil)
	found := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name, ours := strings.CutPrefix(name, "loadline_"); ours && !strings.Contains(name, "_bucket{") {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				c.t.Errorf("%s: %v", line, err)
			}
			found[name] = number
		}
	}
	return found
}

// labelled is one name with each combination of labels, in the order of the text form.
func labelled(name string, labels ...[]string) []string {
	all := []string{""}
	for _, label := range labels {
		var longer []string
		for _, before := range all {
			for _, value := range label[1:] {
				longer = append(longer, strings.TrimPrefix(fmt.Sprintf("%s,%s=%q", before, label[0], value), ","))
			}
		}
		all = longer
	}
	for i := range all {
		all[i] = name + "{" + all[i] + "}"
	}
	return all
}

func TestA30EverySeriesIsThereFromTheStart(t *testing.T) {
	w := start(t, setup{tools: []tool.Tool{prints("Glob", "x"), prints("Read", "x")}})
	tools := []string{"tool", "Glob", "Read", "ReadOutput", "other"}
	providers := []string{"provider", "openai", "anthropic", "demo"}
	want := slices.Concat(
		labelled("tool_output_bytes_total", tools),
		labelled("tool_output_truncated_bytes_total", tools),
		labelled("tool_output_truncations_total", tools),
		labelled("tool_calls_total", []string{"outcome", "ok", "failed", "timeout", "denied", "panic", "cancelled", "unknown_tool", "bad_arguments", "interrupted"}, tools),
		labelled("tool_duration_seconds_sum", tools), labelled("tool_duration_seconds_count", tools),
		labelled("turns_total", []string{"outcome", "completed", "failed", "cancelled", "interrupted"}),
		[]string{"turn_duration_seconds_sum", "turn_duration_seconds_count"},
		labelled("compactions_total", []string{"outcome", "model", "rule"}),
		labelled("budget_wait_seconds_total", []string{"for", "turn", "memory"}),
		labelled("steps_total", []string{"outcome", "ok", "retried", "failed", "cancelled"}),
		labelled("model_first_token_seconds_sum", providers), labelled("model_first_token_seconds_count", providers),
		labelled("model_tokens_total", []string{"direction", "input", "cached_input", "output"}, providers),
		[]string{"stream_subscribers", "stream_slow_closed_total", "sessions_wedged"},
	)
	got := w.series()
	maps.DeleteFunc(got, func(name string, _ float64) bool { return strings.HasPrefix(name, "memory_") })
	for name, value := range got {
		if value != 0 {
			t.Errorf("%s is %v at the start", name, value)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// What a result prints is what is counted, for every way in which calls and turns
// end; all else stays where it was.
func TestA30CountsAreExact(t *testing.T) {
	long := strings.Repeat("é", 50_000)
	blocks := tooltest.NewBlocking("Blocks")
	w := start(t, setup{
		manifest: "[worker]\nmax_steps = 2\n[model]\nmax_attempts = 1\n",
		tools:    []tool.Tool{prints("Long", long), prints("Short", "hello"), fails("Fails", "no"), tooltest.Panicking("Panics", 1), blocks},
	})
	id := w.newSession()
	changes := func(input string, steps ...llmtest.Step) map[string]float64 {
		t.Helper()
		before := w.series()
		w.model.Add(steps...)
		w.say(id, input)
		return changed(before, w.series())
	}

	used := llmtest.Step{Text: []string{"ok"}, Usage: session.Usage{InputTokens: 100, CachedInputTokens: 40, OutputTokens: 7}}
	got := changes("cut", calls("Long", "Long"), used)
	dropped := 0.0
	for _, r := range results(w.items(id)) {
		var n float64
		if _, err := fmt.Sscanf(contentOf(r)[strings.LastIndex(contentOf(r), "\n"):], "\n[truncated: %g bytes dropped,", &n); err != nil {
			t.Fatal(err)
		}
		dropped += n
	}
	wantChanges(t, got, map[string]float64{
		`tool_output_bytes_total{tool="Long"}`: 200_000, `tool_output_truncated_bytes_total{tool="Long"}`: dropped,
		`tool_output_truncations_total{tool="Long"}`: 2, `tool_calls_total{outcome="ok",tool="Long"}`: 2, `tool_duration_seconds_count{tool="Long"}`: 2,
		`steps_total{outcome="ok"}`: 2, `turns_total{outcome="completed"}`: 1, `turn_duration_seconds_count`: 1, `model_first_token_seconds_count{provider="openai"}`: 2,
		`model_tokens_total{direction="input",provider="openai"}`: 100, `model_tokens_total{direction="cached_input",provider="openai"}`: 40, `model_tokens_total{direction="output",provider="openai"}`: 7,
	})

	got = changes("mixed", calls("Short", "Fails", "Panics", "reed"), says("ok"))
	delete(got, `tool_output_bytes_total{tool="Fails"}`) // the texts of errors
	delete(got, `tool_output_bytes_total{tool="Panics"}`)
	delete(got, `tool_output_bytes_total{tool="other"}`)
	wantChanges(t, got, map[string]float64{
		`tool_output_bytes_total{tool="Short"}`:       5,
		`tool_calls_total{outcome="ok",tool="Short"}`: 1, `tool_calls_total{outcome="failed",tool="Fails"}`: 1,
		`tool_calls_total{outcome="panic",tool="Panics"}`: 1, `tool_calls_total{outcome="unknown_tool",tool="other"}`: 1,
		`tool_duration_seconds_count{tool="Short"}`: 1, `tool_duration_seconds_count{tool="Fails"}`: 1, `tool_duration_seconds_count{tool="Panics"}`: 1,
		`steps_total{outcome="ok"}`: 2, `turns_total{outcome="completed"}`: 1, `turn_duration_seconds_count`: 1, `model_first_token_seconds_count{provider="openai"}`: 2,
	})

	got = changes("refused", refuses(400, "no such model"))
	wantChanges(t, got, map[string]float64{`steps_total{outcome="failed"}`: 1, `turns_total{outcome="failed"}`: 1, `turn_duration_seconds_count`: 1})

	before := w.series()
	w.model.Add(calls("Blocks"))
	turn := w.post(id, "cancelled")
	<-blocks.Entered
	w.cancel(id, turn.ID)
	got = changed(before, w.series())
	delete(got, `tool_output_bytes_total{tool="Blocks"}`)
	wantChanges(t, got, map[string]float64{
		`tool_calls_total{outcome="cancelled",tool="Blocks"}`: 1, `tool_duration_seconds_count{tool="Blocks"}`: 1, `steps_total{outcome="ok"}`: 1,
		`turns_total{outcome="cancelled"}`: 1, `turn_duration_seconds_count`: 1, `model_first_token_seconds_count{provider="openai"}`: 1,
	})
	checkWithPromtool(t, w)
}

// changed says by how much the series that are no sums of times went up.
func changed(before, after map[string]float64) map[string]float64 {
	by := map[string]float64{}
	for name, value := range after {
		if value != before[name] && !strings.Contains(name, "_seconds_sum") && name != "stream_subscribers" {
			by[name] = value - before[name]
		}
	}
	return by
}

func wantChanges(t *testing.T, got, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series that changed (-want +got):\n%s", diff)
	}
}

// checkWithPromtool has Prometheus' own tool judge /metrics.
func checkWithPromtool(t *testing.T, w *world) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if promtool, err = exec.LookPath("../bin/promtool"); err != nil {
			t.Fatal("promtool is missing: run make tools, or install Prometheus 2.40 or newer (Debian: apt-get install prometheus)")
		}
	}
	_, text := w.send("GET", "/metrics", nil)
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
