package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"sync"

	"loadline/internal/session"
)

// longHistory is how many items are read in two halves at the same time.
const longHistory = 1000

// Items returns up to limit items with numbers after the given one, in order. The
// page ends before the first number that is not taken yet, and when it has 4 MiB of
// texts; it may be shorter than limit for both reasons. Only an empty page says that
// there is no next item now.
func (s *Store) Items(ctx context.Context, id session.ID, after int64, limit int) ([]session.Item, error) {
	items := []session.Item{}
	err := s.entries(ctx, id, "items", []any{string(id), after, bounded(limit)}, maxPageBytes, func(e *entry) (bool, error) {
		it, err := e.item(id)
		if it.N != after+int64(len(items))+1 {
			return false, err
		}
		items = append(items, it)
		return true, err
	})
	return items, err
}

// Item returns the item with number n.
func (s *Store) Item(ctx context.Context, id session.ID, n int64) (found session.Item, err error) {
	err = s.entries(ctx, id, "item", []any{string(id), n}, math.MaxInt, func(e *entry) (bool, error) {
		var err error
		found, err = e.item(id)
		return false, err
	})
	if err == nil && found.N == 0 {
		err = s.readError(id, session.ErrNotFound)
	}
	return found, err
}

// History returns all items of a session in order of their numbers, whatever their
// size: it is what a worker continues from. Numbers that are not taken yet are
// left out.
func (s *Store) History(ctx context.Context, id session.ID) ([]session.Item, error) {
	var last int64
	err := s.reader.one(ctx, "last_item", []any{string(id)}, func(rows *sql.Rows) error { return rows.Scan(&last) })
	if err != nil {
		return nil, s.readError(id, err)
	}
	if last < longHistory {
		return s.itemRange(ctx, id, 0, math.MaxInt64)
	}
	var older, newer []session.Item
	var olderErr, newerErr error
	var half sync.WaitGroup
	half.Go(func() { older, olderErr = s.itemRange(ctx, id, 0, last/2) })
	newer, newerErr = s.itemRange(ctx, id, last/2, math.MaxInt64)
	half.Wait()
	return append(older, newer...), errors.Join(olderErr, newerErr)
}

// Steps returns the last steps of a session, up to limit, the newest first.
func (s *Store) Steps(ctx context.Context, id session.ID, limit int) ([]session.Step, error) {
	var steps []session.Step
	err := s.entries(ctx, id, "steps", []any{string(id), bounded(limit)}, math.MaxInt, func(e *entry) (bool, error) {
		step, err := e.step()
		steps = append(steps, *step)
		return true, err
	})
	return steps, err
}

// itemRange returns the items with after < n <= upTo.
func (s *Store) itemRange(ctx context.Context, id session.ID, after, upTo int64) ([]session.Item, error) {
	var items []session.Item
	err := s.entries(ctx, id, "history", []any{string(id), after, upTo}, math.MaxInt, func(e *entry) (bool, error) {
		it, err := e.item(id)
		items = append(items, it)
		return true, err
	})
	return items, err
}

// Events returns up to limit durable events with after < seq <= upTo, in order; an
// upTo of 0 is no bound. A page ends at 512 KiB of texts, unless its first event alone
// has more, so only an empty page says that there is no next event.
func (s *Store) Events(ctx context.Context, id session.ID, after, upTo int64, limit int) ([]session.Event, error) {
	if upTo == 0 {
		upTo = math.MaxInt64
	}
	events := []session.Event{}
	turnRows := make(map[int]int64) // of the events that carry their turn
	err := s.entries(ctx, id, "events", []any{string(id), after, upTo, bounded(limit)}, maxReadBytes, func(e *entry) (bool, error) {
		if e.code <= codeTurnInterrupted {
			turnRows[len(events)], _ = e.turnRow.(int64)
		}
		ev, err := e.event(id)
		events = append(events, ev)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return events, s.joinTurns(ctx, id, events, turnRows)
}

// joinTurns gives events their turns. What an event says of its turn does not
// change after the event is stored, so it does not matter that turns are read later.
func (s *Store) joinTurns(ctx context.Context, id session.ID, events []session.Event, turnRows map[int]int64) error {
	turns := make(map[int64]session.Turn)
	for i, row := range turnRows {
		turn, ok := turns[row]
		if !ok {
			var err error
			if turn, err = s.oneTurn(ctx, id, "turn_by_row", row); err != nil {
				return err
			}
			turns[row] = turn
		}
		switch events[i].Type {
		case session.EventTurnQueued:
			turn = turn.AsQueued()
		case session.EventTurnStarted:
			turn = turn.AsStarted()
		}
		events[i].Turn = &turn
	}
	return nil
}

// entries calls use on each entry of a query, until use returns false or the texts
// so far would exceed maxBytes with the next entry. Without any entry it makes sure
// that the session exists.
func (s *Store) entries(ctx context.Context, id session.ID, query string, args []any, maxBytes int, use func(*entry) (bool, error)) error {
	var e entry
	into := e.columns(query == "events")
	seen, bytes := 0, 0
	err := s.reader.each(ctx, query, args, func(rows *sql.Rows) (bool, error) {
		if err := rows.Scan(into...); err != nil {
			return false, err
		}
		size := e.settle()
		if bytes += size; seen > 0 && bytes > maxBytes {
			return false, nil
		}
		seen++
		return use(&e)
	})
	if err == nil && seen == 0 {
		_, err = s.Session(ctx, id)
		return err
	}
	return s.readError(id, err)
}

// columns are where the columns of a row go; an item needs fewer.
func (e *entry) columns(ofEvent bool) []any {
	into := []any{&e.turnName, (*int64)(&e.at), (*int64)(&e.code), &e.n, &e.text, &e.data}
	if ofEvent {
		into = append(into, &e.seq, &e.turnRow)
	}
	return into
}

// settle completes what was just read and returns the bytes of its texts. The id of
// the turn is shared with the entry before when it is the same.
func (e *entry) settle() (size int) {
	if id, _ := e.turnName.(string); id != string(e.turnID) {
		e.turnID = session.TurnID(id)
	}
	text, _ := e.text.(string)
	data, _ := e.data.(string)
	return len(text) + len(data)
}

// SubmitKey finds what a key of the last 24 hours was used for.
func (s *Store) SubmitKey(ctx context.Context, id session.ID, key string) (session.SubmitKey, bool, error) {
	found := session.SubmitKey{Key: key}
	err := s.reader.one(ctx, "submit_key", []any{string(id), key, int64(session.Now() - keyLifetime)}, func(rows *sql.Rows) error {
		var hash []byte
		err := rows.Scan(&hash, (*string)(&found.TurnID))
		copy(found.BodyHash[:], hash)
		return err
	})
	if errors.Is(err, session.ErrNotFound) {
		return session.SubmitKey{}, false, nil
	}
	return found, err == nil, s.readError(id, err)
}
