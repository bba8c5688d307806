package memory

import (
	"sync"
	"time"

	"loadline/internal/session"
)

// letterPause is how long after a dead letter the next one is held back when no pass
// has succeeded meanwhile: when nothing succeeds, it is not the ranges' fault.
const letterPause = time.Hour

// gate says when a dead letter may be made, and which sessions wait for that.
type gate struct {
	mu        sync.Mutex // guards the fields below
	made      time.Time  // the newest dead letter; zero for none
	succeeded bool       // a pass of any session has, since then
	held      map[session.ID]bool
}

func newGate(made, succeeded session.Time) *gate {
	g := &gate{succeeded: succeeded > made, held: map[session.ID]bool{}}
	if made != 0 {
		g.made = made.Time()
	}
	return g
}

// take claims the making of one dead letter. When it may not be made now, the session
// counts as held. A claim whose letter could not be stored is undone.
func (g *gate) take(id session.ID) (undo func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.made.IsZero() && !g.succeeded && time.Since(g.made) < letterPause {
		g.held[id] = true
		return nil, false
	}
	made, succeeded := g.made, g.succeeded
	g.made, g.succeeded = time.Now(), false
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.made, g.succeeded = made, g.succeeded || succeeded
	}, true
}

// moved notes that the pointer of a session went forward, after a success or not.
func (g *gate) moved(id session.ID, success bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, id)
	g.succeeded = g.succeeded || success
}

// forget drops a session that is gone.
func (g *gate) forget(id session.ID) { g.moved(id, false) }

func (g *gate) holds() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.held)
}
