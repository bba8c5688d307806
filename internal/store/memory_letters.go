package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"loadline/internal/session"
)

func scanLetter(rows *sql.Rows) (l session.DeadLetter, err error) {
	err = rows.Scan(&l.ID, &l.Project, &l.SessionID, &l.FromN, &l.ToN, &l.Outcome, &l.Failures, &l.CreatedAt)
	return l, err
}

// DeadLetter returns a dead letter of which something has not been read again.
func (s *Store) DeadLetter(ctx context.Context, id session.DeadLetterID) (l session.DeadLetter, err error) {
	err = s.reader.one(ctx, "dead_letter_by_id", []any{string(id)}, func(rows *sql.Rows) error {
		l, err = scanLetter(rows)
		return err
	})
	switch {
	case errors.Is(err, session.ErrNotFound):
		return l, fmt.Errorf("dead letter %s: %w", id, err)
	case err != nil:
		return l, s.failed("read dead letter "+string(id), err)
	}
	return l, nil
}

// DeadLetters returns up to limit dead letters of a project after the given one, the
// oldest first; an empty after starts there.
func (s *Store) DeadLetters(ctx context.Context, project string, after session.DeadLetterID, limit int) ([]session.DeadLetter, error) {
	letters := []session.DeadLetter{}
	err := s.reader.each(ctx, "dead_letters", []any{project, string(after), bounded(limit)}, func(rows *sql.Rows) (bool, error) {
		l, err := scanLetter(rows)
		letters = append(letters, l)
		return true, err
	})
	if err != nil {
		return nil, s.failed("read dead letters", err)
	}
	return letters, nil
}

// CountDeadLetters returns how many dead letters there are in all projects.
func (s *Store) CountDeadLetters(ctx context.Context) (n int64, err error) {
	return s.number(ctx, "count_letters")
}

// LastDeadLetter returns when the newest dead letter of all sessions was made, and
// when a pass of any session last succeeded; 0 for never.
func (s *Store) LastDeadLetter(ctx context.Context) (made, succeeded session.Time, err error) {
	letter, err := s.number(ctx, "last_letter")
	if err != nil {
		return 0, 0, err
	}
	success, err := s.number(ctx, "last_success")
	return session.Time(letter), session.Time(success), err
}

// number runs a query of one number.
func (s *Store) number(ctx context.Context, query string) (n int64, err error) {
	err = s.reader.one(ctx, query, nil, func(rows *sql.Rows) error { return rows.Scan(&n) })
	if err != nil {
		return 0, s.failed("read "+query, err)
	}
	return n, nil
}
