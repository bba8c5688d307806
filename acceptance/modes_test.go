package acceptance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// postAs submits a turn in a mode and expects it to be accepted.
func (c *client) postAs(id session.ID, input string, mode session.Mode, expected session.TurnID, headers ...string) (t session.Turn) {
	c.t.Helper()
	body := session.Submission{Input: input, Mode: mode, ExpectedTurn: expected}
	if answer := c.do("POST", turnsOf(id), body, &t, headers...); answer.StatusCode != http.StatusAccepted {
		c.t.Fatalf("post a turn of mode %s: %s", mode, answer.Status)
	}
	return t
}

// queued is what waits, as the queue is listed.
func (c *client) queued(id session.ID) (inputs []string) {
	c.t.Helper()
	var page struct{ Data []session.Turn }
	c.do("GET", "/v1/sessions/"+string(id)+"/queue", nil, &page)
	for _, t := range page.Data {
		inputs = append(inputs, t.Input)
	}
	return inputs
}

// said is what people have said, in order.
func (c *client) said(id session.ID) (inputs []string) {
	c.t.Helper()
	for _, item := range c.items(id) {
		if item.UserMessage != nil {
			inputs = append(inputs, item.UserMessage.Text)
		}
	}
	return inputs
}

// Who interrupts comes before all who wait. What the model was saying stays.
func TestInterruptWhileTheModelAnswers(t *testing.T) {
	shut := make(chan struct{})
	w := start(t, setup{script: []llmtest.Step{{Text: []string{"Half ", "of it"}, Gate: shut, GateAfter: 1}}})
	w.model.Otherwise = says("well")
	id := w.newSession()
	first := w.post(id, "first")
	s := w.stream(id, "")
	s.text(len("Half "))
	last := w.post(id, "last")
	w.postAs(id, "at once", session.ModeInterrupt, "")
	if ended := w.await(id, first.ID); ended.State != session.TurnCancelled || errorCode(ended) != session.CodeSuperseded {
		t.Errorf("the first turn: %s %+v", ended.State, ended.Error)
	}
	w.await(id, last.ID)
	if got := w.said(id); !slices.Equal(got, []string{"first", "at once", "last"}) {
		t.Errorf("it went on with %q", got)
	}
	if half := w.items(id)[1].AssistantMessage; half == nil || half.Text != "Half " || !half.Incomplete {
		t.Errorf("the half answer: %+v", half)
	}
	w.stillFine(id)
}

// Calls that run when somebody interrupts come to their end first. The newest
// interruption is the first, and replays change nothing.
func TestInterruptWhileToolsRun(t *testing.T) {
	blocks := tooltest.NewBlocking("Blocks")
	w := start(t, setup{tools: []tool.Tool{blocks}, script: []llmtest.Step{calls("Blocks")}})
	w.model.Otherwise = says("well")
	id := w.newSession()
	first := w.post(id, "first")
	<-blocks.Entered
	last := w.post(id, "last")
	older := w.postAs(id, "older", session.ModeInterrupt, "")
	newer := w.postAs(id, "newer", session.ModeInterrupt, "", "Idempotency-Key", "k")
	if again := w.postAs(id, "newer", session.ModeInterrupt, "", "Idempotency-Key", "k"); again.ID != newer.ID {
		t.Errorf("with the same key it is turn %s, was %s", again.ID, newer.ID)
	}
	if got := w.queued(id); !slices.Equal(got, []string{"newer", "older", "last"}) {
		t.Errorf("the queue is %q", got)
	}
	w.cancel(id, older.ID)
	blocks.Release()
	w.await(id, last.ID)
	if got := w.said(id); !slices.Equal(got, []string{"first", "newer", "last"}) {
		t.Errorf("it went on with %q", got)
	}
	if result := results(w.items(id))[0]; result.Failed {
		t.Errorf("the call that ran: %+v", result)
	}
	if ended := w.await(id, first.ID); errorCode(ended) != session.CodeSuperseded || ended.Steps != 1 {
		t.Errorf("the first turn: %s %+v after %d steps", ended.State, ended.Error, ended.Steps)
	}
	if got := w.queued(id); len(got) != 0 {
		t.Errorf("%q still waits", got)
	}
	w.stillFine(id)
}

