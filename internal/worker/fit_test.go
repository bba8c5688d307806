package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// fitting is an engine whose requests have so many bytes of room, while nothing is
// known of their tokens.
func fitting(t testing.TB, roomBytes int) *Engine {
	t.Helper()
	w := newWorkbench(t, []tool.Tool{})
	w.engine.Window = llm.Window{ContextTokens: int64(float64(roomBytes)*guessedTokensPerByte) + 2, OutputTokens: 1}
	return w.engine
}

// show is a request in one line: kinds, and how long their texts are.
func show(f fitted) string {
	var all []string
	for _, item := range f.Items {
		word := string(item.Kind[:1]) + fmt.Sprint(ItemBytes(&item)-itemBytes)
		if item.Kind == session.KindToolCall {
			word = "c" + fmt.Sprint(len(item.ToolCall.Arguments))
		}
		if item.Kind == session.KindToolResult {
			word = "r" + fmt.Sprint(len(*item.ToolResult.Content))
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

func TestFitLeavesOutInOrder(t *testing.T) {
	var p past
	long := func(n int) string { return strings.Repeat("x", n) }
	arguments := `{"path":"` + long(1000) + `","n":1}`
	p.user(long(2000))
	p.step(arguments, long(5000))
	p.says(long(3000))
	p.user("go on")
	p.step(arguments, long(5000), long(300))
	for _, test := range []struct {
		name string
		room int
		want string
	}{
		{"all of it", 20_000, "u2000 c1017 r5000 a3000 u5 c1017 c1017 r5000 r300"},
		{"the content of the old result", 18_000, "u2000 c1017 r95 a3000 u5 c1017 c1017 r5000 r300"},
		{"its arguments too", 13_600, "u2000 c38 r95 a3000 u5 c1017 c1017 r5000 r300"},
		{"old messages too", 11_000, "s573 u5 c1017 c1017 r5000 r300"},
		{"all but an even share of the newest results", 5000, "s339 u5 c1017 c1017 r2115 r300"},
		{"everything that can be", 1500, "s299 u5 c38 c38 r128 r128"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := fitting(t, test.room)
			got, _ := e.fit(&History{Items: p.items}, true)
			if diff := cmp.Diff(test.want, show(got)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if !got.fits || got.bytes > int64(test.room)+4 || got.bytes != requestBytes(got.Request) {
				t.Errorf("fits = %v, %d bytes, in truth %d, there is room for %d", got.fits, got.bytes, requestBytes(got.Request), test.room)
			}
			if err := llmtest.Check(got.Request); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFitAsksForASummaryOfWhatMustGo(t *testing.T) {
	var p past
	for i := range 20 {
		p.user(fmt.Sprintf("%d %s", i, strings.Repeat("x", 500)))
		p.says(strings.Repeat("y", 500))
	}
	p.user("now?")
	history := &History{Items: p.items}
	e := fitting(t, 16_000)
	got, to := e.fit(history, false)
	if len(got.Items) != 0 || to < 20 || to > 34 {
		t.Fatalf("a summary up to item %d is asked for, want one that leaves half of the room", to)
	}
	p.sums("all that", to)
	history.Items = p.items
	got, again := e.fit(history, false)
	if again != 0 || !got.whole || got.Items[0].Summary.Text != "all that" || got.Items[1].N != to+1 || got.bytes > 9000 {
		t.Errorf("after it the request is %s of %d bytes, and another up to %d is asked for", show(got), got.bytes, again)
	}
}

func TestVisible(t *testing.T) {
	numbers := func(items []session.Item) (ns []int64) {
		for _, item := range items {
			ns = append(ns, item.N)
		}
		return ns
	}
	var p past
	p.user("1")
	p.says("2")
	p.user("3")
	p.step("{}", "5")
	p.step("{}", "7")
	for _, test := range []struct {
		name   string
		ranges [][2]int64
		want   []int64
		from   int64
	}{
		{"nothing", nil, []int64{1, 2, 3, 4, 5, 6, 7}, 0},
		{"before the input", [][2]int64{{1, 2}}, []int64{8, 3, 4, 5, 6, 7}, 8},
		{"beyond the input, which stays", [][2]int64{{1, 5}}, []int64{8, 3, 6, 7}, 8},
		{"the longest counts", [][2]int64{{1, 2}, {1, 5}}, []int64{9, 3, 6, 7}, 9},
		{"in any order", [][2]int64{{1, 5}, {1, 2}}, []int64{8, 3, 6, 7}, 8},
		{"of two of the same the newest", [][2]int64{{1, 2}, {1, 2}}, []int64{9, 3, 4, 5, 6, 7}, 9},
		{"one in the middle", [][2]int64{{2, 5}}, []int64{1, 8, 3, 6, 7}, 8},
		{"of everything", [][2]int64{{1, 7}}, []int64{8, 3}, 8},
		{"beyond everything", [][2]int64{{1, 99}}, []int64{8, 3}, 8},
	} {
		q := past{slices.Clone(p.items)}
		for _, r := range test.ranges {
			q.add(session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: "s", FromN: r[0], ToN: r[1]}})
		}
		items, from := visible(q.items)
		if diff := cmp.Diff(test.want, numbers(items)); diff != "" || from != test.from {
			t.Errorf("%s: from %d, want %d; items (-want +got):\n%s", test.name, from, test.from, diff)
		}
	}
}

// Whatever the history, the request is valid and as small as it must be; and nothing
// of the history changes.
func TestFitHoldsForAnyHistory(t *testing.T) {
	e := fitting(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		h := &History{Items: drawPast(t)}
		before, err := json.Marshal(h.Items)
		if err != nil {
			t.Fatal(err)
		}
		room := rapid.Int64Range(1, 30_000).Draw(t, "room")
		h.Gauge.tokensPerByte = rapid.SampledFrom([]float64{0, 0.25, 1}).Draw(t, "ratio")
		engine := *e
		engine.Window.ContextTokens = h.Gauge.tokensOf(room) + 1

		if whole, _ := engine.fit(h, true); llmtest.Check(whole.Request) != nil || whole.fits && whole.bytes > room+4 && !whole.whole {
			t.Fatalf("without a summary: %v, %d bytes", llmtest.Check(whole.Request), whole.bytes)
		}
		got, to := engine.fit(h, false)
		if to > 0 {
			for _, item := range h.Items {
				if s := item.Summary; s != nil && s.ToN >= to {
					t.Fatalf("a summary up to item %d is asked for, and there is one up to %d", to, s.ToN)
				}
				if r := item.ToolResult; r != nil && item.N > to && r.CallN <= to && behindItsCall(h.Items, item.N) {
					t.Fatalf("a summary up to item %d is asked for, and result %d is of call %d", to, item.N, r.CallN)
				}
			}
			if last := h.Items[len(h.Items)-1].N; to > last || got.Items != nil {
				t.Fatalf("a summary up to %d of %d is asked for, and a request made", to, last)
			}
			h.Items = append(h.Items, session.Item{N: int64(len(h.Items) + 1), Kind: session.KindSummary,
				Summary: &session.Summary{Text: strings.Repeat("s", leastSummaryBytes), FromN: 1, ToN: to}})
			got, _ = engine.fit(h, true)
			h.Items = h.Items[:len(h.Items)-1]
		}
		if after, _ := json.Marshal(h.Items); string(after) != string(before) {
			t.Fatal("the history has changed")
		}
		if err := llmtest.Check(got.Request); err != nil {
			t.Fatal(err)
		}
		if got.bytes != requestBytes(got.Request) {
			t.Fatalf("it has %d bytes and says %d", requestBytes(got.Request), got.bytes)
		}
		if got.fits != h.Gauge.fits(got.measure, engine.inputTokens()) {
			t.Fatalf("fits = %v, with %d tokens of %d", got.fits, got.tokens, engine.inputTokens())
		}
		input, inputs := newestInput(h), 0
		for _, item := range got.Items {
			if m := item.UserMessage; m != nil && m.Text == input {
				inputs++
			}
		}
		if inputs == 0 {
			t.Fatal("the input is not in the request, or not whole")
		}
		if smallest := int64(len(input)) + 5000; !got.fits && room > smallest {
			t.Fatalf("a request of %d bytes does not fit, with room for %d: %s", got.bytes, room, show(got))
		}
	})
}

// behindItsCall reports whether item n is the first result that stands behind its
// call.
func behindItsCall(items []session.Item, n int64) bool {
	i := n - 1
	for items[i].Kind == session.KindToolResult && i > 0 {
		if i--; items[i].Kind == session.KindToolResult && items[i].ToolResult.CallN == items[n-1].ToolResult.CallN {
			return false
		}
	}
	for ; i >= 0 && ofAnswer(items[i].Kind); i-- {
		if items[i].N == items[n-1].ToolResult.CallN && items[i].Kind == session.KindToolCall {
			return true
		}
	}
	return false
}

// A history that grows must not change the beginning of its requests all the time:
// services keep what they have read before.
func TestRequestsBeginLikeTheOneBefore(t *testing.T) {
	var p past
	p.user("go")
	e := fitting(t, 100_000)
	changed, steps := 0, 400
	var last []session.Item
	for i := range steps {
		p.step(`{"n":1}`, strings.Repeat("x", 4000))
		got, to := e.fit(&History{Items: p.items}, false)
		if to > 0 {
			p.sums("summary", to)
			got, _ = e.fit(&History{Items: p.items}, true)
		}
		if !got.fits {
			t.Fatalf("step %d does not fit", i)
		}
		same := func(a, b session.Item) bool { return a.N == b.N && a.Kind == b.Kind && ItemBytes(&a) == ItemBytes(&b) }
		if len(got.Items) < len(last) || !slices.EqualFunc(last, got.Items[:len(last)], same) {
			changed++
		}
		last = got.Items
	}
	if most := steps * 4000 / (100_000 / hops) * 3 / 2; changed > most {
		t.Errorf("the beginning changed in %d of %d steps, want at most %d", changed, steps, most)
	}
}

func TestCheckInput(t *testing.T) {
	e := fitting(t, 10_000) // 5600 tokens, 28,000 bytes at most
	for bytes, want := range map[int]bool{5: true, 10_000: true, 27_900: true, 28_100: false, 1 << 20: false} {
		if err := e.CheckInput(strings.Repeat("x", bytes)); (err == nil) != want {
			t.Errorf("an input of %d bytes: %v", bytes, err)
		}
	}
	e.Budget = llm.NewBudget(1000)
	if err := e.CheckInput(strings.Repeat("x", 5000)); err == nil {
		t.Error("the budget of a minute does not count")
	}
}

func long(items int) *History {
	var p past
	p.user("begin")
	for len(p.items) < items {
		p.step(`{"path":"some/file.go"}`, strings.Repeat("line of text\n", 100))
		p.says("I have read it.")
		p.user("go on")
	}
	return &History{Items: p.items[:items]}
}

func BenchmarkFit10k(b *testing.B) {
	h := long(10_000)
	for name, room := range map[string]int{"whole": 100 << 20, "results": 2 << 20, "messages": 100_000} {
		e := fitting(b, room)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e.fit(h, true)
			}
		})
	}
}
