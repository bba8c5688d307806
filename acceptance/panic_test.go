package acceptance

import (
	"context"
	"strings"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
	"loadline/internal/worker"
)

// blameless is an error with the usual mistake: nil pointers of it are not nil.
type blameless struct{ text string }

func (e *blameless) Error() string { return e.text }

// cursed panics again when somebody looks at it.
type cursed struct{}

func (cursed) Error() string { panic("secret of the error") }

func TestA27PanicsAreContained(t *testing.T) {
	writesNilMap := does("Panics", func(context.Context) (session.Output, error) {
		var m map[string]int
		m["secret"]++ //nolint:staticcheck // it panics: that is the test
		return session.Output{}, nil
	})
	buildsSummary := does("Panics", func(context.Context) (session.Output, error) {
		var names []string
		return session.Output{Summary: "found " + names[0]}, nil
	})
	typedNil := does("Panics", func(context.Context) (session.Output, error) {
		var err *blameless
		return session.Output{Summary: "secret of the tool"}, err
	})
	fine := prints("Panics", "fine")
	before := func(context.Context, worker.Call) worker.Verdict { panic("secret of the interceptor") }
	after := func(context.Context, worker.Call, session.Output) session.Output {
		panic("secret of the interceptor")
	}
	forgetsNil := func(_ context.Context, _ worker.Call, out session.Output) session.Output {
		out.Content = session.Text(strings.ToUpper(*out.Content))
		return out
	}
	for _, c := range []struct {
		name  string
		setup setup
	}{
		{"tool", setup{tools: []tool.Tool{writesNilMap}}},
		{"tool, with a value that panics", setup{tools: []tool.Tool{tooltest.Panicking("Panics", cursed{})}}},
		{"tool, with nil", setup{tools: []tool.Tool{tooltest.Panicking("Panics", nil)}}},
		{"builder of a summary", setup{tools: []tool.Tool{buildsSummary}}},
		{"error that is a typed nil", setup{tools: []tool.Tool{typedNil}}},
		{"error that panics", setup{tools: []tool.Tool{does("Panics", func(context.Context) (session.Output, error) { return session.Output{}, cursed{} })}}},
		{"interceptor before", setup{tools: []tool.Tool{fine}, before: []worker.BeforeTool{before}}},
		{"interceptor after", setup{tools: []tool.Tool{fine}, after: []worker.AfterTool{after}}},
		{"interceptor after an output without content", setup{tools: []tool.Tool{tooltest.Func{Name: "Panics"}}, after: []worker.AfterTool{forgetsNil}}},
	} {
		t.Run(c.name, func(t *testing.T) { panicsAreContained(t, c.setup) })
	}
}

func panicsAreContained(t *testing.T, s setup) {
	t.Helper()
	waits := tooltest.NewBlocking("Waits")
	s.tools = append(s.tools, waits)
	if s.before != nil || s.after != nil {
		s.before, s.after = onlyFor("Panics", s.before, s.after)
	}
	s.script = []llmtest.Step{calls("Waits"), calls("Panics", "Panics"), says("I see.")}
	w := start(t, s)
	other, id := w.newSession(), w.newSession()
	meanwhile := w.post(other, "wait")
	<-waits.Entered
	if turn := w.say(id, "panic"); turn.State != session.TurnCompleted || turn.Steps != 2 {
		t.Errorf("the turn with a panic: %s %v after %d steps", turn.State, turn.Error, turn.Steps)
	}
	got := results(w.items(id))
	if len(got) != 2 {
		t.Fatalf("%d results, want 2", len(got))
	}
	for _, r := range got {
		if !r.Failed || contentOf(r) == "" || strings.Contains(r.Summary, "\n") {
			t.Errorf("result: failed %v, %q, %q", r.Failed, r.Summary, contentOf(r))
		}
	}
	waits.Release()
	w.model.Add(says("waited"))
	if turn := w.await(other, meanwhile.ID); turn.State != session.TurnCompleted {
		t.Errorf("the turn of the other session: %s %v", turn.State, turn.Error)
	}
	w.stillFine(id)
	if n := w.metric(`tool_calls_total{outcome="panic",tool="Panics"}`); n != "2" {
		t.Errorf("%s panics are counted, want 2", n)
	}
	for _, request := range w.model.Requests() {
		for _, secret := range []string{"secret", "goroutine", ".go:", "runtime", "nil map", "index out of range", "PANIC"} {
			if strings.Contains(string(request.Body), secret) {
				t.Errorf("the model was sent %q: %s", secret, request.Body)
			}
		}
	}
}

// onlyFor limits interceptors to one tool.
func onlyFor(name string, before []worker.BeforeTool, after []worker.AfterTool) (b []worker.BeforeTool, a []worker.AfterTool) {
	for _, intercept := range before {
		b = append(b, func(ctx context.Context, call worker.Call) (v worker.Verdict) {
			if call.Tool == name {
				v = intercept(ctx, call)
			}
			return v
		})
	}
	for _, intercept := range after {
		a = append(a, func(ctx context.Context, call worker.Call, out session.Output) session.Output {
			if call.Tool == name {
				return intercept(ctx, call, out)
			}
			return out
		})
	}
	return b, a
}

// broken is a model whose client panics in mid-answer, until it is mended.
type broken struct{ mended bool }

func (*broken) Name() string  { return "demo" }
func (*broken) Model() string { return "broken" }

func (b *broken) Ask(_ context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	emit(llm.Delta{Kind: session.KindAssistantMessage, Text: "Some text"})
	if !b.mended {
		panic("secret of the client")
	}
	return llm.Answer{Blocks: []llm.Block{{Kind: session.KindAssistantMessage, Text: "Some text"}}, Stop: llm.StopEnd}, nil
}

// A panic outside of any tool ends the turn, and only that.
func TestA27PanicOfTheModelsClientEndsTheTurn(t *testing.T) {
	model := &broken{}
	w := start(t, setup{provider: model})
	id := w.newSession()
	turn := w.say(id, "hello")
	if turn.State != session.TurnFailed || errorCode(turn) != session.CodeInternal || strings.Contains(turn.Error.Detail, "secret") {
		t.Errorf("the turn: %s %+v", turn.State, turn.Error)
	}
	model.mended = true
	w.stillFine(id)
}
