package memory

import (
	"encoding/json"
	"fmt"

	"loadline/internal/session"
)

// session makes a session with these items, in one turn that has ended.
func (w *world) session(items ...session.Item) session.ID {
	w.t.Helper()
	s, err := w.host.Create(w.t.Context(), project, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.add(s.ID, items...)
	return s.ID
}

// add stores one more turn with these items, as another owner of the session would
// have done. Nobody is told.
func (w *world) add(id session.ID, items ...session.Item) {
	w.t.Helper()
	b := w.backlog(id)
	turn := session.Turn{ID: session.NewTurnID(), SessionID: id, State: session.TurnQueued, Input: "input", Mode: session.ModeEnqueue, CreatedAt: session.Now()}
	queued, started, final := turn, turn, turn
	started.State, started.StartedAt = session.TurnRunning, session.Now()
	final.State, final.StartedAt, final.EndedAt = session.TurnCompleted, started.StartedAt, session.Now()
	event := func(typ session.EventType) session.Event {
		return session.Event{Type: typ, SessionID: id, TurnID: turn.ID, At: session.Now()}
	}
	first, second, last := event(session.EventTurnQueued), event(session.EventTurnStarted), event(session.EventTurnCompleted)
	first.Turn, second.Turn, last.Turn = &queued, &started, &final
	events := []session.Event{first, second}
	for i, item := range items {
		ev := event(session.EventItem)
		item.N, item.SessionID, item.TurnID, item.At = b.Pointer+b.Items+int64(i+1), id, turn.ID, ev.At
		ev.Item = &item
		events = append(events, ev)
	}
	if err := w.host.Commit(w.t.Context(), id, &session.Batch{Events: append(events, last)}, nil); err != nil {
		w.t.Fatal(err)
	}
}

func user(text string) session.Item {
	return session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: text}}
}

func assistant(text string) session.Item {
	return session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: text}}
}

func thought(text string) session.Item {
	return session.Item{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: text, Provider: "fake", Model: "fake"}}
}

func call(name, arguments string) session.Item {
	return session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: name, Arguments: json.RawMessage(arguments)}}
}

func result(callN int64, name, summary, content string, failed bool) session.Item {
	return session.Item{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: callN, Tool: name, Summary: summary, Content: &content, Failed: failed}}
}

// users makes n messages.
func users(n int) (items []session.Item) {
	for i := range n {
		items = append(items, user(fmt.Sprintf("message %d", i+1)))
	}
	return items
}
