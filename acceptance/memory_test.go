package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/tool"
)

const memoryOn = "[memory]\nenabled = true\nextract_threshold_bytes = 1\n"

// submits is an answer that submits these records.
func submits(records string) llmtest.Step {
	return callsWith(memory.SubmitTool, `{"records":`+records+`}`)
}

// fact is a record of the first item.
const fact = `[{"kind":"fact","claim":"it is so","why":"it matters","evidence":[1]}]`

// twoModels answers turns and extraction from scripts of their own, and remembers what
// extraction was asked.
type twoModels struct {
	mu      sync.Mutex // guards the fields below
	talk    []llmtest.Step
	extract []llmtest.Step // then: nothing to remember
	asked   []llmtest.Request
}

// answer is the step for all requests.
func (m *twoModels) answer() llmtest.Step {
	return replies(func(r llmtest.Request) llmtest.Step {
		m.mu.Lock()
		defer m.mu.Unlock()
		script, otherwise := &m.talk, says("ok")
		if slices.Contains(r.Tools, memory.SubmitTool) {
			script, otherwise = &m.extract, submits("[]")
			m.asked = append(m.asked, r)
		}
		if len(*script) == 0 {
			return otherwise
		}
		next := (*script)[0]
		*script = (*script)[1:]
		return next
	})
}

// requests are what extraction was asked, as it came.
func (m *twoModels) requests() []llmtest.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func startMemoryWorld(t *testing.T, m *twoModels, manifest string, tools ...tool.Tool) *world {
	t.Helper()
	w := start(t, setup{manifest: manifest, tools: tools})
	w.model.Otherwise = m.answer()
	return w
}

// extracts waits for so many notices of a session, and returns them.
func (w *world) extracts(id session.ID, n int) (all []session.Extract) {
	w.t.Helper()
	s := w.stream(id, "")
	defer s.close()
	for len(all) < n {
		all = append(all, *s.until(ofType(session.EventMemoryExtract)).Extract)
	}
	return all
}

