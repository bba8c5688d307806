package acceptance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// death is a way in which a session is known to have died elsewhere.
type death struct {
	name     string
	limits   llmtest.Limits // of the model
	manifest string
	tools    []tool.Tool
	script   []llmtest.Step
	inputs   []string // of the turns; none: one
	once     bool     // it is slow, and the protocol makes no difference
	refused  int      // requests that may be refused for their size at most
}

const (
	openWide     = "[worker.tool_output]\ndefault_max_bytes = 33554432\nstep_max_bytes = 33554432\ncapture_max_bytes = 33554432\n"
	perMinute30k = "[model]\ninput_tokens_per_minute = 30000\n"
)

func window(tokens int) string { return fmt.Sprintf("[model]\ncontext_window = %d\n", tokens) }

func deaths() []death {
	paths := func(bytes int) string { return strings.Repeat("src/some/folder/file.go\n", bytes/24) }
	hugeArguments := fmt.Sprintf(`{"path":"a","content":%q}`, strings.Repeat("word ", 200_000))
	return []death{
		{name: "125 KB result against 30k tokens a minute", limits: llmtest.Limits{PerMinute: 30_000}, manifest: perMinute30k + openWide,
			tools: []tool.Tool{prints("Glob", paths(125_000))}, script: []llmtest.Step{calls("Glob"), says("many files")}},
		{name: "1.68 MB against a window of 131k", limits: llmtest.Limits{Window: 131_072}, manifest: window(131_072) + openWide,
			tools: []tool.Tool{prints("Bash", paths(1_680_000))}, script: []llmtest.Step{calls("Bash"), says("long")}},
		{name: "the same, and nobody knows the window", limits: llmtest.Limits{Window: 131_072}, manifest: openWide, refused: 3,
			tools: []tool.Tool{prints("Bash", paths(1_680_000))}, script: []llmtest.Step{calls("Bash"), says("long")}},
		{name: "a line of 24 MB", once: true, limits: llmtest.Limits{Window: 131_072}, manifest: window(131_072) + "[worker.tool_output]\ndefault_max_bytes = 4194304\nstep_max_bytes = 4194304\n",
			tools: []tool.Tool{prints("Bash", strings.Repeat("x", 24<<20))}, script: []llmtest.Step{calls("Bash"), says("long")}},
		{name: "20 results at the cap", limits: llmtest.Limits{Window: 32_768}, manifest: window(32_768) + "[worker.tool_output]\nstep_max_bytes = 1048576\n",
			tools: []tool.Tool{prints("Read", paths(100_000))}, script: []llmtest.Step{calls(slices.Repeat([]string{"Read"}, 20)...), says("many")}},
		{name: "14,000 calls in one answer", once: true, limits: llmtest.Limits{Window: 32_768}, manifest: window(32_768),
			tools: []tool.Tool{prints("Read", paths(100_000))}, script: []llmtest.Step{calls(slices.Repeat([]string{"Read"}, 14_000)...), says("many")}},
		{name: "huge arguments", once: true, limits: llmtest.Limits{Window: 131_072}, manifest: window(131_072),
			tools: []tool.Tool{prints("Write", "written")}, script: []llmtest.Step{callsWith("Write", hugeArguments, `{"path":"b"}`), says("written")}},
		{name: "a wall of calls over many steps", limits: llmtest.Limits{PerMinute: 3_000_000, Window: 30_000}, manifest: window(30_000),
			tools: []tool.Tool{prints("Read", paths(16_000))}, script: append(slices.Repeat([]llmtest.Step{calls("Read")}, 30), says("read"))},
		{name: "long messages over many turns", limits: llmtest.Limits{Window: 20_000}, manifest: window(20_000),
			script: slices.Repeat([]llmtest.Step{says(strings.Repeat("a word ", 600))}, 20), inputs: slices.Repeat([]string{strings.Repeat("tell me more ", 200)}, 20)},
		{name: "a paste of half a window, again and again", limits: llmtest.Limits{Window: 20_000}, manifest: window(20_000),
			script: slices.Repeat([]llmtest.Step{says("thanks")}, 6), inputs: slices.Repeat([]string{strings.Repeat("x", 16_000)}, 6)},
		{name: "no budget in the manifest", limits: llmtest.Limits{PerMinute: 30_000}, manifest: openWide, refused: 4,
			tools: []tool.Tool{prints("Glob", paths(125_000))}, script: []llmtest.Step{calls("Glob"), says("many files")}},
	}
}

