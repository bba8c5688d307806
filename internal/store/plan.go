package store

import (
	"fmt"
	"slices"

	"loadline/internal/session"
)

// plan is a batch as the writer stores it. It is made by the caller's goroutine, so
// that the writer has little to do.
type plan struct {
	lease   session.Lease
	entries []entry // one for each event
	turns   []*turnPlan
	key     *session.SubmitKey
	at      session.Time // of the last event

	queued, running int // added to the session's counters

	items, noteBytes int64              // added to its backlog
	extracted        *session.Extracted // nil when the batch is none of extraction
}

// turnPlan is what a batch does to one turn.
type turnPlan struct {
	id      session.TurnID
	from    session.TurnState // where the turn stands before the batch; "" when the batch makes it
	now     session.TurnState // where it stands after the events so far
	made    *session.Turn     // from turn.queued
	input   string            // when an event carried it
	started session.Time      // from turn.started
	steps   int
	usage   session.Usage
	final   *session.Turn // from a terminal event
}

// newPlan checks batch for what the database could not tell and encodes it.
func newPlan(batch *session.Batch) (*plan, error) {
	if len(batch.Events) == 0 {
		return nil, fmt.Errorf("a batch without events")
	}
	p := &plan{
		lease: batch.Lease, key: batch.Key, extracted: batch.Extracted, entries: make([]entry, len(batch.Events)),
		at: batch.Events[len(batch.Events)-1].At,
	}
	for i := range batch.Events {
		e := &batch.Events[i]
		if err := p.add(&p.entries[i], e); err != nil {
			return nil, fmt.Errorf("event %d, %s: %w", i, e.Type, err)
		}
	}
	return p, nil
}

// add plans one event, whose stored form is into.
func (p *plan) add(into *entry, e *session.Event) error {
	if e.SessionID != p.lease.SessionID {
		return fmt.Errorf("it is of session %q", e.SessionID)
	}
	var input string
	var moment session.Time
	if e.TurnID != "" {
		t := p.turn(e)
		if err := p.move(t, e); err != nil {
			return err
		}
		input, moment = t.input, t.moment(e)
	}
	if e.Item != nil {
		note := session.NoteOf(e.Item)
		p.items++
		p.noteBytes += note.Bytes()
	}
	err := into.encode(e, input)
	if into.at == moment {
		into.at = 0 // the turn has it
	}
	return err
}

// moment is the time that the row of the turn has for an event; 0 when it has none.
func (t *turnPlan) moment(e *session.Event) session.Time {
	switch {
	case e.Turn != nil && e.Type == session.EventTurnQueued:
		return e.Turn.CreatedAt
	case e.Turn != nil && e.Type.Terminal():
		return e.Turn.EndedAt
	case e.Type == session.EventTurnStarted, e.Item != nil && e.Item.Kind == session.KindUserMessage:
		return t.started
	}
	return 0
}

// turn finds the plan of the event's turn or begins one.
func (p *plan) turn(e *session.Event) *turnPlan {
	for _, t := range slices.Backward(p.turns) { // most likely it is the newest
		if t.id == e.TurnID {
			return t
		}
	}
	t := &turnPlan{id: e.TurnID}
	switch {
	case e.Type == session.EventTurnQueued:
	case e.Type == session.EventTurnStarted, e.Type.Terminal() && e.Turn != nil && e.Turn.StartedAt == 0:
		t.from = session.TurnQueued
	default:
		t.from = session.TurnRunning
	}
	t.now = t.from
	p.turns = append(p.turns, t)
	return t
}

// move takes the turn from one state to the next and counts. Whether the turn is
// in the state that the batch begins with is checked when the plan is applied.
func (p *plan) move(t *turnPlan, e *session.Event) error {
	if e.Turn != nil && (e.Turn.ID != e.TurnID || e.Turn.SessionID != e.SessionID) {
		return fmt.Errorf("its turn is %s of %s", e.Turn.ID, e.Turn.SessionID)
	}
	wanted := session.TurnRunning
	switch {
	case e.Type == session.EventTurnQueued:
		wanted = ""
	case e.Type == session.EventTurnStarted, e.Type.Terminal() && t.now == session.TurnQueued:
		wanted = session.TurnQueued
	}
	if t.now != wanted {
		return fmt.Errorf("turn %s is %q by then", t.id, t.now)
	}
	if e.Turn != nil {
		t.input = e.Turn.Input
		return p.moveTo(t, e)
	}
	if e.Step != nil {
		t.steps++
		t.usage = t.usage.Plus(e.Step.Usage)
	}
	return nil
}

// moveTo applies an event that carries the turn.
func (p *plan) moveTo(t *turnPlan, e *session.Event) error {
	switch {
	case e.Type == session.EventTurnQueued:
		t.made, t.now = e.Turn, session.TurnQueued
		p.queued++
	case e.Type == session.EventTurnStarted:
		if e.Turn.StartedAt == 0 {
			return fmt.Errorf("its turn has no time of start")
		}
		t.started, t.now = e.Turn.StartedAt, session.TurnRunning
		p.queued--
		p.running++
	case e.Type.Terminal():
		return p.end(t, e)
	}
	return nil
}

func (p *plan) end(t *turnPlan, e *session.Event) error {
	if e.Type != session.TerminalEvent(e.Turn.State) || e.Turn.EndedAt == 0 {
		return fmt.Errorf("its turn is %q, ended at %d", e.Turn.State, e.Turn.EndedAt)
	}
	if t.now == session.TurnQueued {
		p.queued--
	} else {
		p.running--
	}
	t.final, t.now = e.Turn, e.Turn.State
	return nil
}
