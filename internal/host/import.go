package host

import (
	"context"

	"loadline/internal/session"
)

// importedInput is the input of the turn that holds what comes before the first
// message of the user.
const importedInput = "(imported)"

// Import makes a session with a history that came from elsewhere: items numbered
// from 1, without session, turn and time. Each message of the user begins a turn,
// which is completed. All is stored, or nothing.
func (h *Host) Import(ctx context.Context, project, title string, metadata map[string]string, items []session.Item) (session.Session, error) {
	s, err := h.Create(ctx, project, title, metadata)
	if err != nil {
		return session.Session{}, err
	}
	if err := h.fill(ctx, s.ID, importedEvents(s.ID, items)); err != nil {
		if gone := h.Delete(context.WithoutCancel(ctx), s.ID); gone != nil {
			h.Log.Warn().Err(gone).Str("session", string(s.ID)).Msg("session without its import is left")
		}
		return session.Session{}, err
	}
	if h.TurnEnded != nil {
		h.TurnEnded(s.ID)
	}
	return h.Store.Session(ctx, s.ID)
}

// fill stores the events of a new session, whose history is loaded when it is
// needed.
func (h *Host) fill(ctx context.Context, id session.ID, events []session.Event) error {
	if err := h.Commit(ctx, id, &session.Batch{Events: events}, nil); err != nil {
		return err
	}
	l, err := h.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer h.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.history = nil
	}
	return nil
}

func importedEvents(id session.ID, items []session.Item) []session.Event {
	var events []session.Event
	var turn session.Turn
	now := session.Now()
	end := func() {
		if turn.ID != "" {
			ended := turn
			ended.State, ended.EndedAt = session.TurnCompleted, now
			events = append(events, turnEvent(session.EventTurnCompleted, &ended))
		}
	}
	for _, item := range items {
		if item.UserMessage != nil || turn.ID == "" {
			end()
			turn = session.Turn{ID: session.NewTurnID(), SessionID: id, State: session.TurnQueued, Input: importedInput, Mode: session.ModeEnqueue, CreatedAt: now}
			if item.UserMessage != nil {
				turn.Input = item.UserMessage.Text
			}
			queued := turn
			turn.State, turn.StartedAt = session.TurnRunning, now
			started := turn
			events = append(events, turnEvent(session.EventTurnQueued, &queued), turnEvent(session.EventTurnStarted, &started))
		}
		item.SessionID, item.TurnID, item.At = id, turn.ID, now
		events = append(events, session.Event{Type: session.EventItem, SessionID: id, TurnID: turn.ID, At: now, Item: &item})
	}
	end()
	return events
}
