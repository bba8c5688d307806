package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"loadline/internal/session"
)

// Turn returns one turn of a session as it is now.
func (s *Store) Turn(ctx context.Context, id session.ID, turnID session.TurnID) (session.Turn, error) {
	return s.oneTurn(ctx, id, "turn_by_id", string(turnID))
}

func (s *Store) oneTurn(ctx context.Context, id session.ID, query string, key any) (found session.Turn, err error) {
	err = s.reader.one(ctx, query, []any{string(id), key}, func(rows *sql.Rows) (err error) {
		found, err = scanTurn(rows, id)
		return err
	})
	if err != nil {
		return found, fmt.Errorf("turn %v: %w", key, s.readError(id, err))
	}
	return found, nil
}

// Turns returns up to limit turns with ids after the given one, in order; an empty
// after starts at the oldest. Like a page of items it ends at 4 MiB of texts, so only
// an empty page says that there is no next turn.
func (s *Store) Turns(ctx context.Context, id session.ID, after session.TurnID, limit int) ([]session.Turn, error) {
	return s.manyTurns(ctx, id, "turns", []any{string(id), string(after), bounded(limit)}, maxPageBytes)
}

// OpenTurns returns the turns that have not ended: the running one first, then those
// that wait, in the order in which they will run: those of mode interrupt, the newest
// first, then those of mode steer, then the others, the oldest first.
func (s *Store) OpenTurns(ctx context.Context, id session.ID) ([]session.Turn, error) {
	return s.manyTurns(ctx, id, "open_turns", []any{string(id)}, math.MaxInt)
}

func (s *Store) manyTurns(ctx context.Context, id session.ID, query string, args []any, maxBytes int) ([]session.Turn, error) {
	turns := []session.Turn{}
	bytes := 0
	err := s.reader.each(ctx, query, args, func(rows *sql.Rows) (bool, error) {
		turn, err := scanTurn(rows, id)
		if err != nil {
			return false, err
		}
		if bytes += len(turn.Input); len(turns) > 0 && bytes > maxBytes {
			return false, nil
		}
		turns = append(turns, turn)
		return true, nil
	})
	if err == nil && len(turns) == 0 {
		_, err = s.Session(ctx, id)
		return turns, err
	}
	return turns, s.readError(id, err)
}

// QueuedSeq returns the seq of a turn's turn.queued, the first event of the turn. It
// looks from the newest event backwards.
func (s *Store) QueuedSeq(ctx context.Context, id session.ID, turnID session.TurnID) (seq int64, err error) {
	err = s.reader.one(ctx, "queued_seq", []any{string(id), string(turnID), codeTurnQueued}, func(rows *sql.Rows) error {
		return rows.Scan(&seq)
	})
	if err != nil {
		return 0, fmt.Errorf("turn %s: %w", turnID, s.readError(id, err))
	}
	return seq, nil
}

func scanTurn(row scanner, id session.ID) (session.Turn, error) {
	t := session.Turn{SessionID: id}
	var startedAt, endedAt sql.NullInt64
	var code, detail sql.NullString
	err := row.Scan(&t.ID, &t.State, &t.Input, &t.Mode, &t.CreatedAt, &startedAt, &endedAt,
		&t.Steps, &t.Usage.InputTokens, &t.Usage.CachedInputTokens, &t.Usage.OutputTokens, &code, &detail, &t.Restarts, &t.ExpectedTurn)
	t.StartedAt, t.EndedAt = session.Time(startedAt.Int64), session.Time(endedAt.Int64)
	if code.Valid {
		t.Error = &session.TurnError{Code: session.ErrorCode(code.String), Detail: detail.String}
	}
	return t, err
}
