package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/worker"
)

const (
	// leastWindow is that of the smallest model, in tokens.
	leastWindow = 5000
	// tokensPerByte is what the model counts: what is projected of a session that
	// has shown nothing yet, so that no request of it is ever refused for its size.
	tokensPerByte = 0.56
)

// model is a strict service that follows a script for each input. It is outside of
// the server: crashes do not touch it.
type model struct {
	mu         sync.Mutex // guards the fields below
	settings   settings
	scripts    map[string][]answer
	extraction []string // what it does with the next chunks of a history
	broken     bool     // it was to fail in a way that no service does
	problems   []string // of requests, which must have none
}

// answer is what the model does when it is asked.
type answer struct {
	How       string
	Text      string
	Calls     []string // arguments; each other one as it is
	Wait      time.Duration
	Reasoning string
}

func (m *model) Name() string  { return "scripted" }
func (m *model) Model() string { return "m" }

func (m *model) set(s settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = s
}

func (m *model) prepare(input string, script []answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.scripts == nil {
		m.scripts = map[string][]answer{}
	}
	m.scripts[session.Clean(input)] = script
}

// Ask implements llm.Provider.
func (m *model) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	next, tokens, err := m.take(r)
	if err != nil {
		return llm.Answer{}, err
	}
	whole := llm.Answer{Stop: llm.StopEnd, Usage: session.Usage{InputTokens: tokens, OutputTokens: 10}}
	say := func(kind session.ItemKind, name string, pieces ...string) {
		whole.Blocks = append(whole.Blocks, llm.Block{Kind: kind, Tool: name, Text: strings.Join(pieces, "")})
		for _, piece := range pieces {
			emit(llm.Delta{Block: len(whole.Blocks) - 1, Kind: kind, Tool: name, Text: piece})
			name = ""
		}
	}
	if next.Reasoning != "" {
		say(session.KindReasoning, "", next.Reasoning)
	}
	if next.Text != "" {
		half := len(next.Text) / 2
		for half > 0 && next.Text[half]&0xC0 == 0x80 {
			half--
		}
		say(session.KindAssistantMessage, "", next.Text[:half], next.Text[half:])
	}
	if pause(ctx, next.Wait) != nil {
		return llm.Answer{}, context.Cause(ctx)
	}
	for _, call := range next.Calls {
		name, arguments := toolOf(call)
		say(session.KindToolCall, name, arguments)
	}
	return next.end(whole)
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a answer) end(whole llm.Answer) (llm.Answer, error) {
	refuse := func(class llm.Class, status int, wait time.Duration) (llm.Answer, error) {
		return llm.Answer{}, &llm.Error{Class: class, Status: status, RetryAfter: wait, Err: errors.New("scripted")}
	}
	switch a.How {
	case "busy":
		return refuse(llm.ClassRetry, 529, 0)
	case "limit":
		return refuse(llm.ClassRetry, 429, 20*time.Second)
	case "too long":
		return refuse(llm.ClassShrink, 413, 0)
	case "bad key":
		return refuse(llm.ClassFail, 401, 0)
	case "strange":
		return llm.Answer{}, errors.New("not an error of a provider")
	case "panic":
		panic("provider")
	case "length":
		whole.Stop = llm.StopLength
	case "refusal":
		whole.Stop = llm.StopRefusal
	}
	return whole, nil
}

