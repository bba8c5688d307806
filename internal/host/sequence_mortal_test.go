package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"loadline/internal/session"
	"loadline/internal/store"
)

// mortal is a store that can refuse and die, whatever still uses it.
type mortal struct {
	*store.Store

	mu      sync.Mutex // guards the fields below
	dead    bool
	left    int  // commits before the death; negative: it does not die
	stands  bool // the commit of the death is on disk
	refuse  int  // commits that the disk refuses next
	refused bool // one has been refused
}

// Append stores, refuses or dies. To a process that is dead nothing is answered; an
// owner that is told that it is stale does nothing more either.
func (m *mortal) Append(ctx context.Context, b *session.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.dead:
		return session.ErrStale
	case m.left == 0:
		m.dead = true
		if m.stands {
			_ = m.Store.Append(ctx, b) // nobody hears how it went
		}
		return session.ErrStale
	case m.refuse > 0:
		m.refuse--
		m.refused = true
		return fmt.Errorf("disk full: %w", session.ErrStorage)
	}
	m.left--
	return m.Store.Append(ctx, b)
}

// TakeOver fails in a dead process.
func (m *mortal) TakeOver(ctx context.Context, id session.ID) (session.Lease, session.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return session.Lease{}, session.Session{}, errors.New("dead")
	}
	return m.Store.TakeOver(ctx, id)
}