// Whatever has killed sessions elsewhere, here each turn completes.
func TestD01KnownDeaths(t *testing.T) {
	for _, d := range deaths() {
		protocols := []string{"openai", "anthropic"}
		if d.once {
			protocols = protocols[:1]
		}
		for _, protocol := range protocols {
			t.Run(d.name+" over "+protocol, func(t *testing.T) {
				t.Parallel()
				w := start(t, setup{manifest: d.manifest, protocol: protocol, tools: d.tools, script: d.script})
				w.model.Limits = d.limits
				id := w.newSession()
				for _, input := range append(d.inputs, "and?")[:max(1, len(d.inputs))] {
					if turn := w.settle(id, w.post(id, input).ID); turn.State != session.TurnCompleted {
						t.Fatalf("turn: %s %+v", turn.State, turn.Error)
					}
				}
				if limited := w.model.Limited(); limited > 0 {
					t.Errorf("%d requests came too early", limited)
				}
				if n := w.tooLarge(id); n > d.refused {
					t.Errorf("%d requests were refused as too large, at most %d may be", n, d.refused)
				}
				w.stillFine(id)
			})
		}
	}
}

// settle is await for a reader that may be slower than what is streamed: it comes
// back whenever it is left behind.
func (c *client) settle(id session.ID, turn session.TurnID) session.Turn {
	c.t.Helper()
	for last := ""; ; {
		s := c.stream(id, last)
		for {
			ev, err := s.read()
			if err != nil {
				break
			}
			if ev.Type.Terminal() && ev.TurnID == turn {
				s.close()
				return *ev.Turn
			}
		}
		last = s.id
		s.close()
	}
}

// tooLarge counts the requests that were refused for their size.
func (c *client) tooLarge(id session.ID) (n int) {
	c.t.Helper()
	for _, ev := range c.events(id) {
		if ev.Type == session.EventStepRetrying {
			n++
		}
	}
	return n
}

// A summariser that takes less than what it is to sum up, that fails, or that writes
// without end, costs a few calls and no turn.
func TestD02SummariserThatOverflows(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*llmtest.Server)
		asked  int  // in one compaction at most
		rule   bool // it was of no use
	}{
		{"works", func(*llmtest.Server) {}, 4, false},
		{"overflows", func(s *llmtest.Server) { s.Limits.Window = 100 }, 4, true},
		{"overflows at first", func(s *llmtest.Server) { s.Limits.Window = 2500 }, 4, false},
		{"fails", func(s *llmtest.Server) { s.Otherwise = refuses(http.StatusUnauthorized, "who?") }, 1, true},
		{"writes without end", func(s *llmtest.Server) {
			s.Otherwise = llmtest.Step{Text: []string{strings.Repeat("so ", 4000)}, Endless: true}
		}, 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			summariser := llmtest.New()
			summariser.Otherwise = says("the summary")
			c.change(summariser)
			if err := summariser.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(summariser.Close)
			w := start(t, setup{manifest: window(16_000) + "[compaction.model]\ncontext_window = 8000\n", summariser: summariser})
			w.model.Limits.Window, w.model.Otherwise = 16_000, says(strings.Repeat("a word ", 400))
			id := w.newSession()
			for range 10 {
				if turn := w.say(id, strings.Repeat("tell me more ", 100)); turn.State != session.TurnCompleted {
					t.Fatalf("turn: %s %+v", turn.State, turn.Error)
				}
			}
			var texts []string
			for _, item := range w.items(id) {
				if item.Summary != nil {
					texts = append(texts, item.Summary.Text)
				}
			}
			if len(texts) < 1 || len(texts) > 3 || strings.Contains(texts[0], "shortened by rule") != c.rule {
				t.Errorf("%d summaries: %.400q, by rule want %v", len(texts), texts, c.rule)
			}
			if asked := len(summariser.Requests()); asked < len(texts) || asked > len(texts)*c.asked {
				t.Errorf("the summariser was asked %d times for %d summaries", asked, len(texts))
			}
			if problems := summariser.Problems(); len(problems) > 0 {
				t.Errorf("the summariser refused %q", problems)
			}
			w.stillFine(id)
		})
	}
}

