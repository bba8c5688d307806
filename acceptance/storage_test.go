package acceptance

import (
	"os"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// While the disk refuses the end of a turn, its session refuses new turns and a cancel
// with 503, and goes on by itself when the disk is back. Nothing acknowledged is lost.
func TestDiskThatRefusesForAWhile(t *testing.T) {
	blocking := tooltest.NewBlocking("Wait")
	w := start(t, setup{tools: []tool.Tool{blocking}, script: []llmtest.Step{calls("Wait")}})
	id := w.newSession()
	turn := w.post(id, "wait")
	<-blocking.Entered
	dir := w.manifest.Store.Dir
	if err := os.Rename(dir, dir+"-gone"); err != nil {
		t.Fatal(err)
	}
	blocking.Release()
	answer, text := w.ask("POST", turnsOf(id)+"/"+string(turn.ID)+"/cancel", "", "")
	wantProblem(t, answer, text, 503, "storage")
	answer, text = w.ask("POST", turnsOf(id), "", `{"input":"next"}`, "Content-Type", "application/json")
	wantProblem(t, answer, text, 503, "storage")
	if err := os.Rename(dir+"-gone", dir); err != nil {
		t.Fatal(err)
	}
	if ended := w.await(id, turn.ID); ended.State != session.TurnCancelled && ended.Error.Code != session.CodeStorage {
		t.Errorf("the turn ended as %s %+v", ended.State, ended.Error)
	}
	if got := results(w.items(id)); len(got) != 1 {
		t.Errorf("results %+v", got)
	}
	w.stillFine(id)
}

func TestQueueIsBounded(t *testing.T) {
	const waiting = 100
	blocking := tooltest.NewBlocking("Wait")
	w := start(t, setup{tools: []tool.Tool{blocking}, script: []llmtest.Step{calls("Wait")}})
	id := w.newSession()
	w.post(id, "wait")
	<-blocking.Entered
	for range waiting {
		w.post(id, "later")
	}
	answer, text := w.ask("POST", turnsOf(id), "", `{"input":"too much"}`, "Content-Type", "application/json")
	wantProblem(t, answer, text, 429, "queue_full")
	blocking.Release()
}
