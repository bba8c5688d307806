package worker

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// answers is a model that follows a script, in this process, so that tests of time
// can run it in a bubble.
type answers struct {
	otherwise []llm.Delta                   // when the script has run out; nil: done
	counts    bool                          // the tokens of requests, as engines guess them
	reply     func(llm.Request) []llm.Delta // instead of all that; nil: none

	mu       sync.Mutex // guards the fields below
	script   []scripted
	requests []llm.Request
}

// scripted is one answer: its deltas, then how it ends.
type scripted struct {
	deltas []llm.Delta
	stop   llm.Stop
	err    error
	hang   bool // until the context ends
}

func (a *answers) Name() string  { return "scripted" }
func (a *answers) Model() string { return "m" }

func (a *answers) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	a.mu.Lock()
	r.Items = slices.Clone(r.Items)
	a.requests = append(a.requests, r)
	next := scripted{deltas: says("done")}
	if a.otherwise != nil {
		next.deltas = a.otherwise
	}
	if a.reply != nil {
		next.deltas = a.reply(r)
	} else if len(a.script) > 0 {
		next, a.script = a.script[0], a.script[1:]
	}
	a.mu.Unlock()
	var whole llm.Answer
	for _, d := range next.deltas {
		for d.Block >= len(whole.Blocks) {
			whole.Blocks = append(whole.Blocks, llm.Block{Kind: d.Kind, Tool: d.Tool})
		}
		whole.Blocks[d.Block].Text += d.Text
		emit(d)
	}
	if next.hang {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return llm.Answer{}, context.Cause(ctx)
	}
	whole.Stop = next.stop
	if whole.Stop == "" {
		whole.Stop = llm.StopEnd
	}
	whole.Usage = session.Usage{InputTokens: 10, CachedInputTokens: 4, OutputTokens: 2}
	if a.counts {
		whole.Usage.InputTokens = new(Gauge).tokensOf(requestBytes(r))
	}
	return whole, next.err
}

func says(pieces ...string) []llm.Delta {
	var all []llm.Delta
	for _, piece := range pieces {
		all = append(all, llm.Delta{Kind: session.KindAssistantMessage, Text: piece})
	}
	return all
}

func thinks(text string) []llm.Delta {
	return []llm.Delta{{Kind: session.KindReasoning, Text: text}}
}

// calls is an answer that calls tools: name, arguments, name, arguments …
func calls(namesAndArguments ...string) []llm.Delta {
	var all []llm.Delta
	for i := 0; i < len(namesAndArguments); i += 2 {
		all = append(all, llm.Delta{Block: i / 2, Kind: session.KindToolCall, Tool: namesAndArguments[i], Text: namesAndArguments[i+1]})
	}
	return all
}

// then puts blocks behind each other.
func then(parts ...[]llm.Delta) []llm.Delta {
	var all []llm.Delta
	next := 0
	for _, part := range parts {
		first := next
		for _, d := range part {
			d.Block += first
			next = max(next, d.Block+1)
			all = append(all, d)
		}
	}
	return all
}

// record is a Log in memory, which can be told to refuse.
type record struct {
	mu     sync.Mutex // guards the fields below
	events []session.Event
	shown  []session.Event // not durable ones
	refuse func(events []session.Event) error
}

func (l *record) Commit(_ context.Context, events []session.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		if err := l.refuse(events); err != nil {
			return err
		}
	}
	for i := range events {
		events[i].Seq = int64(len(l.events) + 1)
		l.events = append(l.events, events[i])
	}
	return nil
}

func (l *record) Emit(ev session.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = append(l.shown, ev)
}

// items is the history as a store would have it.
func (l *record) items() []session.Item {
	var all []session.Item
	for _, ev := range l.events {
		if ev.Item != nil {
			all = append(all, *ev.Item)
		}
	}
	slices.SortFunc(all, func(a, b session.Item) int { return int(a.N - b.N) })
	return all
}

func (l *record) results() []session.ToolResult {
	var all []session.ToolResult
	for _, item := range l.items() {
		if item.ToolResult != nil {
			all = append(all, *item.ToolResult)
		}
	}
	return all
}

func (l *record) types() []session.EventType {
	var all []session.EventType
	for _, ev := range l.events {
		all = append(all, ev.Type)
	}
	return all
}

// bench is an engine with what it drives.
type workbench struct {
	t       testing.TB
	engine  *Engine
	model   *answers
	log     *record
	history *History
	turn    session.Turn
}

func limits() manifest.ToolOutput {
	return manifest.ToolOutput{DefaultMaxBytes: 1000, StepMaxBytes: 8000, CaptureMaxBytes: 1 << 20}
}

func newWorkbench(t testing.TB, tools []tool.Tool, script ...scripted) *workbench {
	t.Helper()
	set := tool.NewSet(tools...)
	model := &answers{script: script}
	engine, err := New(limits(), Config{
		Provider: model, Tools: set, MaxSteps: 5, MaxCallsPerStep: 8, MaxAttempts: 3,
		RetryMaxWait: time.Second, ToolTimeout: time.Minute,
		Metrics: NewMetrics(prometheus.NewRegistry(), set.Names(), []string{"scripted"}), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	turn := session.Turn{ID: session.NewTurnID(), SessionID: session.NewID(), State: session.TurnRunning, StartedAt: session.Now(), Input: "go"}
	user := session.Item{N: 1, SessionID: turn.SessionID, TurnID: turn.ID, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "go"}}
	return &workbench{t: t, engine: engine, model: model, log: &record{}, history: &History{Items: []session.Item{user}}, turn: turn}
}

// run takes the turn to its end and checks what holds for each.
func (w *workbench) run(ctx context.Context) session.Turn {
	w.t.Helper()
	ended, err := w.engine.Run(ctx, context.Background(), w.log, w.history, w.turn, false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.check()
	return ended
}

// check holds that numbers are dense, that each call has one result in call order,
// that only the last event is terminal, and that each number which a delta carried
// was committed or voided.
func (w *workbench) check() {
	w.t.Helper()
	items := w.log.items()
	var open []int64
	for i, item := range items {
		if item.N != int64(i+2) {
			w.t.Errorf("item %d stands at place %d", item.N, i+2)
		}
		switch {
		case item.ToolCall != nil:
			open = append(open, item.N)
		case item.ToolResult != nil && (len(open) == 0 || open[0] != item.ToolResult.CallN):
			w.t.Errorf("item %d answers call %d, open are %v", item.N, item.ToolResult.CallN, open)
		case item.ToolResult != nil:
			open = open[1:]
		}
	}
	if len(open) > 0 {
		w.t.Errorf("calls %v have no result", open)
	}
	for i, ev := range w.log.events {
		if ev.Type.Terminal() != (i == len(w.log.events)-1) {
			w.t.Errorf("event %d of %d is %s", i+1, len(w.log.events), ev.Type)
		}
	}
	for i, item := range w.history.Items[1:] {
		if item.N != items[i].N || item.Kind != items[i].Kind {
			w.t.Errorf("the history has %s %d where the log has %s %d", item.Kind, item.N, items[i].Kind, items[i].N)
		}
	}
	if len(w.history.Items) != len(items)+1 {
		w.t.Errorf("the history has %d items, the log %d and the input", len(w.history.Items), len(items))
	}
}

func content(s string) session.Output {
	return session.Output{Summary: "ok", Content: &s}
}

func arguments(text string) json.RawMessage { return json.RawMessage(text) }