func (w *world) pointer(id session.ID) int64 {
	w.t.Helper()
	b, err := w.store.Backlog(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return b.Pointer
}

func (w *world) records() []session.Record {
	w.t.Helper()
	records, err := w.store.Records(w.t.Context(), "default", "", "", "", 200)
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

func outcomesOf(extracts []session.Extract) (all []string) {
	for _, e := range extracts {
		all = append(all, e.Outcome)
	}
	return all
}

func TestA21BacklogIsReadOnceAfterFailures(t *testing.T) {
	gate := make(chan struct{}, 4)
	timeout, whole := llmtest.Step{Status: 504, Gate: gate}, submits(fact)
	whole.Gate = gate
	m := &twoModels{extract: []llmtest.Step{
		timeout, {Status: 500, Gate: gate}, {Text: []string{"hm"}, CutAfterBytes: 30, Abort: true, Gate: gate}, {Status: 429, Gate: gate}, whole,
	}}
	w := startMemoryWorld(t, m, memoryOn)
	id := w.newSession()
	for i := range 25 {
		w.say(id, fmt.Sprintf("message %d", i))
		if i%6 == 5 {
			gate <- struct{}{}
			w.extracts(id, i/6+1)
			if w.pointer(id) != 0 {
				t.Errorf("the pointer moved to %d by a failure", w.pointer(id))
			}
		}
	}
	gate <- struct{}{}
	w.until(func() bool { return w.pointer(id) == 50 })
	all := w.extracts(id, 5)
	if got := outcomesOf(all)[:4]; !slices.Equal(got, slices.Repeat([]string{"provider_error"}, 4)) {
		t.Errorf("outcomes: %q", got)
	}
	consumed := int64(0)
	for _, e := range all[4:] {
		consumed += e.Items
		if strings.Contains(e.Text, "size") {
			t.Errorf("a notice speaks of size: %q", e.Text)
		}
	}
	if len(w.records()) != 1 || consumed != all[len(all)-1].ToN {
		t.Errorf("%d records; %d items consumed up to %d", len(w.records()), consumed, all[len(all)-1].ToN)
	}
	if failed := w.metric(`memory_extract_runs_total{outcome="provider_error"}`); failed != "4" {
		t.Errorf("%s failures are counted", failed)
	}
}

// until waits for something that no event tells of.
func (w *world) until(happened func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(w.patience); !happened(); <-tick.C {
		if time.Now().After(deadline) {
			w.t.Fatal("it did not happen")
		}
	}
}

// The cap on the steps of a pass works: a model that calls tools for ever stops there.
func TestA21PassEndsAtItsStepLimit(t *testing.T) {
	m := &twoModels{extract: slices.Repeat([]llmtest.Step{calls("Read")}, 3)}
	w := startMemoryWorld(t, m, memoryOn+"extract_worker_max_turns = 3\n")
	id := w.newSession()
	w.say(id, "hello")
	if got := outcomesOf(w.extracts(id, 2)); !slices.Equal(got, []string{"turn_limit", "empty"}) || len(m.requests()) != 4 {
		t.Errorf("%q after %d requests", got, len(m.requests()))
	}
}

func TestA21bTooLongIsHalved(t *testing.T) {
	m := &twoModels{}
	w := startMemoryWorld(t, m, memoryOn)
	id := w.newSession()
	gate := make(chan struct{})
	m.extract = []llmtest.Step{{Gate: gate, Status: 500}, refuses(400, "prompt is too long: 200001 tokens > 200000 maximum")}
	w.say(id, "one")
	w.until(func() bool { return len(m.requests()) == 1 }) // so that the first pass has seen one turn only
	w.say(id, "two")
	close(gate)
	all := w.extracts(id, 4)
	var ranges []string
	for _, e := range all {
		ranges = append(ranges, fmt.Sprintf("%s %d-%d", e.Outcome, e.FromN, e.ToN))
	}
	want := []string{"provider_error 1-2", "context_too_long 1-4", "empty 1-2", "empty 3-4"}
	if !slices.Equal(ranges, want) || w.pointer(id) != 4 {
		t.Errorf("%q, pointer %d, want %q", ranges, w.pointer(id), want)
	}
}

func TestA22OnlyAValidSubmissionMovesThePointer(t *testing.T) {
	cut := submits(fact)
	cut.Calls[0].Arguments, cut.Stop = cut.Calls[0].Arguments[:40], llm.StopLength
	prose := says("I am sorry, but I cannot help with that.")
	for _, c := range []struct {
		name    string
		steps   []llmtest.Step
		outcome string
		moves   bool
	}{
		{"429", []llmtest.Step{{Status: 429}}, "provider_error", false},
		{"prose", []llmtest.Step{prose}, "no_submission", false},
		{"cut off", []llmtest.Step{cut, prose}, "no_submission", false},
		{"always cut off", slices.Repeat([]llmtest.Step{cut}, 8), "turn_limit", false},
		{"nothing", []llmtest.Step{submits("[]")}, "empty", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &twoModels{extract: append(c.steps, llmtest.Step{Gate: make(chan struct{})})}
			w := startMemoryWorld(t, m, memoryOn)
			id := w.newSession()
			w.say(id, "hello")
			got := w.extracts(id, 1)[0]
			if got.Outcome != c.outcome || (w.pointer(id) == 2) != c.moves || len(w.records()) != 0 {
				t.Errorf("%+v, pointer %d, %d records", got, w.pointer(id), len(w.records()))
			}
			if counted := w.metric(fmt.Sprintf("memory_extract_runs_total{outcome=%q}", c.outcome)); counted != "1" {
				t.Errorf("%s is counted %s times", c.outcome, counted)
			}
		})
	}
}

func TestA23ModelIsAskedOnceAndSeesNoContent(t *testing.T) {
	content := strings.Repeat("x", 8000) + "RAW-SENTINEL-42" + strings.Repeat("x", 8000)
	look := does("Look", func(context.Context) (session.Output, error) {
		return session.Output{Summary: "read 1 file", Content: &content}, nil
	})
	m := &twoModels{talk: []llmtest.Step{calls("Look", "Fail"), says("seen")}}
	gate := make(chan struct{})
	m.extract = []llmtest.Step{{Calls: submits("[]").Calls, Gate: gate}}
	w := startMemoryWorld(t, m, memoryOn, look, fails("Fail", "RAW-SENTINEL-43"))
	id := w.newSession()
	w.say(id, "look") // which does not wait
	w.until(func() bool { return len(m.requests()) == 1 })
	for range 5 {
		if _, err := w.memory.Extract(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	w.extracts(id, 1)
	for range 5 {
		if how, err := w.memory.Extract(t.Context(), id); err != nil || how != session.ExtractNothing {
			t.Errorf("extract of nothing: %s, %v", how, err)
		}
	}
	requests := m.requests()
	if len(requests) != 1 {
		t.Fatalf("the model was asked %d times", len(requests))
	}
	body := string(requests[0].Body)
	if strings.Contains(body, "RAW-SENTINEL") || !strings.Contains(body, "read 1 file") {
		t.Errorf("the request: %.2000s", body)
	}
}

func TestA30ExtractionIsCounted(t *testing.T) {
	m := &twoModels{extract: []llmtest.Step{{Status: 500}}}
	w := startMemoryWorld(t, m, memoryOn)
	for _, o := range session.Outcomes() {
		if got := w.metric(fmt.Sprintf("memory_extract_runs_total{outcome=%q}", o)); got != "0" {
			t.Errorf("%s is %s at the start", o, got)
		}
	}
	for _, series := range []string{"memory_extract_items_total", "memory_extract_backlog_bytes", "memory_extract_backlog_items", "memory_dead_letters"} {
		if got := w.metric(series); got != "0" {
			t.Errorf("%s is %s at the start", series, got)
		}
	}
	id := w.newSession()
	w.say(id, "hello")
	w.extracts(id, 2)
	for series, want := range map[string]string{
		`memory_extract_runs_total{outcome="provider_error"}`: "1", `memory_extract_runs_total{outcome="empty"}`: "1",
		"memory_extract_items_total": "2", "memory_extract_backlog_bytes": "0",
	} {
		if got := w.metric(series); got != want {
			t.Errorf("%s is %s, want %s", series, got, want)
		}
	}
}
