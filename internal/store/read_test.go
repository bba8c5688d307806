package store

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

func itemNumbers(items []session.Item) []int64 {
	ns := []int64{}
	for _, it := range items {
		ns = append(ns, it.N)
	}
	return ns
}

func TestStepsAreReadFromTheEnd(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	turn := c.newTurn("hello")
	c.must(c.queued(turn), c.started(&turn), c.item(turn.ID, userItem("hello")))
	var want []session.Step
	for i := range int64(5) {
		e := c.step(&turn, session.Usage{InputTokens: i})
		e.Step.RequestBytes = i * 100
		want = append([]session.Step{*e.Step}, want...)
		c.must(c.item(turn.ID, assistantItem("hi")), e)
	}
	for limit := 1; limit <= 6; limit++ {
		got, err := c.store.Steps(t.Context(), c.lease.SessionID, limit)
		if diff := cmp.Diff(want[:min(limit, len(want))], got); diff != "" || err != nil {
			t.Errorf("%d steps: %v (-want +got)\n%s", limit, err, diff)
		}
	}
	if got, err := c.store.Steps(t.Context(), session.NewID(), 3); len(got) != 0 || !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of an unknown session: %v, %v", got, err)
	}
}

func TestPagesOfItems(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	turn := c.newTurn("hello")
	c.must(c.queued(turn), c.started(&turn), c.item(turn.ID, userItem("hello")))
	large := strings.Repeat("あ", 1<<20) // 3 MiB
	c.must(c.item(turn.ID, assistantItem(large)), c.item(turn.ID, assistantItem(large)), c.item(turn.ID, assistantItem("x")))
	c.must(c.item(turn.ID, assistantItem(strings.Repeat("y", 8<<20))))
	hole := c.item(turn.ID, assistantItem("late"))
	c.must(c.item(turn.ID, assistantItem("after the hole")))

	check := func(after int64, limit int, want ...int64) {
		t.Helper()
		items, err := s.Items(t.Context(), c.lease.SessionID, after, limit)
		if diff := cmp.Diff(append([]int64{}, want...), itemNumbers(items)); diff != "" || err != nil {
			t.Errorf("items after %d, limit %d: %v\n%s", after, limit, err, diff)
		}
	}
	check(0, 100, 1, 2)
	check(0, 1, 1)
	check(0, 0, 1)
	check(2, 100, 3, 4)
	check(3, 100, 4)
	check(4, 100, 5)
	check(5, 100)
	check(99, 100)
	check(-7, 100)
	history, err := s.History(t.Context(), c.lease.SessionID)
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 7}, itemNumbers(history)); diff != "" || err != nil {
		t.Errorf("history: %v\n%s", err, diff)
	}
	if history[1].AssistantMessage.Text != large || len(history[4].AssistantMessage.Text) != 8<<20 {
		t.Error("a large text has changed")
	}
	c.must(hole)
	check(5, 100, 6, 7)
	events, err := s.Events(t.Context(), c.lease.SessionID, 3, 0, 100)
	if err != nil || len(events) != 1 {
		t.Errorf("%d events of 3 MiB in a page, %v", len(events), err)
	}
	events, err = s.Events(t.Context(), c.lease.SessionID, 0, 2, 100)
	if err != nil || len(events) != 2 || events[1].Seq != 2 {
		t.Errorf("%d events up to 2, %v", len(events), err)
	}
}

func TestPagesOfTurnsAreBoundedInBytes(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	for range 5 {
		c.say(strings.Repeat("x", 1<<20), "ok")
	}
	turns, err := s.Turns(t.Context(), c.lease.SessionID, "", 100)
	if err != nil || len(turns) != 4 {
		t.Fatalf("%d turns of 1 MiB in a page, %v", len(turns), err)
	}
	turns, err = s.Turns(t.Context(), c.lease.SessionID, turns[3].ID, 100)
	if err != nil || len(turns) != 1 {
		t.Errorf("%d turns in the last page, %v", len(turns), err)
	}
	events, err := s.Events(t.Context(), c.lease.SessionID, 0, 0, 100)
	if err != nil || len(events) != 1 { // it carries the input of its turn
		t.Errorf("%d events in a page, %v", len(events), err)
	}
}

