package memory

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
	"loadline/internal/manifest"
	"loadline/internal/session"
)

// row is one way in which a pass can end.
type row struct {
	name    string
	outcome session.Outcome
	steps   []llmtest.Step // of the pass
	asked   int            // requests in it
	before  func(*world)   // what goes wrong beside the model
	during  func(*world)   // once the model was asked
}

func rows() []row {
	submission := func(text string) llmtest.Step {
		return llmtest.Step{Calls: []llmtest.Call{{Tool: SubmitTool, Arguments: text}}}
	}
	valid := submission(submissionOf(1))
	talk := llmtest.Step{Text: []string{"I would rather not do that."}}
	half := submission(`{"records":[{"kind":"fact","claim":"half`)
	half.Stop = llm.StopLength
	tooLate := llmtest.Step{Gate: make(chan struct{})}
	for8 := func(s llmtest.Step) []llmtest.Step { return []llmtest.Step{s, s, s, s, s, s, s, s} }
	return []row{
		{"records", session.OutcomeStaged, []llmtest.Step{valid}, 1, nil, nil},
		{"records after a refused call", session.OutcomeStaged, []llmtest.Step{submission(`{"records":[{}]}`), valid}, 2, nil, nil},
		{"a refused call before a good one", session.OutcomeStaged, []llmtest.Step{{Calls: []llmtest.Call{{Tool: SubmitTool, Arguments: `{}`}, valid.Calls[0]}}, valid}, 2, nil, nil},
		{"two calls at once", session.OutcomeStaged, []llmtest.Step{{Calls: append(valid.Calls, valid.Calls...)}}, 1, nil, nil},
		{"no records", session.OutcomeEmpty, []llmtest.Step{submission(`{"records":[]}`)}, 1, nil, nil},
		{"429", session.OutcomeProviderError, []llmtest.Step{{Status: 429}}, 1, nil, nil},
		{"500", session.OutcomeProviderError, []llmtest.Step{{Status: 500}}, 1, nil, nil},
		{"401", session.OutcomeProviderError, []llmtest.Step{{Status: 401}}, 1, nil, nil},
		{"broken stream", session.OutcomeProviderError, []llmtest.Step{{Calls: valid.Calls, CutAfterBytes: 300, Abort: true}}, 1, nil, nil},
		{"stream without its end", session.OutcomeProviderError, []llmtest.Step{{Calls: valid.Calls, CutAfterBytes: 300}}, 1, nil, nil},
		{"error after a refused call", session.OutcomeProviderError, []llmtest.Step{submission(`{}`), {Status: 500}}, 2, nil, nil},
		{"too long", session.OutcomeContextTooLong, []llmtest.Step{{Status: 400, Body: "prompt is too long"}}, 1, nil, nil},
		{"too large for the minute", session.OutcomeContextTooLong, []llmtest.Step{{Status: 429, Body: "Request too large"}}, 1, nil, nil},
		{"tool panics", session.OutcomeToolError, []llmtest.Step{submission(`{"records":[{"kind":"fact","claim":"PANIC","why":"w","evidence":[1]}]}`), talk}, 2, breakMask, nil},
		{"outside of the slice", session.OutcomeInvalid, []llmtest.Step{submission(submissionOf(99)), talk}, 2, nil, nil},
		{"no JSON", session.OutcomeInvalid, []llmtest.Step{submission(`{"records":[`), talk}, 2, nil, nil},
		{"prose", session.OutcomeNoSubmission, []llmtest.Step{talk}, 1, nil, nil},
		{"cut off", session.OutcomeNoSubmission, []llmtest.Step{half, talk}, 2, nil, nil},
		{"cut off in prose", session.OutcomeNoSubmission, []llmtest.Step{{Text: talk.Text, Stop: llm.StopLength}}, 1, nil, nil},
		{"nothing", session.OutcomeNoSubmission, []llmtest.Step{{}}, 1, nil, nil},
		{"filtered", session.OutcomeNoSubmission, []llmtest.Step{{Text: talk.Text, Stop: llm.StopRefusal}}, 1, nil, nil},
		{"other tools for ever", session.OutcomeTurnLimit, for8(llmtest.Step{Calls: []llmtest.Call{{Tool: "Read", Arguments: `{}`}}}), 8, nil, nil},
		{"refused for ever", session.OutcomeTurnLimit, for8(submission(`{"records":[{}]}`)), 8, nil, nil},
		{"full disk", session.OutcomeStorageError, []llmtest.Step{valid}, 1, fillDisk, nil},
		{"stop", session.OutcomeCancelled, []llmtest.Step{tooLate}, 1, nil, func(w *world) { w.memory.Stop() }},
	}
}

func breakMask(w *world) {
	mask := w.memory.mask
	w.memory.mask = func(text string) string {
		if text == "PANIC" {
			panic("broken")
		}
		return mask(text)
	}
}

func fillDisk(w *world) {
	err := fmt.Errorf("%w: full", session.ErrStorage)
	w.refuse.Store(&err)
}

