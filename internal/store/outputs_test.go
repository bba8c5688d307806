package store

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

func TestCutResultsComeNewestFirst(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newChat(t, s)
	turn := c.newTurn("hello")
	c.must(c.queued(turn), c.started(&turn), c.item(turn.ID, userItem("hello")))
	result := func(content, summary string, cut bool) {
		r := session.ToolResult{CallN: 2, Tool: "Echo", Summary: summary, Content: &content}
		if cut {
			r.Truncated = &session.Truncated{Limit: 128, OriginalBytes: 200, KeptBytes: 80, DroppedBytes: 120}
			r.KeptOutput = &session.KeptOutput{Bytes: 200}
		}
		c.must(c.item(turn.ID, session.Item{Kind: session.KindToolResult, ToolResult: &r}))
	}
	const lure = `{"truncated":{"limit":1}}`
	c.must(c.item(turn.ID, session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Echo", Arguments: []byte(lure)}}))
	result("short", "s", false) // 3
	result("one", "s", true)    // 4
	result(lure, lure, false)   // 5
	result("two", lure, true)   // 6
	result("three", "s", true)  // 7
	for _, test := range []struct {
		before int64
		limit  int
		want   []int64
	}{
		{100, 10, []int64{7, 6, 4}},
		{100, 2, []int64{7, 6}},
		{7, 10, []int64{6, 4}},
		{6, 10, []int64{4}},
		{4, 10, []int64{}},
	} {
		items, err := s.CutResults(t.Context(), c.lease.SessionID, test.before, test.limit)
		if diff := cmp.Diff(test.want, itemNumbers(items)); diff != "" || err != nil {
			t.Errorf("cut results before %d, limit %d: %v\n%s", test.before, test.limit, err, diff)
		}
	}
	items, _ := s.CutResults(t.Context(), c.lease.SessionID, 5, 1)
	if r := items[0].ToolResult; *r.Content != "one" || r.KeptOutput.Bytes != 200 || r.Truncated.OriginalBytes != 200 {
		t.Errorf("it comes back as %+v", r)
	}
	if _, err := s.CutResults(t.Context(), session.NewID(), 5, 1); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of an unknown session: %v", err)
	}
}
