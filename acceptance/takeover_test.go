package acceptance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"loadline/internal/host"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// second starts another host on the store of the world, with tools of its own. It
// takes over every session that has an unfinished turn.
func (w *world) second(tools ...tool.Tool) *host.Host {
	w.t.Helper()
	h := w.newHost(prometheus.NewRegistry(), tools...)
	w.t.Cleanup(func() { h.Stop(0) })
	if err := h.Recover(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return h
}

// follow reads a session's stream from a host until the turn ends.
func follow(t *testing.T, h *host.Host, id session.ID, turn session.TurnID) session.Turn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sub, err := h.Subscribe(ctx, id, session.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for {
		events, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Type.Terminal() && ev.TurnID == turn {
				return *ev.Turn
			}
		}
	}
}

func countsRuns(name string, runs *atomic.Int32) tool.Tool {
	return does(name, func(context.Context) (session.Output, error) {
		runs.Add(1)
		return session.Output{Summary: name + ": done"}, nil
	})
}

// commits is a store that tells how each commit went.
type commits struct {
	host.Store
	tell func(error)
}

func (c commits) Append(ctx context.Context, b *session.Batch) error {
	err := c.Store.Append(ctx, b)
	c.tell(err)
	return err
}

// A session that is opened through two handles of the store belongs to the one that
// took it over last: the commit of the first fails, and no tool runs for it.
func TestSecondHandleOfTheStoreTakesOver(t *testing.T) {
	var ran atomic.Int32
	stale, gate := make(chan error, 1), make(chan struct{})
	w := start(t, setup{
		tools:  []tool.Tool{countsRuns("Echo", &ran)},
		script: []llmtest.Step{{Text: []string{"I ", "call"}, Calls: calls("Echo").Calls, Gate: gate, GateAfter: 1}, says("later")},
		store: func(s host.Store) host.Store {
			return commits{s, func(err error) {
				if err != nil {
					stale <- err
				}
			}}
		},
	})
	id := w.newSession()
	turn := w.post(id, "go")
	w.stream(id, "").text(len("I "))
	if err := os.Remove(filepath.Join(w.manifest.Store.Dir, "loadline.lock")); err != nil { // it keeps a second handle out
		t.Fatal(err)
	}
	second, err := store.Open(t.Context(), w.manifest.Store.Dir, w.log)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := second.TakeOver(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	close(gate)
	if err := <-stale; !errors.Is(err, session.ErrStale) {
		t.Errorf("the commit of the first owner: %v, want ErrStale", err)
	}
	w.stop() // whatever the first owner still does is done then
	if found, err := second.Turn(t.Context(), id, turn.ID); err != nil || found.State != session.TurnRunning || ran.Load() != 0 {
		t.Errorf("the turn is %s, %v; its tool ran %d times", found.State, err, ran.Load())
	}
	if items, err := second.Items(t.Context(), id, 0, 10); err != nil || kinds(items) != "user_message" {
		t.Errorf("items %q, %v", kinds(items), err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	w.setup.store = nil
	w.boot()
	if ended := w.await(id, turn.ID); ended.State != session.TurnCompleted {
		t.Errorf("after a restart the turn is %s %+v", ended.State, ended.Error)
	}
}

// From an owner that was taken over nothing is stored, streamed or run any more.
func TestTakenOverOwnerDoesNothingMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		held  func(gate <-chan struct{}) llmtest.Step // how the first owner is held
		tool  bool                                    // in its tool, not in the model's answer
		kinds string
	}{
		{"while the model answers with a call", func(gate <-chan struct{}) llmtest.Step {
			return llmtest.Step{Text: []string{"I ", "call"}, Calls: calls("Echo").Calls, Gate: gate, GateAfter: 1}
		}, false, "user_message assistant_message"},
		{"while the model answers in words", func(gate <-chan struct{}) llmtest.Step {
			return llmtest.Step{Text: []string{"I ", "say"}, Gate: gate, GateAfter: 1}
		}, false, "user_message assistant_message"},
		{"while a tool runs", func(<-chan struct{}) llmtest.Step { return calls("Blocks", "Blocks") }, true, "user_message tool_call tool_call tool_result tool_result assistant_message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var first, second atomic.Int32
			gate, blocks := make(chan struct{}), tooltest.NewBlocking("Blocks")
			w := start(t, setup{
				tools:  []tool.Tool{countsRuns("Echo", &first), blocks},
				script: []llmtest.Step{c.held(gate), says("the second owner speaks")},
			})
			id := w.newSession()
			turn := w.post(id, "go")
			s := w.stream(id, "")
			if c.tool {
				<-blocks.Entered
				<-blocks.Entered
			} else {
				s.text(len("I "))
			}
			h := w.second(countsRuns("Echo", &second), countsRuns("Blocks", &second))
			if ended := follow(t, h, id, turn.ID); ended.State != session.TurnCompleted {
				t.Errorf("with the second owner the turn is %s %+v", ended.State, ended.Error)
			}
			close(gate)
			blocks.Release()
			for _, ev := range s.rest() { // it ends
				if ev.Type.Terminal() || ev.Item != nil && ev.Item.ToolResult != nil {
					t.Errorf("the first owner's stream has %s %d", ev.Type, ev.Seq)
				}
			}
			if got := kinds(w.items(id)); got != c.kinds {
				t.Errorf("items %q, want %q", got, c.kinds)
			}
			if first.Load() != 0 || second.Load() != 0 {
				t.Errorf("tools ran %d and %d times", first.Load(), second.Load())
			}
			if asked := len(w.model.Requests()); asked != 2 {
				t.Errorf("the model was asked %d times, want once by each owner", asked)
			}
			w.stillFine(id) // the first host takes the session back
		})
	}
}

