package memory

import (
	"fmt"
	"strings"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
)

func TestExtractStagesAndMovesThePointer(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.session(user("I prefer tabs."), thought("hm"), call("Read", `{"path":"a"}`), result(3, "Read", "read 1 file", "content", false), assistant("Fine."))
	w.model.add(submits(1, 5))
	w.settle(id)
	records := w.records()
	if len(records) != 2 || records[0].ID != session.NewRecordID(id, 1, 5, 0) || records[1].Evidence[0] != 5 || records[0].State != session.RecordOpen {
		t.Errorf("records: %+v", records)
	}
	if b := w.backlog(id); b.Pointer != 5 || b.Items != 0 || b.Bytes != 0 || b.Retry != (session.Retrying{}) {
		t.Errorf("backlog: %+v", b)
	}
	passes := w.passes(id)
	if len(passes) != 1 || passes[0].Outcome != session.OutcomeStaged || passes[0].FromN != 1 || passes[0].ToN != 5 || passes[0].Records != 2 ||
		passes[0].Usage.InputTokens != 100 || passes[0].Steps != 1 || passes[0].Trigger != session.TriggerThreshold || passes[0].ChunkBytes == 0 {
		t.Errorf("passes: %+v", passes)
	}
	if n := w.notices(id); len(n) != 1 || n[0].Outcome != "staged" || n[0].Items != 5 || n[0].Records != 2 || n[0].Text == "" {
		t.Errorf("notices: %+v", n)
	}
	if w.runs(session.OutcomeStaged) != "1" || w.metric("extract_items_total") != "5" || w.metric("extract_backlog_bytes") != "0" {
		t.Errorf("metrics: %s passes, %s items", w.runs(session.OutcomeStaged), w.metric("extract_items_total"))
	}
}

func TestTurnsStartExtractionAtTheThreshold(t *testing.T) {
	w := newWorld(t, setup{settings: func(m *manifest.Memory) { m.ExtractThresholdBytes = 400 }})
	s, err := w.host.Create(t.Context(), project, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w.say(s.ID, "short")
	w.idle()
	if asked := w.model.asked(); len(asked) != 0 {
		t.Errorf("asked %q below the threshold", asked)
	}
	w.say(s.ID, strings.Repeat("long ", 100))
	passes := w.passesAre(s.ID, 1)
	w.idle()
	if asked := w.model.asked(); len(asked) != 1 || !strings.Contains(asked[0], "short") {
		t.Errorf("asked %q", asked)
	}
	if passes[0].ToN != 4 {
		t.Errorf("the pass ended with item %d, want 4", passes[0].ToN)
	}
}

func TestNothingToDoIsSilent(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.session(user("hello"))
	w.settle(id)
	for range 5 {
		if how, err := w.memory.Extract(t.Context(), id); err != nil || how != session.ExtractNothing {
			t.Errorf("extract of nothing: %s, %v", how, err)
		}
		w.memory.TurnEnded(id)
	}
	w.idle()
	if len(w.passes(id)) != 1 || len(w.model.asked()) != 1 || len(w.notices(id)) != 1 {
		t.Errorf("%d passes, %d requests, want one", len(w.passes(id)), len(w.model.asked()))
	}
	other, err := w.host.Create(t.Context(), "off", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if how, err := w.memory.Extract(t.Context(), other.ID); err != nil || how != session.ExtractOff {
		t.Errorf("extract without memory: %s, %v", how, err)
	}
	if _, err := w.memory.Extract(t.Context(), session.NewID()); err == nil {
		t.Error("extract of an unknown session is no error")
	}
	if _, err := w.memory.Redrive(t.Context(), session.NewDeadLetterID()); err == nil {
		t.Error("redrive of nothing is no error")
	}
}

// A backlog that fits is one request; one that does not is read in chunks of which no
// two neighbours would fit into one.
func TestChunksAreAsLargeAsCanBe(t *testing.T) {
	var items []session.Item
	const total = 80
	for i := range total {
		items = append(items, user(strings.Repeat("x", 900+i%100)))
	}
	for _, c := range []struct {
		name       string
		chunkBytes int
		asked      int // 0: as it comes
	}{
		{"all in one", 500_000, 1},
		{"several", 10_000, 0},
		{"each alone", 600, total},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, setup{settings: func(m *manifest.Memory) { m.ExtractChunkBytes = c.chunkBytes }})
			id := w.session(items...)
			w.settle(id)
			passes := w.passes(id)
			if c.asked > 0 && len(passes) != c.asked {
				t.Errorf("%d passes, want %d", len(passes), c.asked)
			}
			next := int64(1)
			for i, p := range passes {
				if p.FromN != next || p.Outcome != session.OutcomeEmpty {
					t.Fatalf("pass %d: %+v, want it to begin at %d", i, p, next)
				}
				next = p.ToN + 1
				if p.ChunkBytes > int64(c.chunkBytes) {
					t.Errorf("pass %d has %d bytes", i, p.ChunkBytes)
				}
				if i > 0 && p.ChunkBytes+passes[i-1].ChunkBytes <= int64(c.chunkBytes) {
					t.Errorf("passes %d and %d would fit into one", i-1, i)
				}
			}
			if next != total+1 || w.backlog(id).Pointer != total {
				t.Errorf("the pointer stands at %d", w.backlog(id).Pointer)
			}
		})
	}
}

