package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"loadline/internal/artifact"
	"loadline/internal/host"
	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
	"loadline/internal/worker"
)

// settings are what the manifest of one life says.
type settings struct {
	window  llm.Window
	budget  *llm.Budget
	limits  manifest.ToolOutput
	compact int // model requests of a compaction
	memory  manifest.Memory
	quota   int64 // of kept outputs, in bytes
}

// life is one process of the server.
type life struct {
	settings settings
	store    *store.Store
	mortal   *mortal
	host     *host.Host
	engine   *worker.Engine
	keeper   *artifact.Keeper
	memory   *memory.Extractor
	over     bool
}

func drawSettings(r *rapid.T) settings {
	limit := rapid.SampledFrom([]int{16384, 1000, manifest.MinLimitBytes}).Draw(r, "limit")
	set := settings{
		window: llm.Window{ContextTokens: rapid.SampledFrom([]int64{0, 32_000, 8000, leastWindow}).Draw(r, "window")},
		limits: manifest.ToolOutput{
			DefaultMaxBytes: limit, StepMaxBytes: rapid.SampledFrom([]int{131072, limit, manifest.MinLimitBytes}).Draw(r, "step limit"), CaptureMaxBytes: 1 << 20,
		},
		compact: rapid.IntRange(0, 3).Draw(r, "compaction requests"),
		memory:  drawMemory(r),
		quota:   rapid.SampledFrom([]int64{1 << 30, 1 << 30, smallQuota}).Draw(r, "quota"),
	}
	if rapid.IntRange(0, 3).Draw(r, "budget") == 0 {
		set.budget = llm.NewBudget(30_000)
	}
	return set
}

func newLife(s *sequence) *life {
	l := &life{settings: drawSettings(s.T)}
	var err error
	if l.store, err = store.Open(s.ctx, s.dir, zerolog.Nop()); err != nil {
		s.Fatal(err)
	}
	l.mortal = &mortal{Store: l.store, left: -1}
	l.keeper = s.newKeeper(l.settings.quota, l.store)
	s.swept = s.swept || l.settings.quota == smallQuota
	registry := prometheus.NewRegistry()
	tools := tool.NewSet(tooltest.Func{Name: "Print", RunFunc: printed}, l.keeper.Tool(l.store))
	metrics := worker.NewMetrics(registry, append(tools.Names(), memory.SubmitTool), []string{"scripted"})
	l.engine, err = worker.New(l.settings.limits, worker.Config{
		Provider: s.model, Window: l.settings.window, Budget: l.settings.budget, Tools: tools, Instructions: "Be brief.",
		Compaction: worker.Compaction{Provider: s.model, Window: l.settings.window, Budget: l.settings.budget, MaxCalls: l.settings.compact},
		Before:     []worker.BeforeTool{before}, After: []worker.AfterTool{after},
		MaxSteps: 6, MaxCallsPerStep: 8, MaxAttempts: 3, RetryMaxWait: time.Minute, ToolTimeout: time.Minute,
		Keeper: l.keeper, Metrics: metrics, Log: zerolog.Nop(),
	})
	if err != nil {
		s.Fatal(err)
	}
	project := host.Project{Engine: l.engine, StallAfter: 10 * time.Minute, InterruptOnRestart: rapid.IntRange(0, 3).Draw(s.T, "on restart") == 0}
	streams := stream.NewMetrics(registry)
	l.host = host.New(host.Config{
		Store: l.mortal,
		NewTopic: func(id session.ID, lastSeq int64) host.Topic {
			return topic{stream.NewTopic(id, lastSeq, l.store, streams)}
		},
		Projects: map[string]host.Project{"default": project}, DefaultProject: "default", Orphan: project,
		TurnEnded: func(id session.ID) { l.memory.TurnEnded(id) }, Registry: registry, Log: zerolog.Nop(),
	})
	l.memory = s.newMemory(l, metrics, registry)
	return l
}

// recover goes on with what an earlier life has left.
func (l *life) recover(ctx context.Context) error {
	return errors.Join(l.host.Recover(ctx), l.memory.Recover(ctx))
}

