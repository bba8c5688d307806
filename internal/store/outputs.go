package store

import (
	"context"

	"loadline/internal/session"
)

// CutResults returns up to limit results that were cut, with numbers before n, the
// newest first. Like a page of items it ends at 4 MiB of texts, so only an empty one
// says that there are no more.
func (s *Store) CutResults(ctx context.Context, id session.ID, n int64, limit int) ([]session.Item, error) {
	items := []session.Item{}
	err := s.entries(ctx, id, "cut_results", []any{string(id), n, bounded(limit)}, maxPageBytes, func(e *entry) (bool, error) {
		item, err := e.item(id)
		items = append(items, item)
		return true, err
	})
	return items, err
}
