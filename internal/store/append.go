package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"loadline/internal/session"
)

// keyLifetime is how long a submit key is remembered, in microseconds.
const keyLifetime = session.Time(24 * 60 * 60 * 1_000_000)

// Append stores all events of batch, and its key, or nothing, and gives each event
// its Seq. It returns ErrStale when the session was taken over since the lease was
// made, ErrNotFound when it was deleted, and ErrStorage when the disk or the
// database fails. Events that do not follow from what is stored (an item whose
// number is taken, a second end of a turn) are an error too. After an error nothing
// of the batch is stored. When ctx ends in time nothing is stored either; once the
// commit has begun, Append waits for its outcome.
//
// What the events do: turn.queued makes the turn, turn.started marks it running, an
// item takes its number, step.completed adds one step and its usage to the turn, and
// the terminal events give the turn its final form.
func (s *Store) Append(ctx context.Context, batch *session.Batch) error {
	tried := "append to " + string(batch.Lease.SessionID)
	p, err := newPlan(batch)
	if err != nil {
		return fmt.Errorf("%s: %w", tried, err)
	}
	var lastSeq int64
	err = s.write(ctx, tried, func(c *connection) (err error) {
		lastSeq, err = p.apply(c)
		return err
	})
	if err != nil {
		return err
	}
	for i := range batch.Events {
		batch.Events[i].Seq = lastSeq - int64(len(batch.Events)-1-i)
	}
	return nil
}

// apply stores the plan and returns the session's last seq. It runs in the writer.
func (p *plan) apply(c *connection) (lastSeq int64, err error) {
	row, lastSeq, err := p.advanceSession(c)
	if err != nil {
		return 0, err
	}
	turnRows := make(map[session.TurnID]int64, len(p.turns))
	for _, t := range p.turns {
		if turnRows[t.id], err = t.apply(c, row); err != nil {
			return 0, err
		}
	}
	seq := lastSeq - int64(len(p.entries))
	for i := range p.entries {
		e := &p.entries[i]
		seq++
		var turn any
		if e.turnID != "" {
			turn = turnRows[e.turnID]
		}
		if _, err := c.exec("insert_log", row, seq, int64(e.code), turn, int64(e.at), e.n, e.text, e.data); err != nil {
			return 0, err
		}
	}
	if p.key != nil {
		err = p.insertKey(c, row)
	}
	if p.extracted != nil {
		err = errors.Join(err, p.applyExtracted(c, row))
	}
	return lastSeq, err
}

// advanceSession checks the lease and moves the session's counters. It asks first and
// then changes: SQLite takes longer for a change that returns what it changed.
func (p *plan) advanceSession(c *connection) (row, lastSeq int64, err error) {
	var backlogItems int64
	err = c.queryRow("leased", []any{string(p.lease.SessionID), p.lease.Generation}, &row, &lastSeq, &backlogItems)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, p.notLeased(c)
	}
	if err == nil {
		_, err = c.exec("append_session", row, len(p.entries), p.queued, p.running, int64(p.at), p.items, p.noteBytes)
	}
	if err == nil && p.items > 0 && backlogItems == 0 {
		_, err = c.exec("begin_backlog", row)
	}
	return row, lastSeq + int64(len(p.entries)), err
}

// notLeased says why the lease does not hold.
func (p *plan) notLeased(c *connection) error {
	var exists int
	if err := c.queryRow("session_exists", []any{string(p.lease.SessionID)}, &exists); err != nil {
		return notFound(err)
	}
	return session.ErrStale
}

// apply stores what the batch does to one turn and returns the turn's row.
func (t *turnPlan) apply(c *connection, sessionRow int64) (row int64, err error) {
	if t.made != nil {
		return t.insert(c, sessionRow)
	}
	err = c.queryRow("turn_row", []any{sessionRow, string(t.id), string(t.from)}, &row)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("turn %s is not %s", t.id, t.from)
	case err != nil:
		return 0, err
	case t.final != nil:
		_, err = c.exec("end_turn", append([]any{row, string(t.final.State)}, turnTail(t.final)...)...)
	case t.started != 0 || t.steps > 0:
		_, err = c.exec("advance_turn", row, nullTime(t.started),
			t.steps, t.usage.InputTokens, t.usage.CachedInputTokens, t.usage.OutputTokens)
	}
	return row, err
}

func (t *turnPlan) insert(c *connection, sessionRow int64) (row int64, err error) {
	stored := t.made.AsQueued()
	if t.started != 0 {
		stored.State, stored.StartedAt = session.TurnRunning, t.started
	}
	stored.Steps, stored.Usage = t.steps, t.usage
	if t.final != nil {
		stored = *t.final
	}
	args := []any{sessionRow, string(t.id), string(stored.State), t.made.Input, string(t.made.Mode), int64(t.made.CreatedAt)}
	args = append(append(args, turnTail(&stored)...), nil)
	if t.made.ExpectedTurn != "" {
		args[len(args)-1] = string(t.made.ExpectedTurn)
	}
	result, err := c.exec("insert_turn", args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// turnTail is the columns of a turn from started_at on.
func turnTail(t *session.Turn) []any {
	tail := []any{
		nullTime(t.StartedAt), nullTime(t.EndedAt),
		t.Steps, t.Usage.InputTokens, t.Usage.CachedInputTokens, t.Usage.OutputTokens, nil, nil,
	}
	if t.Error != nil {
		tail[6], tail[7] = string(t.Error.Code), t.Error.Detail
	}
	return tail
}

func nullTime(t session.Time) any {
	if t == 0 {
		return nil
	}
	return int64(t)
}

// insertKey stores the submit key and forgets a few that are too old.
func (p *plan) insertKey(c *connection, sessionRow int64) error {
	if _, err := c.exec("purge_submit_keys", int64(p.at-keyLifetime), sessionRow, p.key.Key); err != nil {
		return err
	}
	_, err := c.exec("insert_submit_key", sessionRow, p.key.Key, p.key.BodyHash[:], string(p.key.TurnID), int64(p.at))
	return err
}
