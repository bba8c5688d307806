package acceptance

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// oneTool answers with a call of Echo, and with words once its result is there, both
// after a pause of up to 50 ms.
func oneTool(r llmtest.Request) llmtest.Step {
	step := calls("Echo")
	if len(lastResults(r)) > 0 {
		step = says("done")
	}
	step.Delay = rand.N(50 * time.Millisecond)
	return step
}

// Two turns at the same instant never mix: one runs, the other waits or is refused.
func TestA17TwoTurnsAtOnce(t *testing.T) {
	const repeats = 50
	w := start(t, setup{tools: []tool.Tool{prints("Echo", "x")}})
	w.model.Otherwise = replies(oneTool)
	var sessions sync.WaitGroup
	for _, mode := range []session.Mode{session.ModeEnqueue, session.ModeReject} {
		for range 5 {
			sessions.Go(func() {
				id := w.newSession()
				accepted := 0
				for range repeats / 10 {
					accepted += w.postBoth(id, mode)
				}
				w.unmixed(id, accepted)
				w.inOrder(id)
			})
		}
	}
	sessions.Wait()
	if problems := w.model.Problems(); len(problems) > 0 {
		t.Errorf("the model refused: %s", strings.Join(problems, "; "))
	}
}

// postBoth releases two turns at the same instant, waits for the end of those that
// were accepted, and counts them.
func (c *client) postBoth(id session.ID, mode session.Mode) (accepted int) {
	c.t.Helper()
	var both sync.WaitGroup
	release := make(chan struct{})
	turns := make([]session.Turn, 2)
	for i := range turns {
		both.Go(func() {
			<-release
			answer := c.do("POST", turnsOf(id), map[string]any{"input": "go", "mode": mode}, &turns[i])
			refused := mode == session.ModeReject && answer.StatusCode == http.StatusConflict
			if answer.StatusCode != http.StatusAccepted && !refused {
				c.t.Errorf("mode %s: %s", mode, answer.Status)
			}
		})
	}
	close(release)
	both.Wait()
	for _, turn := range turns {
		if turn.ID == "" {
			continue
		}
		accepted++
		if ended := c.await(id, turn.ID); ended.State != session.TurnCompleted {
			c.t.Errorf("the turn: %s %+v", ended.State, ended.Error)
		}
	}
	return accepted
}

// unmixed checks that a history is whole turns of one call each.
func (c *client) unmixed(id session.ID, turns int) {
	c.t.Helper()
	items := c.items(id)
	const each = "user_message tool_call tool_result assistant_message"
	if want := strings.TrimSuffix(strings.Repeat(each+" ", turns), " "); kinds(items) != want || turns == 0 {
		c.t.Errorf("%d turns have the items %q", turns, kinds(items))
		return
	}
	for i, item := range items {
		if first := items[i-i%4]; item.TurnID != first.TurnID {
			c.t.Errorf("item %d is of turn %s, among those of %s", item.N, item.TurnID, first.TurnID)
		}
	}
}

