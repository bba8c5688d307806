package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

// everyKind is one item of each kind, and of each shape that is stored differently.
func everyKind() []session.Item {
	content := strings.Repeat("CONTENT", 5000)
	return []session.Item{
		userItem("the input"), userItem("not the input"), assistantItem("an answer 日本語"),
		{Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "CONTENT", Provider: "p", Model: "m"}},
		{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Arguments: json.RawMessage(`{"CONTENT":1}`)}},
		{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Grep", Raw: "CONTENT"}},
		{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 5, Tool: "Read", Summary: `read "1" file`, Content: &content}},
		{Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 6, Tool: "Grep", Summary: "Grep: failed", Failed: true}},
		{Kind: session.KindSummary, Summary: &session.Summary{Text: "a remark"}},
	}
}

// turnOf stores a turn with these items, and returns them as they were numbered.
func (c *chat) turnOf(items ...session.Item) []session.Item {
	c.tb.Helper()
	t := c.newTurn("the input")
	events := []session.Event{c.queued(t), c.started(&t)}
	for i := range items {
		events = append(events, c.item(t.ID, items[i]))
		items[i] = *events[len(events)-1].Item
	}
	c.must(append(events, c.ended(&t, session.TurnCompleted))...)
	return items
}

func (c *chat) backlog() session.Backlog {
	c.tb.Helper()
	b, err := c.store.Backlog(context.Background(), c.lease.SessionID)
	if err != nil {
		c.tb.Fatal(err)
	}
	return b
}

// extracted stores what a pass came to, beside its notice.
func (c *chat) extracted(x session.Extracted) error {
	e := c.event(session.EventMemoryExtract, "")
	e.Extract = &session.Extract{Outcome: "empty"}
	return c.store.Append(context.Background(), &session.Batch{Lease: c.lease, Events: []session.Event{e}, Extracted: &x})
}

