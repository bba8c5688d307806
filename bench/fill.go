package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/session"
	"loadline/internal/store"
)

// What a filled turn holds: the input, calls with their results, and two messages
// of the model, before and after the tools.
const (
	callsPerTurn = 11
	itemsPerTurn = 3 + 2*callsPerTurn
	turnsAtOnce  = 4 // in one commit
)

// fill stores sessions of so many items each, as a server would have left them,
// and returns their ids. Items come in whole turns of itemsPerTurn.
func fill(ctx context.Context, folder string, sessions, items int) ([]session.ID, error) {
	s, err := store.Open(ctx, folder, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	const atATime = 64 // the store commits what comes at once together
	var (
		wg   sync.WaitGroup
		ids  = make([]session.ID, sessions)
		errs [atATime]error
	)
	for i := range errs {
		wg.Go(func() {
			for n := i; n < sessions && errs[i] == nil; n += atATime {
				ids[n], errs[i] = fillSession(ctx, s, items)
			}
		})
	}
	wg.Wait()
	return ids, errors.Join(errors.Join(errs[:]...), s.Close())
}

func fillSession(ctx context.Context, s *store.Store, items int) (session.ID, error) {
	now := session.Time(time.Now().UnixMicro())
	created := session.Session{
		ID: session.NewID(), Project: "default", Title: "stored", Metadata: map[string]string{},
		State: session.StateIdle, CreatedAt: now, UpdatedAt: now,
	}
	lease, err := s.CreateSession(ctx, created)
	if err != nil {
		return "", fmt.Errorf("fill: %w", err)
	}
	for n := int64(0); n < int64(items); {
		batch := session.Batch{Lease: lease}
		for range turnsAtOnce {
			if n < int64(items) {
				batch.Events = append(batch.Events, turnEvents(created.ID, now, n)...)
				n += itemsPerTurn
			}
		}
		if err := s.Append(ctx, &batch); err != nil {
			return "", fmt.Errorf("fill: %w", err)
		}
	}
	return created.ID, nil
}

// turnEvents is a whole turn, whose items come after item n.
func turnEvents(id session.ID, at session.Time, n int64) []session.Event {
	queued := session.Turn{
		ID: session.NewTurnID(), SessionID: id, State: session.TurnQueued, Mode: session.ModeEnqueue,
		Input: "Which files of this folder are about load lines?", CreatedAt: at,
	}
	started := queued
	started.State, started.StartedAt = session.TurnRunning, at
	usage := session.Usage{InputTokens: 100, OutputTokens: 20}
	completed := started
	completed.State, completed.EndedAt, completed.Steps, completed.Usage = session.TurnCompleted, at, 2, usage.Plus(usage)
	stepCompleted := session.Event{Type: session.EventStepCompleted, Step: &session.Step{Usage: usage}}

	w := turnWriter{turn: queued, n: n}
	w.add(session.Event{Type: session.EventTurnQueued, Turn: &queued})
	w.add(session.Event{Type: session.EventTurnStarted, Turn: &started})
	w.addItem(session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: queued.Input}})
	w.addItem(session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "I will look for them."}})
	firstCall := w.n + 1
	for i := range callsPerTurn {
		w.addItem(session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{
			Tool: "Glob", Arguments: fmt.Appendf(nil, `{"pattern":"docs/part-%d/**/*.md"}`, i),
		}})
	}
	w.add(stepCompleted)
	for i := range int64(callsPerTurn) {
		w.addItem(session.Item{Kind: session.KindToolResult, ToolResult: &session.ToolResult{
			CallN: firstCall + i, Tool: "Glob", Summary: "2 paths", Content: session.Text("docs/part/marks.md\ndocs/part/ships.md\n"),
		}})
	}
	w.addItem(session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "Two of them: marks.md and ships.md."}})
	w.add(stepCompleted)
	w.add(session.Event{Type: session.EventTurnCompleted, Turn: &completed})
	return w.events
}

// turnWriter collects the events of one turn.
type turnWriter struct {
	turn   session.Turn
	n      int64 // of the last item
	events []session.Event
}

func (w *turnWriter) add(e session.Event) {
	e.SessionID, e.TurnID, e.At = w.turn.SessionID, w.turn.ID, w.turn.CreatedAt
	w.events = append(w.events, e)
}

func (w *turnWriter) addItem(item session.Item) {
	w.n++
	item.N, item.SessionID, item.TurnID, item.At = w.n, w.turn.SessionID, w.turn.ID, w.turn.CreatedAt
	w.add(session.Event{Type: session.EventItem, Item: &item})
}