func TestUnknownThingsAreNotFound(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	turn, _ := c.say("hello", "hi")
	other := newChat(t, s)
	ctx, id := t.Context(), other.lease.SessionID
	for name, err := range map[string]error{
		"session": second(s.Session(ctx, "ses_x")),
		"items":   second(s.Items(ctx, "ses_x", 0, 10)),
		"item":    second(s.Item(ctx, id, 1)),
		"history": second(s.History(ctx, "ses_x")),
		"events":  second(s.Events(ctx, "ses_x", 0, 0, 10)),
		"turns":   second(s.Turns(ctx, "ses_x", "", 10)),
		"turn":    second(s.Turn(ctx, id, turn.ID)),
		"update":  second(s.UpdateSession(ctx, "ses_x", new("t"), nil)),
		"delete":  s.DeleteSession(ctx, "ses_x"),
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	if items, err := s.Items(ctx, id, 0, 10); err != nil || items == nil || len(items) > 0 {
		t.Errorf("items of an empty session: %v, %v", items, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPagesOfSessions(t *testing.T) {
	s := openStore(t, t.TempDir())
	want := []session.ID{}
	for range 5 {
		want = append([]session.ID{newChat(t, s).lease.SessionID}, want...)
	}
	got := []session.ID{}
	for before := session.ID(""); ; {
		page, err := s.Sessions(t.Context(), "", before, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			got = append(got, p.ID)
			before = p.ID
		}
		newChat(t, s) // newer ones do not disturb
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSessionsByTitle(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, title := range []string{"The letters", "", "100% LETTERS_", "другое", "numbers"} {
		if _, err := s.UpdateSession(t.Context(), newChat(t, s).lease.SessionID, &title, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		title string
		want  []string // newest first
	}{
		{"letters", []string{"100% LETTERS_", "The letters"}},
		{"%", []string{"100% LETTERS_"}},
		{"_", []string{"100% LETTERS_"}},
		{"друг", []string{"другое"}},
		{"nothing", nil},
		{"", []string{"numbers", "другое", "100% LETTERS_", "", "The letters"}},
	} {
		page, err := s.Sessions(t.Context(), test.title, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range page {
			got = append(got, p.Title)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("titles with %q (-want +got):\n%s", test.title, diff)
		}
	}
}

func TestUpdateSession(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	ctx, id := t.Context(), c.lease.SessionID
	if _, err := c.store.UpdateSession(ctx, id, new("<title>"), map[string]string{"a": "<b>"}); err != nil {
		t.Fatal(err)
	}
	before := session.Now()
	got, err := c.store.UpdateSession(ctx, id, nil, nil)
	if err != nil || got.UpdatedAt < before || got.Title != "<title>" || !cmp.Equal(got.Metadata, map[string]string{"a": "<b>"}) {
		t.Errorf("session: %+v, %v", got, err)
	}
	got, err = c.store.UpdateSession(ctx, id, new(""), map[string]string{})
	if err != nil || got.Title != "" || got.Metadata == nil || len(got.Metadata) > 0 {
		t.Errorf("session: %+v, %v", got, err)
	}
	if found, err := c.store.Session(ctx, id); err != nil || !cmp.Equal(found, got) {
		t.Errorf("session read: %+v, %v", found, err)
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	c := newChat(t, openStore(t, t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.store.Session(ctx, c.lease.SessionID); !errors.Is(err, context.Canceled) || errors.Is(err, session.ErrStorage) {
		t.Errorf("read with an ended context: %v", err)
	}
}

func TestLongHistoryIsWhole(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := longChat(t, s, longHistory+1)
	items, err := s.History(t.Context(), c.lease.SessionID)
	if err != nil || int64(len(items)) != c.n {
		t.Fatalf("%d items of %d, %v", len(items), c.n, err)
	}
	for i, it := range items {
		if it.N != int64(i)+1 {
			t.Fatalf("item %d has number %d", i, it.N)
		}
	}
}
