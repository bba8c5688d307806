package session

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// everyEvent is one event of each type, and one item of each kind.
func everyEvent() []Event {
	const id, turnID = ID("ses_0123456789abcdef0123456789abcdef"), TurnID("trn_0123456789abcdef0123456789abcdef")
	const at = Time(1_764_547_200_000_001)
	turn := Turn{ID: turnID, SessionID: id, State: TurnFailed, Input: "a < b", Mode: ModeEnqueue, CreatedAt: at, StartedAt: at + 1, EndedAt: at + 2,
		Steps: 2, Usage: Usage{InputTokens: 30, CachedInputTokens: 20, OutputTokens: 5}, Error: &TurnError{Code: CodeStepLimit, Detail: "enough"}}
	queued, started := turn.AsQueued(), turn.AsStarted()
	item := func(kind ItemKind) Item { return Item{N: 1, SessionID: id, TurnID: turnID, At: at, Kind: kind} }
	items := []Item{item(KindUserMessage), item(KindAssistantMessage), item(KindReasoning), item(KindToolCall), item(KindToolCall), item(KindToolResult), item(KindToolResult), item(KindSummary)}
	items[0].UserMessage = &UserMessage{Text: "a < b"}
	items[1].AssistantMessage = &AssistantMessage{Text: "half", Incomplete: true}
	items[2].Reasoning = &Reasoning{Provider: "p", Model: "m", Signature: "s", Redacted: "r"}
	items[3].ToolCall = &ToolCall{Tool: "Read", Arguments: json.RawMessage(`{"path":"a"}`)}
	items[4].ToolCall = &ToolCall{Tool: "Read", Raw: `{"path`}
	items[5].ToolResult = &ToolResult{CallN: 4, Tool: "Read", Summary: "none"}
	items[6].ToolResult = &ToolResult{CallN: 4, Tool: "Read", Failed: true, Summary: "cut", Content: Text(""),
		Truncated: &Truncated{Limit: 128, OriginalBytes: 300, KeptBytes: 70, DroppedBytes: 230}, KeptOutput: &KeptOutput{Bytes: 300}}
	items[7].Summary = &Summary{Text: "so far", FromN: 1, ToN: 9}

	events := []Event{{Type: EventTurnQueued, Turn: &queued}, {Type: EventTurnStarted, Turn: &started}}
	for i := range items {
		events = append(events, Event{Type: EventItem, Item: &items[i]})
	}
	events = append(events,
		Event{Type: EventItemDelta, Delta: &Delta{ItemN: 2, Kind: KindAssistantMessage, Text: "say \"<hi>\"\n", Offset: 11}},
		Event{Type: EventToolStarted, Activity: &Activity{ItemN: 4, Tool: "Bash"}},
		Event{Type: EventToolProgress, Activity: &Activity{ItemN: 4, Tool: "Bash", Text: "50 %"}},
		Event{Type: EventStepWaiting, Wait: &Wait{WaitMS: 12_400}},
		Event{Type: EventStepRetrying, Retry: &Retry{Attempt: 2, WaitMS: 500, Reason: "HTTP 503"}},
		Event{Type: EventStepRestarted, Retry: &Retry{Attempt: 1, Reason: "the server was restarted"}},
		Event{Type: EventStepCompleted, Step: &Step{Usage: turn.Usage, RequestBytes: 3104}},
	)
	for _, state := range []TurnState{TurnCompleted, TurnFailed, TurnCancelled, TurnInterrupted} {
		ended := turn
		ended.State = state
		events = append(events, Event{Type: TerminalEvent(state), Turn: &ended})
	}
	events = append(events,
		Event{Type: EventMemoryExtract, Extract: &Extract{Outcome: "staged", FromN: 1, ToN: 9, Items: 9, Records: 2, Text: "2 records"}},
		Event{Type: EventStreamReset, Reset: &Reset{}},
	)
	for i := range events {
		events[i].SessionID, events[i].At = id, at
		if events[i].Type.Durable() || events[i].Delta != nil {
			events[i].Seq = int64(i + 1)
		}
		if t := events[i].Type; t != EventMemoryExtract && t != EventStreamReset {
			events[i].TurnID = turnID
		}
	}
	return events
}

func TestWireForm(t *testing.T) {
	var got bytes.Buffer
	for _, ev := range everyEvent() {
		encoded, err := ev.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString(ev.ID() + " " + string(encoded) + "\n")

		var back Event
		if err := json.Unmarshal(encoded, &back); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		want := ev
		if ev.Delta != nil { // its id carries both, not its data
			delta := *ev.Delta
			delta.Offset = 0
			want.Seq, want.Delta = 0, &delta
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("%s comes back otherwise (-want +got):\n%s", encoded, diff)
		}
	}
	const golden = "testdata/events.golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func BenchmarkAppendDelta(b *testing.B) {
	ev := Event{Type: EventItemDelta, Seq: 42, SessionID: NewID(), TurnID: NewTurnID(), At: Now(), Delta: &Delta{ItemN: 2, Kind: KindAssistantMessage, AtByte: 1000, Text: " word", Offset: 1005}}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf, _ = ev.AppendJSON(buf[:0])
	}
}