// A host that lost an idle session to another takes it back when it is asked for a
// turn, as often as that happens.
func TestIdleSessionGoesBackAndForth(t *testing.T) {
	w := start(t, setup{})
	w.model.Otherwise = says("hello")
	id := w.newSession()
	w.say(id, "one")
	h := w.second()
	for range 2 {
		// Whoever still holds the session as it was keeps nobody from what it is.
		held, err := w.host.Subscribe(t.Context(), id, session.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		turn, _, err := h.Submit(t.Context(), id, session.Submission{Input: "two", Mode: session.ModeEnqueue}, nil)
		if err != nil {
			t.Fatalf("the second host: %v", err)
		}
		if ended := follow(t, h, id, turn.ID); ended.State != session.TurnCompleted {
			t.Errorf("with the second host the turn is %s", ended.State)
		}
		if ended := w.say(id, "three"); ended.State != session.TurnCompleted {
			t.Errorf("with the first host the turn is %s", ended.State)
		}
	}
	w.stillFine(id)
}

// A queued turn can be cancelled at a host that does not know yet that it has lost the
// session.
func TestQueuedTurnIsCancelledWhereItsSessionWasLost(t *testing.T) {
	gate := make(chan struct{})
	w := start(t, setup{script: []llmtest.Step{{Text: []string{"I ", "wait"}, Gate: gate, GateAfter: 1}}})
	defer close(gate)
	w.model.Otherwise = llmtest.Step{Text: []string{"I ", "wait"}, Gate: gate, GateAfter: 1}
	id := w.newSession()
	w.post(id, "one")
	w.stream(id, "").text(len("I "))
	waiting := w.post(id, "two")
	w.second()
	if ended := w.cancel(id, waiting.ID); ended.State != session.TurnCancelled {
		t.Errorf("the turn is %s %+v", ended.State, ended.Error)
	}
}

// A server answers requests while it restores sessions: whoever comes before a session
// is restored finds it restored all the same.
func TestSessionIsUsedBeforeItIsRestored(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, h *host.Host, id session.ID, running session.TurnID){
		"post": func(t *testing.T, h *host.Host, id session.ID, running session.TurnID) {
			turn, _, err := h.Submit(t.Context(), id, session.Submission{Input: "next", Mode: session.ModeEnqueue}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ended := follow(t, h, id, turn.ID); ended.State != session.TurnCompleted {
				t.Errorf("the turn ended as %s", ended.State)
			}
		},
		"cancel": func(t *testing.T, h *host.Host, id session.ID, running session.TurnID) {
			turn, err := h.Cancel(t.Context(), id, running)
			if err != nil || !turn.State.Ended() {
				t.Errorf("the turn is %s, %v", turn.State, err)
			}
		},
		"delete": func(t *testing.T, h *host.Host, id session.ID, running session.TurnID) {
			if err := h.Delete(t.Context(), id); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			blocking := tooltest.NewBlocking("Wait")
			w := start(t, setup{tools: []tool.Tool{blocking}, script: []llmtest.Step{calls("Wait")}})
			id := w.newSession()
			running := w.post(id, "wait")
			<-blocking.Entered
			h := w.newHost(prometheus.NewRegistry(), tooltest.Returning("Wait", "x"))
			t.Cleanup(func() { h.Stop(0) })
			use(t, h, id, running.ID)
			blocking.Release()
		})
	}
}