// What steers enters the running turn with its next step, in order, and the turn
// that carried it is completed by that.
func TestSteerTheRunningTurn(t *testing.T) {
	blocks := tooltest.NewBlocking("Blocks")
	w := start(t, setup{tools: []tool.Tool{blocks}, script: []llmtest.Step{calls("Blocks"), says("as you wish")}})
	w.model.Otherwise = says("well")
	id := w.newSession()
	first := w.post(id, "first")
	<-blocks.Entered
	last := w.post(id, "last")
	left := w.postAs(id, "to the left", session.ModeSteer, first.ID, "Idempotency-Key", "k")
	w.postAs(id, "and slowly", session.ModeSteer, first.ID)
	if got := w.queued(id); !slices.Equal(got, []string{"to the left", "and slowly", "last"}) {
		t.Errorf("the queue is %q", got)
	}
	blocks.Release()
	if ended := w.await(id, left.ID); ended.State != session.TurnCompleted || ended.StartedAt != 0 || ended.ExpectedTurn != first.ID {
		t.Errorf("what steered: %+v", ended)
	}
	w.await(id, last.ID)
	const want = "user_message tool_call tool_result user_message user_message assistant_message user_message assistant_message"
	items := w.items(id)
	if got := kinds(items); got != want {
		t.Errorf("items %q, want %q", got, want)
	}
	for _, item := range items[:6] {
		if item.TurnID != first.ID {
			t.Errorf("item %d belongs to %s", item.N, item.TurnID)
		}
	}
	if asked := w.model.Requests()[1].Messages; !strings.Contains(fmt.Sprint(asked[len(asked)-2:]), "to the left") {
		t.Errorf("the model was last told %v", asked[len(asked)-2:])
	}
	again := w.postAs(id, "to the left", session.ModeSteer, first.ID, "Idempotency-Key", "k") // its turn has ended meanwhile
	if again.ID != left.ID || again.State != session.TurnCompleted {
		t.Errorf("with the same key it is %+v", again)
	}
	w.stillFine(id)
}

// Who expects a turn that does not run is refused.
func TestSteerWhatDoesNotRun(t *testing.T) {
	shut := make(chan struct{})
	w := start(t, setup{script: []llmtest.Step{says("done"), {Text: []string{"Half ", "of it"}, Gate: shut, GateAfter: 1}}})
	w.model.Otherwise = says("well")
	id := w.newSession()
	ended := w.say(id, "first")
	running := w.post(id, "second")
	waiting := w.post(id, "third")
	s := w.stream(id, "")
	s.until(func(ev session.Event) bool { return ev.TurnID == running.ID && ev.Delta != nil })
	for name, expected := range map[string]session.TurnID{"ended": ended.ID, "waiting": waiting.ID, "unknown": session.NewTurnID()} {
		var problem struct{ Code string }
		answer := w.do("POST", turnsOf(id), session.Submission{Input: "left", Mode: session.ModeSteer, ExpectedTurn: expected}, &problem)
		if answer.StatusCode != http.StatusConflict || problem.Code != "turn_not_running" {
			t.Errorf("%s: %s %s", name, answer.Status, problem.Code)
		}
	}
	// The running turn has no next step: the input is the next turn, before the others.
	late := w.postAs(id, "late", session.ModeSteer, running.ID)
	close(shut)
	if end := w.await(id, late.ID); end.State != session.TurnCompleted || end.StartedAt == 0 {
		t.Errorf("what came too late to steer: %+v", end)
	}
	w.await(id, waiting.ID)
	if got := w.said(id); !slices.Equal(got, []string{"first", "second", "late", "third"}) {
		t.Errorf("it went on with %q", got)
	}
	w.stillFine(id)
}

// What was acknowledged is done after a crash, in the mode in which it came.
func TestModesSurviveACrash(t *testing.T) {
	for _, c := range []struct {
		mode session.Mode
		said []string
		code session.ErrorCode // of the running turn
	}{
		{session.ModeSteer, []string{"first", "now", "last"}, ""},
		{session.ModeInterrupt, []string{"first", "now", "last"}, session.CodeSuperseded},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			t.Parallel()
			p := launch(t, "", bashed(holds))
			p.model.Otherwise = says("well")
			hold := p.fifo("hold")
			id := p.newSession()
			first := p.post(id, "first")
			defer p.running(hold).Close()
			last := p.post(id, "last")
			expected := session.TurnID("")
			if c.mode == session.ModeSteer {
				expected = first.ID
			}
			now := p.postAs(id, "now", c.mode, expected)
			p.crash()
			p.await(id, last.ID)
			if got := p.said(id); !slices.Equal(got, c.said) {
				t.Errorf("it went on with %q", got)
			}
			if ended := p.await(id, first.ID); errorCode(ended) != c.code {
				t.Errorf("the running turn: %s %+v", ended.State, ended.Error)
			}
			if ended := p.await(id, now.ID); ended.State != session.TurnCompleted || (ended.StartedAt == 0) != (c.mode == session.ModeSteer) {
				t.Errorf("the other one: %+v", ended)
			}
			p.crash()
			p.stillFine(id)
		})
	}
}
