package memory

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// A poison slice does not cost a call after each turn: the wait between passes grows,
// whatever the turns do, and is bounded.
func TestFailuresWaitLongerAndLonger(t *testing.T) {
	inTime(t, setup{}, func(t *testing.T, w *world) {
		var mu sync.Mutex // guards at
		var at []time.Time
		for range 60 {
			w.model.add(reply{make: func(llm.Request) reply {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Now())
				return refuses(llm.ClassRetry)
			}})
		}
		id := w.session(user("hello"))
		w.memory.TurnEnded(id)
		for range 600 {
			<-time.After(time.Minute / 2)
			w.memory.TurnEnded(id)
		}
		mu.Lock()
		if len(at) < 15 || len(at) > 45 {
			t.Fatalf("%d passes in five hours", len(at))
		}
		for i := 1; i < len(at); i++ {
			wait, want := at[i].Sub(at[i-1]), min(time.Second<<min(i-1, 20), maxBackoff)
			if wait < want/2-time.Second || wait > want*3/2+time.Second {
				t.Errorf("wait %d is %s, want about %s", i, wait, want)
			}
		}
		mu.Unlock()
		w.model.mu.Lock()
		w.model.script = nil
		w.model.mu.Unlock()
		if how, err := w.memory.Extract(t.Context(), id); err != nil || how != session.ExtractRunning {
			t.Errorf("extract now: %s, %v", how, err)
		}
		began := time.Now()
		w.idle()
		if time.Since(began) > time.Second || w.backlog(id).Pointer != 1 {
			t.Errorf("an extract on request waited %s", time.Since(began))
		}
	})
}

// Case A21, over virtual time.
func TestBacklogIsReadOnceAfterFailures(t *testing.T) {
	inTime(t, setup{}, func(t *testing.T, w *world) {
		for range 4 {
			w.model.add(refuses(llm.ClassRetry))
		}
		id := w.session(user("message 0"))
		w.memory.TurnEnded(id)
		for n := range 4 {
			w.passesAre(id, n+1)
			for i := range 6 {
				w.add(id, user(fmt.Sprintf("message %d", n*6+i+1)))
				w.memory.TurnEnded(id)
			}
		}
		w.idle()
		if w.backlog(id).Pointer != 25 || w.runs(session.OutcomeProviderError) != "4" || w.runs(session.OutcomeEmpty) != "1" {
			t.Errorf("pointer %d: %s", w.backlog(id).Pointer, w.outcomes(id))
		}
		asked := w.model.asked()
		for i := range 25 {
			if !strings.Contains(asked[len(asked)-1], fmt.Sprintf(`"message %d"`, i)) {
				t.Errorf("message %d is missing from the last request", i)
			}
		}
	})
}
