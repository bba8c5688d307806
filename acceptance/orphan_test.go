package acceptance

import (
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// Calls without results, as a broken writer leaves them in a log, and a result
// without its call.
func TestD04OrphanCalls(t *testing.T) {
	for _, protocol := range []string{"openai", "anthropic"} {
		t.Run(protocol, func(t *testing.T) {
			w := start(t, setup{protocol: protocol, script: []llmtest.Step{says("I see")}})
			id := w.newSession()
			lease, _, err := w.store.TakeOver(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			turn := session.Turn{ID: session.NewTurnID(), SessionID: id, State: session.TurnQueued, Input: "look", Mode: session.ModeEnqueue, CreatedAt: session.Now()}
			batch := session.Batch{Lease: lease}
			event := func(e session.Event) {
				e.SessionID, e.TurnID, e.At = id, turn.ID, turn.CreatedAt
				batch.Events = append(batch.Events, e)
			}
			queued, started := turn, turn
			started.State, started.StartedAt = session.TurnRunning, turn.CreatedAt
			ended := started
			ended.State, ended.EndedAt, ended.Error = session.TurnFailed, turn.CreatedAt, &session.TurnError{Code: session.CodeInternal, Detail: "broken"}
			event(session.Event{Type: session.EventTurnQueued, Turn: &queued})
			event(session.Event{Type: session.EventTurnStarted, Turn: &started})
			for i, item := range []session.Item{
				{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "look"}},
				{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 1, Tool: "Read", Summary: "of no call"}},
				{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Arguments: []byte("{}")}},
				{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Raw: "{"}},
				{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 4, Tool: "Read", Summary: "of the second"}},
			} {
				item.N, item.SessionID, item.TurnID, item.At = int64(i+1), id, turn.ID, turn.CreatedAt
				event(session.Event{Type: session.EventItem, Item: &item})
			}
			event(session.Event{Type: session.EventTurnFailed, Turn: &ended})
			if err := w.store.Append(t.Context(), &batch); err != nil {
				t.Fatal(err)
			}
			w.restart()
			if turn := w.say(id, "and?"); turn.State != session.TurnCompleted {
				t.Errorf("turn: %s %+v", turn.State, turn.Error)
			}
			if problems := w.model.Problems(); len(problems) > 0 {
				t.Errorf("the model refused %q", problems)
			}
		})
	}
}
