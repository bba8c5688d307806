package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/worker"
)

// leastExtraction is the input, in tokens, that the model takes of an extraction,
// however small it is: instructions and schema alone are half of that.
const leastExtraction = 8000

// drawMemory draws how the history is read for memory: most of the time at each
// turn's end, in chunks of all sizes.
func drawMemory(r *rapid.T) manifest.Memory {
	return manifest.Memory{
		ExtractThresholdBytes: rapid.SampledFrom([]int{1, 1, 65536}).Draw(r, "threshold"),
		ExtractChunkBytes:     rapid.SampledFrom([]int{131072, 8192, 1500}).Draw(r, "chunk"),
		ExtractWorkerMaxTurns: 3,
		DeadLetterAfter:       rapid.SampledFrom([]int{1, 3}).Draw(r, "dead letter after"),
	}
}

// newMemory makes what reads the history. Its commits can be refused and die like
// those of turns.
func (s *sequence) newMemory(l *life, metrics *worker.Metrics, registry *prometheus.Registry) *memory.Extractor {
	engine := worker.Config{
		Provider: s.model, Window: l.settings.window, Budget: l.settings.budget.Background(), MaxCallsPerStep: 8,
		RetryMaxWait: time.Minute, ToolTimeout: time.Minute, Metrics: metrics, Log: zerolog.Nop(),
	}
	x, err := memory.NewExtractor(s.ctx, memory.Config{
		Store: l.store, Host: l.host, MaxParallel: 1, Registry: registry, Log: zerolog.Nop(),
		Projects: map[string]memory.Project{"default": {Name: "default", Settings: l.settings.memory, Limits: l.settings.limits, Engine: engine}},
	})
	if err != nil {
		s.Fatal(err)
	}
	return x
}

// extract has the history read now, by a model that does what it likes.
func (s *sequence) extract() {
	s.model.recall(rapid.SliceOfN(rapid.SampledFrom([]string{
		"stage", "stage", "empty", "prose", "outside", "no JSON", "other tool", "cut", "busy", "limit", "too long", "too long", "bad key", "strange", "panic", "slow",
	}), 0, 8).Draw(s.T, "extraction"))
	if _, err := s.life.memory.Extract(s.ctx, s.id); err != nil {
		s.Fatalf("extract: %v", err)
	}
	s.wait()
}

// recall sets what the model does with the next chunks; then it finds nothing.
func (m *model) recall(script []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.extraction = script
}

// reads is what the model does with a chunk of a history.
func (m *model) reads(chunk string) answer {
	if len(m.extraction) == 0 {
		return submits(`{"records":[]}`)
	}
	how := m.extraction[0]
	m.extraction = m.extraction[1:]
	var from, to int
	if _, err := fmt.Sscanf(chunk, "Items %d to %d ", &from, &to); err != nil {
		m.problems = append(m.problems, fmt.Sprintf("a chunk does not say what it holds: %.100q", chunk))
	}
	switch how {
	case "stage":
		return submits(record(from), record(to))
	case "empty":
		return submits(`{"records":[]}`)
	case "outside":
		return submits(record(to + 1))
	case "no JSON":
		return submits(`{"records":`)
	case "other tool":
		return answer{Calls: []string{"unknown tool"}}
	case "cut":
		return answer{Calls: []string{submitMark + record(from)}, How: "length"}
	case "prose":
		return answer{Text: "I would rather not."}
	case "slow":
		a := submits(record(from))
		a.Wait = 10 * time.Minute
		return a
	}
	return answer{How: how}
}

// submitMark begins a call of the tool that takes records.
const submitMark = memory.SubmitTool + ":"

func submits(arguments ...string) answer {
	a := answer{}
	for _, text := range arguments {
		a.Calls = append(a.Calls, submitMark+text)
	}
	return a
}

func record(n int) string {
	return fmt.Sprintf(`{"records":[{"kind":"fact","claim":"they were in item %d","why":"it is a test","evidence":[%d],"stale_after":null}]}`, n, n)
}

// isExtraction reports whether a request is one of a pass.
func isExtraction(r llm.Request) bool {
	return len(r.Tools) == 1 && r.Tools[0].Name == memory.SubmitTool
}

// checkMemory holds that each pass begins behind the one that succeeded before, or
// behind what was set aside; that the pointer stands where they end; and that what
// was staged is on disk.
func (s *sequence) checkMemory(events []session.Event) {
	s.Helper()
	pointer, staged := int64(0), int64(0)
	letters, err := s.life.store.DeadLetters(s.ctx, "default", "", 200)
	if err != nil {
		s.Fatal(err)
	}
	aside := map[int64]int64{} // first items of dead letters, and their last
	for _, l := range letters {
		aside[l.FromN] = l.ToN
	}
	for _, ev := range events {
		if ev.Extract == nil {
			continue
		}
		x := ev.Extract
		if to, found := aside[pointer+1]; found && x.FromN == to+1 {
			pointer = to
		}
		if x.FromN != pointer+1 || x.ToN < x.FromN {
			s.Fatalf("event %d: items %d to %d are read, the pointer is at %d: %s", ev.Seq, x.FromN, x.ToN, pointer, x.Outcome)
		}
		if session.Outcome(x.Outcome).Succeeded() {
			pointer, staged = x.ToN, staged+x.Records
		}
	}
	s.checkPointer(pointer, aside)
	records, err := s.life.store.Records(s.ctx, "default", "", "", "", 200)
	if err != nil {
		s.Fatal(err)
	}
	if int64(len(records)) != min(staged, 200) {
		s.Fatalf("%d records are stored, notices tell of %d", len(records), staged)
	}
}

func (s *sequence) checkPointer(pointer int64, aside map[int64]int64) {
	s.Helper()
	b, err := s.life.store.Backlog(s.ctx, s.id)
	if err != nil {
		s.Fatal(err)
	}
	if to, found := aside[pointer+1]; found && b.Pointer == to {
		pointer = to
	}
	if b.Pointer != pointer {
		s.Fatalf("the pointer is at %d, passes have read up to %d", b.Pointer, pointer)
	}
}

// finishMemory has the rest of the history read: whatever has failed before, with a
// model that works extraction goes forward.
func (s *sequence) finishMemory() {
	s.model.recall(nil)
	for range 24 {
		if _, err := s.life.memory.Extract(s.ctx, s.id); err != nil {
			s.Fatalf("extract: %v", err)
		}
		pass(time.Hour)
		b, err := s.life.store.Backlog(s.ctx, s.id)
		if err != nil {
			s.Fatal(err)
		}
		if b.Items == 0 {
			return
		}
	}
	s.Fatalf("extraction does not go forward within a day")
}

// toolOf splits the name of a tool off a scripted call.
func toolOf(call string) (name, arguments string) {
	for _, name := range []string{memory.SubmitTool, readOutput} {
		if arguments, marked := strings.CutPrefix(call, name+":"); marked {
			return name, arguments
		}
	}
	if call == "unknown tool" {
		return "Unknown", "{}"
	}
	return "Print", call
}

// asJSON is what cannot fail to be encoded.
func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
