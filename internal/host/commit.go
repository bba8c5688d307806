package host

import (
	"context"

	"loadline/internal/session"
)

// Commit stores and publishes what concerns a session but none of its turns. The
// host sets the batch's lease: a session has one owner, through whom everything of
// it is written. A turn that runs is not disturbed. Commit works until the store is
// closed, also while the host stops.
func (h *Host) Commit(ctx context.Context, id session.ID, b *session.Batch) error {
	l, err := h.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer h.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return session.ErrNotFound
	}
	if err := l.takeOver(ctx); err != nil {
		return err
	}
	b.Lease = l.lease
	if err := l.host.Store.Append(ctx, b); err != nil {
		return err
	}
	l.topic.Publish(b.Events)
	return nil
}