type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }

// end stops the server, once.
func (l *life) end(drain time.Duration) {
	if l.over {
		return
	}
	l.over = true
	l.host.Stop(drain)
	l.memory.Stop()
	l.keeper.Close()
	if err := l.store.Close(); err != nil {
		panic(err)
	}
}

func (l *life) refuse(n int) {
	l.mortal.mu.Lock()
	defer l.mortal.mu.Unlock()
	l.mortal.refuse = n
}

func (l *life) refused() bool {
	l.mortal.mu.Lock()
	defer l.mortal.mu.Unlock()
	return l.mortal.refused
}

func (l *life) dieAfter(commits int, stands bool) {
	l.mortal.mu.Lock()
	defer l.mortal.mu.Unlock()
	l.mortal.left, l.mortal.stands = commits, stands
}

func (l *life) die() {
	l.mortal.mu.Lock()
	defer l.mortal.mu.Unlock()
	l.mortal.dead = true
}

// order is the arguments of a call: what its tool and its interceptors do.
type order struct {
	Bytes  int    `json:"bytes,omitempty"`
	Text   string `json:"text,omitempty"` // repeated up to Bytes
	Unseen int64  `json:"unseen,omitempty"`
	Full   bool   `json:"full,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Pad    string `json:"pad,omitempty"`
}

// texts are what outputs are made of, by name: arguments are JSON, which cannot hold
// all of them.
var texts = map[string]string{
	"lines": "one line\n", "wide": "あ🦆é", "broken": "a\xff\xc3\x28\xe3\x81", "nul": "\x00", "blank": " \n",
	"marker": "[truncated: 7 bytes dropped, refine your query]\n", "long": strings.Repeat("x", 4096),
}

func (o order) content() string {
	text := texts[o.Text]
	if text == "" {
		text = "."
	}
	return strings.Repeat(text, o.Bytes/len(text)+1)[:o.Bytes]
}

// printed is the tool.
func printed(ctx context.Context, call tool.Call) (session.Output, error) {
	var o order
	if err := json.Unmarshal(call.Arguments, &o); err != nil {
		return session.Output{}, errors.Join(tool.ErrArguments, err)
	}
	content := o.content()
	out := session.Output{Summary: "printed", Content: &content, Unseen: o.Unseen}
	if o.Full {
		out.Full = content + content
	}
	switch o.Tool {
	case "fail":
		out.Failed = true
	case "error":
		return out, errors.New(content)
	case "panic":
		panic(content)
	case "nothing":
		return session.Output{}, nil
	case "no summary":
		out.Summary = " \n"
	case "long summary":
		out.Summary = content
	case "slow":
		call.Progress("still there")
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
		}
	case "stuck":
		<-ctx.Done()
	case "deaf":
		pass(10 * time.Minute)
	}
	return out, nil
}

func orderOf(call worker.Call) (o order) {
	_ = json.Unmarshal(call.Arguments, &o) // what is no order does nothing
	return o
}

func before(_ context.Context, call worker.Call) worker.Verdict {
	switch o := orderOf(call); o.Before {
	case "rewrite":
		return worker.Verdict{Arguments: json.RawMessage(`{"bytes":200000,"text":"wide"}`)}
	case "spoil":
		return worker.Verdict{Arguments: json.RawMessage(`not JSON`)}
	case "deny":
		content := o.content()
		return worker.Verdict{Answer: &session.Output{Summary: "denied", Content: &content, Failed: true}}
	case "panic":
		panic("before")
	}
	return worker.Verdict{}
}

func after(_ context.Context, call worker.Call, out session.Output) session.Output {
	switch orderOf(call).After {
	case "grow":
		content := strings.Repeat("grown ", 40_000)
		return session.Output{Summary: out.Summary, Content: &content}
	case "empty":
		return session.Output{}
	case "blank":
		content := " "
		return session.Output{Summary: "", Content: &content}
	case "panic":
		panic("after")
	}
	return out
}