// take examines a request and finds the answer to it.
func (m *model) take(r llm.Request) (answer, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	input, itemBytes, bytes := "", int64(0), int64(len(r.System))
	for _, spec := range r.Tools {
		bytes += int64(len(spec.Name) + len(spec.Description) + len(spec.Parameters))
	}
	for i := range r.Items {
		if r.Items[i].UserMessage != nil {
			input = r.Items[i].UserMessage.Text
		}
		itemBytes += worker.ItemBytes(&r.Items[i])
	}
	bytes += itemBytes
	if err := llmtest.Check(r); err != nil {
		m.problems = append(m.problems, fmt.Sprintf("a strict service refuses the request: %v", err))
	}
	tokens := int64(math.Ceil(float64(bytes) * tokensPerByte))
	limit := m.settings.inputTokens()
	if isExtraction(r) {
		limit = max(limit, leastExtraction)
	}
	if tokens > limit+limit/50 { // what a session has shown is no more exact than this
		if float64(len(input)) < float64(limit)/2 && !isExtraction(r) { // a chunk may be too long, and is halved then
			m.problems = append(m.problems, fmt.Sprintf("the request has %d tokens of %d, its input %d bytes, its %d items %d of %d", tokens, limit, len(input), len(r.Items), itemBytes, bytes))
		}
		return answer{}, 0, &llm.Error{Class: llm.ClassShrink, Status: 400, Err: errors.New("prompt is too long")}
	}
	script := m.scripts[input]
	if isExtraction(r) {
		return m.reads(input), tokens, nil
	}
	if len(r.Tools) == 0 {
		return compactions[int(bytes)%len(compactions)], tokens, nil
	}
	if len(script) == 0 {
		return answer{Text: "done"}, tokens, nil
	}
	m.scripts[input] = script[1:]
	m.broken = m.broken || script[0].How == "panic" || script[0].How == "strange"
	return script[0], tokens, nil
}

// compactions are the answers to requests for a summary.
var compactions = []answer{
	{Text: "They talked."}, {Text: strings.Repeat("They talked. ", 3000)}, {}, {Text: " \n"}, {How: "too long"}, {How: "busy"}, {How: "bad key"}, {Text: "cut", How: "length"}, {How: "refusal"},
}

func (s settings) inputTokens() int64 { return min(s.window.InputTokens(), s.budget.MaxTokens()) }

func (m *model) trouble() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problems
}

func drawScript(r *rapid.T) []answer {
	return rapid.SliceOfN(rapid.Custom(drawAnswer), 0, 4).Draw(r, "script")
}

func drawAnswer(r *rapid.T) answer {
	a := answer{
		How:  rapid.SampledFrom([]string{"", "", "", "", "", "busy", "limit", "too long", "bad key", "strange", "panic", "length", "refusal"}).Draw(r, "how"),
		Text: rapid.SampledFrom([]string{"", "Let me see.", " \n", "日本", strings.Repeat("words ", 10_000)}).Draw(r, "text"),
		Wait: rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 10 * time.Minute}).Draw(r, "wait of the model"),
	}
	a.Reasoning = rapid.SampledFrom([]string{"", "", "", "Hm.", strings.Repeat("Hm. ", 5000)}).Draw(r, "reasoning")
	for range rapid.SampledFrom([]int{0, 1, 1, 2, 3, 12}).Draw(r, "calls") {
		a.Calls = append(a.Calls, drawCall(r))
	}
	return a
}

func drawCall(r *rapid.T) string {
	switch odd := rapid.SampledFrom([]string{"", "", "", "", "", "", "{\"bytes\":", "[]", "unknown tool", readOutput, readOutput, `{"text":"\u0000"}`}).Draw(r, "odd call"); odd {
	case "":
	case readOutput:
		return drawLook(r)
	default:
		return odd
	}
	o := order{
		Bytes: rapid.OneOf(rapid.SampledFrom([]int{0, 0, 10, 127, 128, 129, 1000, 5000, 16384, 16385}), rapid.IntRange(0, 300_000)).Draw(r, "bytes"),
		Text:  rapid.SampledFrom([]string{"", "lines", "wide", "broken", "nul", "blank", "marker", "long"}).Draw(r, "of"),
		Tool:  rapid.SampledFrom([]string{"", "", "", "", "fail", "error", "panic", "nothing", "no summary", "long summary", "slow", "stuck", "deaf"}).Draw(r, "tool"),
	}
	if rapid.IntRange(0, 3).Draw(r, "unseen") == 0 {
		o.Unseen, o.Full = rapid.Int64Range(0, 1<<40).Draw(r, "unseen bytes"), true
	}
	o.Before = rapid.SampledFrom([]string{"", "", "", "", "", "rewrite", "spoil", "deny", "panic"}).Draw(r, "before")
	o.After = rapid.SampledFrom([]string{"", "", "", "", "", "grow", "empty", "blank", "panic"}).Draw(r, "after")
	o.Pad = strings.Repeat("p", rapid.SampledFrom([]int{0, 0, 0, 0, 300, 50_000}).Draw(r, "pad"))
	arguments, err := json.Marshal(o)
	if err != nil {
		r.Fatal(err)
	}
	return string(arguments)
}
