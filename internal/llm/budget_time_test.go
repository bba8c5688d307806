package llm

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// A service that counts in the same way never sees more than it allows, whatever is
// asked for and whenever.
func TestBudgetIsNeverMoreThanTheServiceAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perMinute = 30_000
		b := NewBudget(perMinute)
		service := rate.NewLimiter(perMinute/60, perMinute)
		begun, sent := time.Now(), int64(0)
		for i := range 200 {
			tokens := int64(i * 137 % 28_500)
			wait, _ := take(b, tokens)
			time.Sleep(wait)
			time.Sleep(time.Duration(i%7) * 50 * time.Millisecond) // on its way
			if !service.AllowN(time.Now(), int(tokens)) {
				t.Fatalf("request %d of %d tokens is refused", i, tokens)
			}
			sent += tokens
		}
		if most := float64(perMinute) * (1 + time.Since(begun).Minutes()); float64(sent) < 0.9*(most-perMinute) {
			t.Errorf("%d tokens in %v: the budget is not used", sent, time.Since(begun))
		}
	})
}

// take claims the tokens of a request, and says how long it waits.
func take(b *Budget, tokens int64) (wait time.Duration, giveBack func()) {
	c := b.Claim(tokens)
	return c.Wait(), c.Cancel
}

func TestBudgetTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(60_000) // 57,000, or 950 a second
		first, _ := take(b, b.MaxTokens())
		second, giveBack := take(b, 9500)
		third, _ := take(b, 950)
		if first != 0 || second != 10*time.Second || third != 11*time.Second {
			t.Errorf("waits are %v, %v and %v, want 0s, 10s and 11s", first, second, third)
		}
		giveBack()
		if fourth, _ := take(b, 0); fourth >= 11*time.Second {
			t.Errorf("what was given back is still waited for: %v", fourth)
		}
	})
}

func TestBudgetSettles(t *testing.T) {
	for _, test := range []struct {
		name           string
		taken, counted int64
		want           time.Duration
	}{
		{"as taken", 57_000, 57_000, time.Second},
		{"less", 57_000, 57_000 - 950*5, 0},
		{"more", 57_000 - 950*5, 57_000, time.Second},
		{"not counted", 57_000, 0, time.Second},
		{"above all bounds", 57_000, math.MaxInt64, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget(60_000)
				b.Claim(test.taken).Settle(test.counted, nil)
				if wait, _ := take(b, 950); wait != test.want {
					t.Errorf("the next waits %v, want %v", wait, test.want)
				}
			})
		})
	}
}

func TestBudgetHasBounds(t *testing.T) {
	var none *Budget
	if wait, giveBack := take(none, math.MaxInt64); wait != 0 || none.MaxTokens() != math.MaxInt64 {
		t.Error("no budget is a limit")
	} else {
		giveBack()
		none.Claim(1).Settle(2, nil)
	}
	for _, perMinute := range []int64{math.MinInt64, -1, 0, 1, 20, math.MaxInt64} {
		b := NewBudget(perMinute)
		if wait, _ := take(b, math.MaxInt64); wait != 0 || b.MaxTokens() < 1 {
			t.Errorf("budget of %d: the first request waits %v, the largest is %d", perMinute, wait, b.MaxTokens())
		}
	}
}

func TestWindowKeepsRoomForTheAnswer(t *testing.T) {
	for _, test := range []struct {
		window Window
		want   int64
	}{
		{Window{}, 128_000 - 8192},
		{Window{ContextTokens: 200_000}, 200_000 - 8192},
		{Window{ContextTokens: 200_000, OutputTokens: 64_000}, 136_000},
		{Window{ContextTokens: 8192}, 4096},
		{Window{ContextTokens: 8192, OutputTokens: 1000}, 7192},
		{Window{ContextTokens: 1000, OutputTokens: 1000}, 500},
		{Window{ContextTokens: 1}, 1},
	} {
		if got := test.window.InputTokens(); got != test.want {
			t.Errorf("%+v takes %d, want %d", test.window, got, test.want)
		}
	}
}

// A request of any size waits for the whole budget, which others share.
func TestAnySizeSharesTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1000)
		whole := b.AnySize()
		first, _ := take(whole, 1<<40)
		second, _ := take(b, 950)
		third, _ := take(whole, 1<<40)
		if first != 0 || second != time.Minute || third != 2*time.Minute {
			t.Errorf("waits are %v, %v and %v, want 0s, 1m0s and 2m0s", first, second, third)
		}
		if whole.MaxTokens() != math.MaxInt64 || b.MaxTokens() != 950 {
			t.Errorf("the largest requests are %d and %d", whole.MaxTokens(), b.MaxTokens())
		}
	})
	var none *Budget
	if none.AnySize() != nil {
		t.Error("no budget has become one")
	}
}