// Four sessions on one key work until each has waited for its turn; none of their
// requests comes too early.
func TestD06SessionsShareTheMinute(t *testing.T) {
	const perMinute = 1_200_000
	w := start(t, setup{manifest: fmt.Sprintf("[server]\nbody_max_bytes = 4194304\n[model]\ncontext_window = 4000000\ninput_tokens_per_minute = %d\n", perMinute)})
	w.model.Limits.PerMinute = perMinute
	if turn := w.say(w.newSession(), strings.Repeat("x", 2_000_000)); turn.State != session.TurnCompleted { // most of a minute's tokens
		t.Fatalf("turn: %s %+v", turn.State, turn.Error)
	}
	var sessions sync.WaitGroup
	for range 4 {
		id := w.newSession()
		sessions.Go(func() {
			for range 8 {
				turn := w.say(id, strings.Repeat("word ", 2000))
				if turn.State != session.TurnCompleted {
					t.Errorf("turn: %s %+v", turn.State, turn.Error)
				}
				if slices.ContainsFunc(w.events(id), func(ev session.Event) bool { return ev.Wait != nil && ev.Wait.WaitMS > 0 }) {
					return
				}
			}
			t.Error("a session has never waited")
		})
	}
	sessions.Wait()
	if limited := w.model.Limited(); limited > 0 {
		t.Errorf("%d requests came too early", limited)
	}
}

// A session that has grown in a large model goes on in a small one.
func TestD03SwitchToASmallerModel(t *testing.T) {
	w := start(t, setup{manifest: window(200_000), tools: []tool.Tool{prints("Read", strings.Repeat("line of a file\n", 1000))}})
	id := w.newSession()
	for i := range 12 {
		w.model.Add(calls("Read", "Read"), says(strings.Repeat("a word ", 500)))
		if turn := w.say(id, fmt.Sprintf("%d %s", i, strings.Repeat("tell me more ", 100))); turn.State != session.TurnCompleted {
			t.Fatalf("turn: %s %+v", turn.State, turn.Error)
		}
	}
	small := w.manifest.Projects["default"]
	small.Model.ContextWindow = 8192
	w.manifest.Projects["default"] = small
	w.model.Limits.Window = 8192
	w.restart()
	w.model.Add(calls("Read"), says("as ever"))
	if turn := w.say(id, "and now?"); turn.State != session.TurnCompleted {
		t.Errorf("turn in the small model: %s %+v", turn.State, turn.Error)
	}
	if n := w.tooLarge(id); n > 0 {
		t.Errorf("%d requests were refused as too large", n)
	}
	w.stillFine(id)
}

// An input that can never fit is refused before anything of it is stored; one that
// has been accepted for a larger model ends its own turn, and nothing else.
func TestD05InputThatCannotFit(t *testing.T) {
	w := start(t, setup{manifest: "[server]\nbody_max_bytes = 4194304\n" + window(131_072)})
	id := w.newSession()
	megabyte := map[string]any{"input": strings.Repeat("paste ", 1_000_000/6)}
	for range 2 { // its key is not taken either
		var problem struct{ Code, Detail string }
		answer := w.do("POST", turnsOf(id), megabyte, &problem, "Idempotency-Key", "k1")
		if answer.StatusCode != http.StatusRequestEntityTooLarge || problem.Code != "input_too_large" || !strings.Contains(problem.Detail, "999996 bytes") {
			t.Errorf("a megabyte is answered %d %+v", answer.StatusCode, problem)
		}
	}
	if s := w.session(id); s.LastSeq != 0 {
		t.Errorf("%d events are stored of what was refused", s.LastSeq)
	}
	asked := make(chan struct{}, 1)
	w.model.Add(announces(asked, llmtest.Step{Gate: make(chan struct{})}))
	first := w.post(id, "take your time", "Idempotency-Key", "k1")
	<-asked
	large := w.post(id, strings.Repeat("paste ", 20_000))
	small := w.manifest.Projects["default"]
	small.Model.ContextWindow = 8192
	w.manifest.Projects["default"] = small
	w.restart()
	turn := w.settle(id, large.ID)
	if turn.State != session.TurnFailed || errorCode(turn) != session.CodeInputTooLarge || !strings.Contains(turn.Error.Detail, "120000 bytes") {
		t.Errorf("what no longer fits: %s %+v", turn.State, turn.Error)
	}
	if turn := w.settle(id, first.ID); turn.State != session.TurnInterrupted && turn.State != session.TurnCompleted {
		t.Errorf("the one before it: %s %+v", turn.State, turn.Error)
	}
	w.model.Limits.Window = 8192
	w.stillFine(id)
	if n := w.tooLarge(id); n > 0 {
		t.Errorf("%d requests were refused as too large", n)
	}
}