// For each way a pass can end, in the first chunk and in a later one: the pointer, the
// records, the notices and the counters are right, and the session goes on from there.
func TestPointerMatrix(t *testing.T) {
	for _, r := range rows() {
		for _, first := range []bool{true, false} {
			name := r.name + ", first chunk"
			if !first {
				name = r.name + ", later chunk"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testRow(t, r, first)
			})
		}
	}
}

func testRow(t *testing.T, r row, first bool) {
	var released atomic.Bool
	server := llmtest.New()
	server.Otherwise = llmtest.Step{Reply: func(llmtest.Request) llmtest.Step {
		if !released.Load() {
			return llmtest.Step{Gate: make(chan struct{})} // whatever follows the row waits
		}
		return llmtest.Step{Calls: []llmtest.Call{{Tool: SubmitTool, Arguments: `{"records":[]}`}}}
	}}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	w := newWorld(t, setup{
		settings: func(m *manifest.Memory) { m.ExtractChunkBytes = 1500 }, // four items
		provider: openai.New(openai.Config{BaseURL: server.URL(), Name: "scripted"}),
		backoff:  time.Hour,
	})
	var items []session.Item
	for range 8 {
		items = append(items, user(strings.Repeat("x", 300)))
	}
	id := w.session(items...)
	from, earlier := int64(1), 0
	if !first {
		server.Add(llmtest.Step{Calls: []llmtest.Call{{Tool: SubmitTool, Arguments: submissionOf(1)}}})
		r.steps = slices.Clone(r.steps)
		for i := range r.steps {
			r.steps[i] = moved(r.steps[i])
		}
		from, earlier = 5, 1
	}
	server.Add(r.steps...)
	if first && r.before != nil {
		r.before(w)
	}
	if !first && r.before != nil {
		w.memory.Staged = func(string) { r.before(w) }
	}
	w.memory.TurnEnded(id)
	w.eventually("the model is asked", func() bool { return len(server.Requests()) >= earlier+r.asked })
	if r.during != nil {
		r.during(w)
	}
	if r.outcome == session.OutcomeStorageError {
		w.eventually("the disk refuses", func() bool { return w.runs(session.OutcomeStorageError) == "1" })
	} else {
		w.passesAre(id, earlier+1)
	}
	checkRow(t, w, id, r, from, earlier)
	released.Store(true)
	checkGoesOn(t, w, server, id)
}

// moved lets a step speak of the later chunk.
func moved(s llmtest.Step) llmtest.Step {
	calls := slices.Clone(s.Calls)
	for i := range calls {
		calls[i].Arguments = strings.ReplaceAll(calls[i].Arguments, `[1]`, `[5]`)
	}
	s.Calls = calls
	return s
}

// checkRow checks what the pass has left, on disk and in the counters.
func checkRow(t *testing.T, w *world, id session.ID, r row, from int64, earlier int) {
	t.Helper()
	pointer, records := from-1, earlier
	if r.outcome.Succeeded() {
		pointer = from + 3
	}
	if r.outcome == session.OutcomeStaged {
		records++
	}
	if b := w.backlog(id); b.Pointer != pointer || b.Items != 8-pointer {
		t.Errorf("the backlog is %+v, want the pointer at %d", b, pointer)
	}
	if got := len(w.records()); got != records {
		t.Errorf("%d records, want %d", got, records)
	}
	want := "1"
	if r.outcome == session.OutcomeStaged && earlier > 0 {
		want = "2"
	}
	w.eventually("the pass is counted", func() bool { return w.runs(r.outcome) == want })
	if r.outcome == session.OutcomeStorageError {
		return // its notice comes with the next one
	}
	notices := w.notices(id)
	if len(notices) != earlier+1 {
		t.Fatalf("%d notices, want %d", len(notices), earlier+1)
	}
	last := notices[earlier]
	if last.Outcome != string(r.outcome) || last.FromN != from || last.ToN != from+3 || last.Items != 4 || last.Text != noticeText(r.outcome) {
		t.Errorf("the notice is %+v", last)
	}
}

// checkGoesOn has the rest read, after a restart where that is the way: all items are
// consumed once, in order.
func checkGoesOn(t *testing.T, w *world, server *llmtest.Server, id session.ID) {
	t.Helper()
	w.refuse.Store(nil)
	before := w.backlog(id).Pointer
	w.restart()
	w.settle(id)
	next := before + 1
	for _, p := range w.passes(id) {
		if p.Outcome.Succeeded() && p.FromN > before {
			if p.FromN != next {
				t.Errorf("%s: %d to %d is read when %d is next", p.Outcome, p.FromN, p.ToN, next)
			}
			next = p.ToN + 1
		}
	}
	if w.backlog(id).Pointer != 8 || next != 9 {
		t.Errorf("the pointer stands at %d, passes go up to %d", w.backlog(id).Pointer, next-1)
	}
	if problems := server.Problems(); len(problems) > 0 {
		t.Errorf("the model refused: %q", problems)
	}
	if text := w.log.String(); strings.Contains(text, "occupancy") {
		t.Error("the log speaks of input that is too large to be read")
	}
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, `"level":"warn"`) && strings.Contains(line, `"memory pass ended"`) && !strings.Contains(line, `"reason":"`) {
			t.Errorf("the log does not say why: %s", line)
		}
	}
}