// A key makes a turn once, whenever and however it is repeated.
func TestA19KeyMakesOneTurn(t *testing.T) {
	blocks, runs := counted("Blocks")
	w := start(t, setup{tools: []tool.Tool{blocks}, script: []llmtest.Step{calls("Blocks"), says("done")}})
	id := w.newSession()
	first := w.post(id, "go", "Idempotency-Key", "k1")
	<-blocks.Entered
	repeat := func(when string) {
		t.Helper()
		var again session.Turn
		answer := w.do("POST", turnsOf(id), map[string]any{"mode": "enqueue", "input": "go"}, &again, "Idempotency-Key", "k1")
		var now session.Turn
		w.do("GET", turnsOf(id)+"/"+string(first.ID), nil, &now)
		if diff := cmp.Diff(now, again); diff != "" || answer.StatusCode != http.StatusAccepted || answer.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("repeated %s: %s, replayed %q, %s", when, answer.Status, answer.Header.Get("Idempotency-Replayed"), diff)
		}
	}
	repeat("while it runs")
	for _, body := range []map[string]any{{"input": "other"}, {"input": "go", "mode": "reject"}} {
		if answer, text := w.send("POST", turnsOf(id), body, "Idempotency-Key", "k1"); answer.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("the key with %v: %s %s", body, answer.Status, text)
		}
	}
	blocks.Release()
	w.await(id, first.ID)
	repeat("after its end")
	w.restart()
	repeat("after a restart")
	replayed := w.postStream(id, "go", "Idempotency-Key", "k1")
	events := replayed.rest()
	if len(events) == 0 || events[0].Type != session.EventTurnQueued || events[len(events)-1].Type != session.EventTurnCompleted {
		t.Errorf("the replayed stream has %d events", len(events))
	}
	if turns := pages[session.Turn](w.client, turnsOf(id)); len(turns) != 1 || runs.Load() != 1 {
		t.Errorf("%d turns, the tool ran %d times", len(turns), runs.Load())
	}
	other := w.newSession()
	if turn := w.post(other, "else", "Idempotency-Key", "k1"); turn.ID == first.ID {
		t.Error("the key of one session is known in another")
	}
	if one, two := w.post(id, "same"), w.post(id, "same"); one.ID == two.ID {
		t.Error("without a key two posts are one turn")
	}
	w.awaitIdle(id)
	w.stillFine(id)
}

// The same key from many clients at the same instant makes one turn.
func TestA19KeyFromManyClientsAtOnce(t *testing.T) {
	w := start(t, setup{tools: []tool.Tool{prints("Echo", "x")}})
	w.model.Otherwise = replies(oneTool)
	id := w.newSession()
	var clients sync.WaitGroup
	ids := make([]session.TurnID, 20)
	for i := range ids {
		clients.Go(func() { ids[i] = w.post(id, "go", "Idempotency-Key", "k").ID })
	}
	clients.Wait()
	for _, other := range ids {
		if other != ids[0] {
			t.Errorf("turns %s and %s", ids[0], other)
		}
	}
	w.await(id, ids[0])
	w.unmixed(id, 1)
}

// awaitIdle waits until all turns of a session have ended; they do so in order.
func (c *client) awaitIdle(id session.ID) {
	c.t.Helper()
	turns := pages[session.Turn](c, turnsOf(id))
	for i := len(turns) - 1; i >= 0; i-- {
		if !turns[i].State.Ended() {
			c.await(id, turns[i].ID)
			return
		}
	}
}

// A queue is worked off in order, bounded, and each of its turns can be withdrawn.
func TestA17QueueKeepsItsOrder(t *testing.T) {
	blocks := tooltest.NewBlocking("Blocks")
	w := start(t, setup{tools: []tool.Tool{blocks}, script: []llmtest.Step{calls("Blocks")}})
	id := w.newSession()
	w.post(id, "go")
	<-blocks.Entered
	var queued []session.TurnID
	for n := range 100 {
		queued = append(queued, w.post(id, fmt.Sprint(n)).ID)
	}
	if answer, _ := w.send("POST", turnsOf(id), map[string]any{"input": "one more"}); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("turn 101 of the queue: %s", answer.Status)
	}
	if answer, text := w.send("POST", turnsOf(id), map[string]any{"input": "now", "mode": session.ModeReject}); answer.StatusCode != http.StatusConflict {
		t.Errorf("a turn that will not wait: %s %s", answer.Status, text)
	}
	for n := 1; n < 100; n += 2 {
		w.cancel(id, queued[n])
	}
	blocks.Release()
	w.awaitIdle(id)
	var inputs, want []string
	for _, item := range w.items(id) {
		if item.UserMessage != nil {
			inputs = append(inputs, item.UserMessage.Text)
		}
	}
	for n := 0; n < 100; n += 2 {
		want = append(want, fmt.Sprint(n))
	}
	if diff := cmp.Diff(append([]string{"go"}, want...), inputs); diff != "" {
		t.Errorf("turns ran as %s", diff)
	}
	w.stillFine(id)
}
