package acceptance

import (
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
)

// A hundred turns that a crash has interrupted go on soon after the next start.
func TestManyTurnsGoOnAfterACrash(t *testing.T) {
	const sessions, within = 100, 3 * time.Second
	shut, asked := make(chan struct{}), make(chan struct{}, sessions)
	p := launch(t, "")
	p.model.Otherwise = announces(asked, llmtest.Step{Text: []string{"Half ", "of it"}, Gate: shut, GateAfter: 1})
	for range sessions {
		p.post(p.newSession(), "go")
	}
	for range sessions {
		<-asked
	}
	p.kill()
	started := time.Now()
	p.boot()
	for n := range sessions {
		select {
		case <-asked:
		case <-time.After(time.Until(started.Add(patience))):
			t.Fatalf("%d of %d turns go on", n, sessions)
		}
	}
	took := time.Since(started)
	if t.Logf("all go on after %s", took); took > within {
		t.Errorf("all go on after %s, want within %s", took, within)
	}
}