// Case A21b, and an odd number of items, half of which is rounded down.
func TestTooLongIsHalved(t *testing.T) {
	for items, want := range map[int]string{
		4: "1-4 context_too_long, 1-2 staged, 3-4 staged",
		3: "1-3 context_too_long, 1-1 staged, 2-3 staged",
	} {
		t.Run(fmt.Sprintf("%d items", items), func(t *testing.T) {
			w := newWorld(t, setup{})
			id := w.session(users(items)...)
			w.model.add(refuses(llm.ClassShrink), submits(1), submits(3))
			w.settle(id)
			if got := w.outcomes(id); got != want {
				t.Errorf("passes: %s\nwant %s", got, want)
			}
			if len(w.records()) != 2 || w.backlog(id).Pointer != int64(items) {
				t.Errorf("%d records, pointer %d", len(w.records()), w.backlog(id).Pointer)
			}
		})
	}
}

// A single item that is too long is shown ever shorter, with its head, its tail and
// its size.
func TestLongItemIsShownEverShorter(t *testing.T) {
	w := newWorld(t, setup{})
	text := "HEAD " + strings.Repeat("middle ", 40_000) + "TAIL"
	id := w.session(user(text))
	limit := 5000
	for range 8 {
		w.model.add(reply{make: func(r llm.Request) reply {
			if len(r.Items[0].UserMessage.Text) > limit {
				return refuses(llm.ClassShrink)
			}
			return submits(1)
		}})
	}
	w.settle(id)
	asked := w.model.asked()
	for i, text := range asked {
		if !strings.Contains(text, "HEAD") || !strings.Contains(text, "TAIL") || !strings.Contains(text, `"bytes":280009`) {
			t.Errorf("request %d shows %.100q", i, text)
		}
		if i > 0 && len(text) > len(asked[i-1])*2/3 {
			t.Errorf("request %d has %d bytes after %d", i, len(text), len(asked[i-1]))
		}
	}
	if len(w.records()) != 1 || w.backlog(id).Pointer != 1 || len(asked) < 5 {
		t.Errorf("%d records after %d requests", len(w.records()), len(asked))
	}
}

// No chunk is refused for its size by anybody but the model: there is no cap on what
// one request may hold, also where nothing is known of the model.
func TestLargeChunkIsOneWholeRequest(t *testing.T) {
	w := newWorld(t, setup{settings: func(m *manifest.Memory) { m.ExtractChunkBytes = 4 << 20 }})
	var items []session.Item
	for i := range 30 {
		items = append(items, user(fmt.Sprintf("BEGIN%d %s END%d", i, strings.Repeat("word ", 20_000), i)))
	}
	id := w.session(items...)
	w.model.add(submits(99), submits(30)) // nor when the model is asked again
	w.settle(id)
	asked := w.model.asked()
	if len(asked) != 2 || len(w.passes(id)) != 1 || w.backlog(id).Pointer != 30 {
		t.Fatalf("%d requests in passes %s", len(asked), w.outcomes(id))
	}
	for i := range 30 {
		if !strings.Contains(asked[1], fmt.Sprintf("BEGIN%d ", i)) || !strings.Contains(asked[1], fmt.Sprintf(" END%d", i)) {
			t.Errorf("item %d is not whole", i)
		}
	}
}

// Nor is it refused, or made smaller, because the key may send less in a minute.
func TestBudgetOfTheMinuteIsNoCap(t *testing.T) {
	w := newWorld(t, setup{})
	p := w.memory.Projects[project]
	p.Engine.Budget = llm.NewBudget(1000)
	w.memory.Projects[project] = p
	id := w.session(user("BEGIN " + strings.Repeat("word ", 20_000) + "END"))
	w.model.add(submits(1))
	w.settle(id)
	asked := w.model.asked()
	if len(asked) != 1 || w.outcomes(id) != "1-1 staged" || !strings.Contains(asked[0], strings.Repeat("word ", 20_000)) {
		t.Fatalf("%d requests in passes %s", len(asked), w.outcomes(id))
	}
}