// What extraction reads of an item is the same whether it comes from the item or from
// the disk, and has nothing of what it must not have.
func TestNotesAreWhatItemsShow(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	items := c.turnOf(append(everyKind(),
		session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: "CONTENT, summed up", FromN: 1, ToN: 9}},
		session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Glob", Arguments: json.RawMessage(`{"CONTENT":2}`), Effect: session.EffectRead}},
		session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Nope", Arguments: json.RawMessage(`{"CONTENT":3}`), Effect: session.EffectNone}})...)
	got, err := c.store.Notes(t.Context(), c.lease.SessionID, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var want []session.Note
	var bytes int64
	for i := range items {
		note := session.NoteOf(&items[i])
		want = append(want, note)
		bytes += note.Bytes()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(got); strings.Contains(text, "CONTENT") {
		t.Errorf("notes hold what they must not: %s", text)
	}
	if b := c.backlog(); b.Items != int64(len(items)) || b.Bytes != bytes || b.Project != "default" {
		t.Errorf("the backlog is %+v, want %d items of %d bytes", b, len(items), bytes)
	}
}

func TestNotesEndBeforeOpenNumbersAndTurns(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	c.turnOf(userItem("one"), assistantItem("two"))
	running := c.newTurn("three")
	c.must(c.queued(running), c.started(&running), c.item(running.ID, userItem("three")))
	notes := func() (numbers []int64) {
		t.Helper()
		got, err := c.store.Notes(t.Context(), c.lease.SessionID, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range got {
			numbers = append(numbers, n.N)
		}
		return numbers
	}
	if got := notes(); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("with a running turn: %v", got)
	}
	c.n++ // number 4 is open
	c.must(c.item(running.ID, assistantItem("five")), c.ended(&running, session.TurnCompleted))
	if got := notes(); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("with an open number: %v", got)
	}
	if _, err := c.store.Backlog(t.Context(), session.NewID()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("backlog of an unknown session: %v", err)
	}
}

// All that a pass stages is stored, or nothing.
func TestExtractedIsStoredWholeOrNotAtAll(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	c.turnOf(userItem("one"), assistantItem("two"), userItem("three"))
	id := c.lease.SessionID
	record := session.Record{ID: session.NewRecordID(id, 1, 2, 0), Project: "default", SessionID: id, Kind: session.RecordFact,
		Claim: "c", Why: "w", Evidence: []int64{1, 2}, StaleAfter: 7, State: session.RecordOpen, CreatedAt: 5}
	pass := session.Pass{ID: session.NewPassID(), SessionID: id, Outcome: session.OutcomeStaged, FromN: 1, ToN: 2, Items: 2, Records: 1}
	first := session.Extracted{From: 1, To: 2, Bytes: 86, Records: []session.Record{record}, Passes: []session.Pass{pass}, Retry: &session.Retrying{More: true, ToN: 3, MaxItems: 2, ItemBytes: 9, Failures: 4}}
	if err := c.extracted(first); err != nil {
		t.Fatal(err)
	}
	checkStaged := func() {
		t.Helper()
		record.N = 1
		records, err := c.store.Records(t.Context(), "default", "", "", "", 10)
		if diff := cmp.Diff([]session.Record{record}, records); diff != "" || err != nil {
			t.Error(diff, err)
		}
		passes, err := c.store.Passes(t.Context(), id, "", 10)
		if diff := cmp.Diff([]session.Pass{pass}, passes); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if b := c.backlog(); b.Pointer != 2 || b.Items != 1 || b.Bytes != 45 || b.Retry != *first.Retry {
			t.Errorf("backlog: %+v", b)
		}
	}
	checkStaged()
	for _, x := range []session.Extracted{
		first, // the pointer has moved on
		{From: 4, To: 4, Passes: []session.Pass{{ID: session.NewPassID()}}},        // not the next item
		{RedrivenLetter: session.NewDeadLetterID(), RedrivenTo: 3},                 // no such letter
		{From: 3, To: 3, Passes: []session.Pass{pass}, Retry: &session.Retrying{}}, // a pass twice
	} {
		if err := c.extracted(x); err == nil {
			t.Errorf("%+v is taken", x)
		}
		checkStaged()
	}
	stale := *c
	stale.lease.Generation--
	if err := stale.extracted(session.Extracted{From: 3, To: 3}); !errors.Is(err, session.ErrStale) {
		t.Errorf("of a stale owner: %v", err)
	}
	checkStaged()
}

func TestDeadLettersComeAndGo(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	c.turnOf(userItem("one"), userItem("two"), userItem("three"))
	id := c.lease.SessionID
	letter := session.DeadLetter{ID: session.NewDeadLetterID(), Project: "default", SessionID: id, FromN: 1, ToN: 3, Outcome: session.OutcomeInvalid, Failures: 5, CreatedAt: 77}
	if err := c.extracted(session.Extracted{From: 1, To: 3, MadeLetter: &letter}); err != nil {
		t.Fatal(err)
	}
	found, err := c.store.DeadLetters(t.Context(), "default", "", 10)
	if diff := cmp.Diff([]session.DeadLetter{letter}, found); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if made, succeeded, err := c.store.LastDeadLetter(t.Context()); made != 77 || succeeded != 0 || err != nil {
		t.Errorf("the last letter is of %d, the last success of %d, %v", made, succeeded, err)
	}
	if err := c.extracted(session.Extracted{RedrivenLetter: letter.ID, RedrivenTo: 2, Passes: []session.Pass{{ID: session.NewPassID(), Outcome: session.OutcomeEmpty}}}); err != nil {
		t.Fatal(err)
	}
	if half, err := c.store.DeadLetter(t.Context(), letter.ID); half.FromN != 3 || err != nil {
		t.Errorf("read to its half: %+v, %v", half, err)
	}
	if err := c.extracted(session.Extracted{RedrivenLetter: letter.ID, RedrivenTo: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.store.DeadLetter(t.Context(), letter.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("read to its end: %v", err)
	}
	if n, err := c.store.CountDeadLetters(t.Context()); n != 0 || err != nil {
		t.Errorf("%d letters, %v", n, err)
	}
	if _, succeeded, err := c.store.LastDeadLetter(t.Context()); succeeded == 0 || err != nil {
		t.Errorf("the last success is of %d, %v", succeeded, err)
	}
}

func TestDeletedSessionTakesItsAuditTrailAlong(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	c.turnOf(userItem("one"), userItem("two"))
	id := c.lease.SessionID
	letter := session.DeadLetter{ID: session.NewDeadLetterID(), Project: "default", SessionID: id, FromN: 1, ToN: 1}
	pass := session.Pass{ID: session.NewPassID(), SessionID: id, Outcome: session.OutcomeInvalid}
	if err := c.extracted(session.Extracted{From: 1, To: 1, MadeLetter: &letter, Passes: []session.Pass{pass}, Retry: &session.Retrying{Failures: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := c.store.DeleteSession(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := c.store.Passes(t.Context(), id, "", 10); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("passes: %v", err)
	}
	if letters, err := c.store.DeadLetters(t.Context(), "default", "", 10); len(letters) != 0 || err != nil {
		t.Errorf("letters: %+v, %v", letters, err)
	}
	if err := c.store.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"passes", "dead_letters", "extract_retries"} {
		var rows int
		if err := c.store.reader.db.QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d rows are left in %s, %v", rows, table, err)
		}
	}
}
