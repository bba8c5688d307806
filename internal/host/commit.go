package host

import (
	"context"

	"loadline/internal/session"
)

// Commit stores and publishes what concerns a session but none of its turns. The
// host sets the batch's lease: a session has one owner, through whom everything of
// it is written. A turn that runs is not disturbed. Commit works until the store is
// closed, also while the host stops. Before it publishes it calls stored, so that who
// reads the events finds them counted; stored may be nil and must not block.
func (h *Host) Commit(ctx context.Context, id session.ID, b *session.Batch, stored func()) error {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer h.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone != nil {
		return l.gone
	}
	if err := l.takeOver(ctx); err != nil {
		return err
	}
	b.Lease = l.lease
	return l.append(ctx, b, stored)
}
