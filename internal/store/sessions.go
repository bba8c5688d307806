package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"loadline/internal/session"
)

// scanner is a row of a query.
type scanner interface{ Scan(dest ...any) error }

func scanSession(row scanner, before ...any) (session.Session, error) {
	var s session.Session
	var metadata string
	var running int
	dest := slices.Concat(before, []any{&s.ID, &s.Project, &s.Title, &metadata, &s.Queued, &running, &s.LastSeq, &s.CreatedAt, &s.UpdatedAt})
	if err := row.Scan(dest...); err != nil {
		return s, err
	}
	s.State = session.StateIdle
	if running > 0 {
		s.State = session.StateRunning
	}
	if err := json.Unmarshal([]byte(metadata), &s.Metadata); err != nil {
		return s, fmt.Errorf("metadata of %s: %w", s.ID, err)
	}
	return s, nil
}

// encodeMetadata is the stored form of m, an object also when m is nil.
func encodeMetadata(m map[string]string) (string, error) {
	if m == nil {
		return "{}", nil
	}
	b, err := session.EncodeJSON(m)
	return string(b), err
}

// CreateSession stores a new session, which the caller then owns, with its first
// events if there are some, all or nothing. State, queue and last seq are what these
// events make of them, whatever created says.
func (s *Store) CreateSession(ctx context.Context, created session.Session, events ...session.Event) (session.Lease, error) {
	lease := session.Lease{SessionID: created.ID, Generation: 1}
	tried := "create " + string(created.ID)
	metadata, err := encodeMetadata(created.Metadata)
	var first *plan
	if err == nil && len(events) > 0 {
		first, err = newPlan(&session.Batch{Lease: lease, Events: events})
	}
	if err != nil {
		return session.Lease{}, fmt.Errorf("%s: %w", tried, err)
	}
	err = s.write(ctx, tried, func(c *connection) error {
		_, err := c.exec("create_session", created.ID, created.Project, created.Title, metadata, created.CreatedAt, created.UpdatedAt)
		if err == nil && first != nil {
			_, err = first.apply(c)
		}
		return err
	})
	if err != nil {
		return session.Lease{}, err
	}
	return lease, nil
}

// Session returns one session.
func (s *Store) Session(ctx context.Context, id session.ID) (found session.Session, err error) {
	err = s.reader.one(ctx, "session", []any{id}, func(rows *sql.Rows) (err error) {
		found, err = scanSession(rows)
		return err
	})
	return found, s.readError(id, err)
}

// Owned returns one session and the generation of its owner.
func (s *Store) Owned(ctx context.Context, id session.ID) (found session.Session, generation int64, err error) {
	err = s.reader.one(ctx, "owned", []any{id}, func(rows *sql.Rows) (err error) {
		found, err = scanSession(rows, &generation)
		return err
	})
	return found, generation, s.readError(id, err)
}

// Sessions returns up to limit sessions whose ids are before the given one, the
// newest first; an empty before starts at the newest. Unless it is empty, title is
// what a title must hold; the case of ASCII letters does not matter.
func (s *Store) Sessions(ctx context.Context, title string, before session.ID, limit int) ([]session.Session, error) {
	if before == "" {
		before = "~" // after every id
	}
	page := []session.Session{}
	err := s.reader.each(ctx, "sessions", []any{before, bounded(limit), title}, func(rows *sql.Rows) (bool, error) {
		next, err := scanSession(rows)
		page = append(page, next)
		return true, err
	})
	if err != nil {
		return nil, s.failed("read sessions", err)
	}
	return page, nil
}

// UpdateSession replaces the title and the metadata, each unless it is nil, and sets
// UpdatedAt.
func (s *Store) UpdateSession(ctx context.Context, id session.ID, title *string, metadata map[string]string) (updated session.Session, err error) {
	args := []any{id, nil, nil, session.Now()}
	if title != nil {
		args[1] = *title
	}
	if metadata != nil {
		if args[2], err = encodeMetadata(metadata); err != nil {
			return updated, fmt.Errorf("update %s: %w", id, err)
		}
	}
	err = s.write(ctx, "update "+string(id), func(c *connection) error {
		updated, err = scanSession(rowOf{c, "update_session", args})
		return notFound(err)
	})
	return updated, err
}

// rowOf is the one row of a query that writes.
type rowOf struct {
	conn *connection
	name string
	args []any
}

// Scan runs the query and reads its row.
func (r rowOf) Scan(dest ...any) error { return r.conn.queryRow(r.name, r.args, dest...) }

// TakeOver makes the caller the owner of a session: it raises the generation, and
// every later write by an older owner fails. It counts as a restart of the turn that
// runs, if one does.
func (s *Store) TakeOver(ctx context.Context, id session.ID) (session.Lease, session.Session, error) {
	lease := session.Lease{SessionID: id}
	var taken session.Session
	err := s.write(ctx, "take over "+string(id), func(c *connection) (err error) {
		taken, err = scanSession(rowOf{c, "take_over", []any{id}}, &lease.Generation)
		if err == nil && taken.State == session.StateRunning {
			_, err = c.exec("count_restart", id)
		}
		return notFound(err)
	})
	if err != nil {
		return session.Lease{}, session.Session{}, err
	}
	return lease, taken, nil
}

// Unfinished returns the sessions that have a running or a queued turn.
func (s *Store) Unfinished(ctx context.Context) ([]session.ID, error) {
	var ids []session.ID
	err := s.reader.each(ctx, "unfinished", nil, func(rows *sql.Rows) (bool, error) {
		var id session.ID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return true, err
	})
	if err != nil {
		return nil, s.failed("read unfinished sessions", err)
	}
	return ids, nil
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return session.ErrNotFound
	}
	return err
}

// write has run executed in the next commit. Errors say what was tried.
func (s *Store) write(ctx context.Context, tried string, run func(*connection) error) error {
	if err := s.writer.do(ctx, run); err != nil {
		return fmt.Errorf("%s: %w", tried, err)
	}
	return nil
}

// readError wraps what went wrong when something of a session was read.
func (s *Store) readError(id session.ID, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("session %s: %w", id, err)
	}
	return s.failed("read "+string(id), err)
}

// bounded makes limit one that a page may have.
func bounded(limit int) int { return min(max(limit, 1), maxPage) }
