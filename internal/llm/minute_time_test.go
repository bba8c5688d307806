package llm

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var errTooEarly = &Error{Class: ClassRetry, Status: http.StatusTooManyRequests, Err: errors.New("slow down")}

// sent is a request that a strict service has counted.
type sent struct {
	at     time.Time
	tokens int64
}

// within is what was sent in the minute up to a time.
func within(all []sent, at time.Time) (sum int64) {
	for _, s := range all {
		if ago := at.Sub(s.at); ago >= 0 && ago < time.Minute {
			sum += s.tokens
		}
	}
	return sum
}

// send waits as long as it is told, or gives up, and says when it has sent.
func (r asked) send(c *Claim) (s sent) {
	for wait := c.Wait(); wait > 0; wait = c.Wait() {
		if r.givesUp {
			time.Sleep(wait / 2)
			c.Cancel()
			return sent{}
		}
		time.Sleep(wait)
	}
	s = sent{time.Now(), r.tokens}
	time.Sleep(time.Second) // until it is answered
	c.Settle(0, nil)
	return s
}

// From its first refusal on a budget is sent at most once in any minute, whoever asks
// for what and gives up; and everybody who waits is sent, turns in their order.
func TestStrictBudgetIsSentOnceAMinute(t *testing.T) {
	const perMinute = 60_000
	request := rapid.Custom(func(rt *rapid.T) asked {
		return asked{
			background: rapid.IntRange(0, 3).Draw(rt, "background") == 0,
			pause:      time.Duration(rapid.IntRange(0, 40_000).Draw(rt, "pause")) * time.Millisecond,
			tokens:     rapid.Int64Range(0, 57_000).Draw(rt, "tokens"),
			givesUp:    rapid.IntRange(0, 4).Draw(rt, "gives up") == 0,
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		requests := rapid.SliceOfN(request, 1, 40).Draw(rt, "requests")
		var err error
		synctest.Test(t, func(*testing.T) { err = playStrict(perMinute, requests) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func playStrict(perMinute int64, requests []asked) error {
	b := NewBudget(perMinute)
	b.Claim(57_000)
	b.Claim(1000).Settle(0, errTooEarly)
	all := make([]sent, len(requests))
	var open sync.WaitGroup
	for i, r := range requests {
		time.Sleep(r.pause)
		of := b
		if r.background {
			of = b.Background()
		}
		claim := of.Claim(r.tokens)
		open.Go(func() { all[i] = r.send(claim) })
	}
	open.Wait()
	last := time.Time{}
	for i, s := range all {
		if sum := within(all, s.at); sum > b.MaxTokens() {
			return fmt.Errorf("%d tokens are sent within a minute", sum)
		}
		if requests[i].background || s.at.IsZero() {
			continue
		}
		if s.at.Before(last) {
			return fmt.Errorf("request %d is sent before one that came before it", i)
		}
		last = s.at
	}
	return nil
}

func TestBudgetBecomesStrictByARefusal(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want time.Duration // of half the budget, after all of it has been sent
	}{
		{"none", nil, 30 * time.Second},
		{"too early", errTooEarly, strictMinute},
		{"overloaded", &Error{Class: ClassRetry, Status: 529, Err: errors.New("busy")}, 30 * time.Second},
		{"larger than the minute", &Error{Class: ClassShrink, Status: http.StatusTooManyRequests, Err: errors.New("too large")}, 30 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := NewBudget(60_000)
				first, next := b.Claim(57_000), b.Claim(28_500)
				first.Settle(0, test.err)
				if got := next.Wait(); got != test.want {
					t.Errorf("half of the budget waits %s, want %s", got, test.want)
				}
				if got := b.Background().Claim(1).Wait(); test.err == errTooEarly && got <= strictMinute {
					t.Errorf("the background waits %s", got)
				}
			})
		})
	}
}

// What the service counts above what was taken delays those that have their time.
func TestStrictBudgetDelaysWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(60_000)
		b.Claim(0).Settle(0, errTooEarly)
		b.Claim(28_500)
		time.Sleep(10 * time.Second)
		sent := b.Claim(28_500)
		waits := b.Claim(10_000)
		if got := waits.Wait(); got != strictMinute-10*time.Second {
			t.Errorf("it waits %s, want until the first is over", got)
		}
		sent.Settle(50_000, nil)
		if got := waits.Wait(); got != strictMinute {
			t.Errorf("it waits %s, want until the second is over", got)
		}
		waits.Cancel()
		if got := b.Claim(7000).Wait(); got != strictMinute-10*time.Second {
			t.Errorf("beside what is cancelled it waits %s", got)
		}
	})
}
