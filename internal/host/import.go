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
	s, err := h.newSession(project, title, metadata)
	if err != nil {
		return session.Session{}, err
	}
	// Nobody owns it yet: its history is loaded when somebody needs it.
	if _, err := h.Store.CreateSession(ctx, s, importedEvents(s.ID, items)...); err != nil {
		return session.Session{}, err
	}
	if h.TurnEnded != nil {
		h.TurnEnded(s.ID)
	}
	return h.Store.Session(ctx, s.ID)
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
