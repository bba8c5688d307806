package acceptance

import (
	"net/http"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func (c *client) diagnosis(id session.ID) (d session.Diagnosis) {
	c.t.Helper()
	if answer := c.do("GET", "/v1/sessions/"+string(id)+"/diagnosis", nil, &d); answer.StatusCode != http.StatusOK {
		c.t.Fatalf("diagnosis: %s", answer.Status)
	}
	return d
}

// A session can be asked what it does while it does it, and changes nothing by that.
func TestDiagnosisOfARunningSession(t *testing.T) {
	blocks := tooltest.NewBlocking("Blocks")
	w := start(t, setup{tools: []tool.Tool{blocks, prints("Echo", strings.Repeat("x", 9000))}, script: []llmtest.Step{calls("Echo"), calls("Blocks")}})
	w.model.Otherwise = says("well")
	id := w.newSession()
	running := w.post(id, "first")
	<-blocks.Entered
	waiting := w.post(id, "second")
	d := w.diagnosis(id)
	if d.Running == nil || d.Running.TurnID != running.ID || d.Running.Steps != 2 || d.Running.LastSign == 0 || d.Running.Stalled {
		t.Errorf("running %+v", d.Running)
	}
	if len(d.Queue) != 1 || d.Queue[0] != waiting.ID || d.State != session.StateRunning || d.Generation != 1 {
		t.Errorf("%s in generation %d, queue %v", d.State, d.Generation, d.Queue)
	}
	if len(d.OpenCalls) != 1 || d.OpenCalls[0].N != 4 || d.OpenCalls[0].Tool != "Blocks" || d.OpenCalls[0].Effect != session.EffectPossible {
		t.Errorf("open calls %+v", d.OpenCalls)
	}
	next := d.NextRequest
	if len(next.Largest) == 0 || next.Largest[0].N != 3 || next.Largest[0].Tool != "Echo" || next.Largest[0].SentBytes < 9000 || !next.Fits || next.Bytes < 9000 || next.Tokens == 0 {
		t.Errorf("next request %+v", next)
	}
	blocks.Release()
	w.await(id, waiting.ID)
	if d = w.diagnosis(id); d.Running != nil || len(d.Queue)+len(d.OpenCalls) != 0 || d.State != session.StateIdle || d.Items != int64(len(w.items(id))) {
		t.Errorf("afterwards %+v", d)
	}
	w.stillFine(id)
	w.restart()
	if d = w.diagnosis(id); d.Generation != 1 {
		t.Errorf("to look at it made generation %d", d.Generation)
	}
	var problem struct{ Code string }
	if answer := w.do("GET", "/v1/sessions/"+string(session.NewID())+"/diagnosis", nil, &problem); answer.StatusCode != http.StatusNotFound {
		t.Errorf("of an unknown session: %s", answer.Status)
	}
}

// The diagnosis says how far memory is behind, in the real server.
func TestDiagnosisTellsHowFarMemoryIsBehind(t *testing.T) {
	p := launch(t, "[memory]\nenabled = true", says("noted"), callsWith("SubmitRecords", `{"records":[]}`))
	id := p.newSession()
	p.settleTurn(id, "I like tea.")
	if lag := p.diagnosis(id).Memory; lag.Pointer != 0 || lag.Items != 2 || lag.Bytes < int64(len("I like tea."+"noted")) {
		t.Errorf("before an extract: %+v", lag)
	}
	if answer := p.do("POST", "/v1/sessions/"+string(id)+"/extract", nil, nil); answer.StatusCode != http.StatusAccepted {
		t.Fatalf("extract: %s", answer.Status)
	}
	p.stream(id, "").until(ofType(session.EventMemoryExtract))
	if lag := p.diagnosis(id).Memory; lag != (session.MemoryLag{Pointer: 2}) {
		t.Errorf("after an extract: %+v", lag)
	}
}
