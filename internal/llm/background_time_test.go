package llm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// asked is a request of a test: after a pause it claims so many tokens.
type asked struct {
	background bool
	pause      time.Duration
	tokens     int64
	counted    int64 // by the service; 0: as taken
	givesUp    bool  // where it must wait
}

// mix plays requests on a budget, and those of them that are not sent by then on no
// other: turns have a budget of their own beside it, which only hears of requests
// of the background when they are sent.
type mix struct {
	both, turns *Budget
	line        []*Claim // of the background, which are not sent
	sizes       []int64
}

func (m *mix) play(requests []asked) error {
	for i, r := range requests {
		if err := m.wait(r.pause); err != nil {
			return err
		}
		if r.background {
			m.line, m.sizes = append(m.line, m.both.AnySize().Background().Claim(r.tokens)), append(m.sizes, r.tokens)
			continue
		}
		mixed, alone := m.both.Claim(r.tokens), m.turns.Claim(r.tokens)
		if got, want := mixed.Wait(), alone.Wait(); got != want {
			return fmt.Errorf("turn %d of %d tokens waits %v, and %v without the %d requests that are not sent", i, r.tokens, got, want, len(m.line))
		}
		mixed.Settle(r.counted, nil)
		alone.Settle(r.counted, nil)
	}
	return nil
}

// wait lets time pass, in which requests of the background ask for their turn. All of
// them ask, the last one first, and only the first one may be sent.
func (m *mix) wait(pause time.Duration) error {
	for end := time.Now().Add(pause); ; {
		next := end
		for place := len(m.line) - 1; place >= 0; place-- {
			wait := m.line[place].Wait()
			switch {
			case wait > 0 && time.Now().Add(wait).Before(next):
				next = time.Now().Add(wait)
			case wait == 0 && place > 0:
				return fmt.Errorf("the request at place %d of the line is sent first", place)
			case wait == 0:
				if err := m.send(); err != nil {
					return err
				}
				next = time.Now() // those behind it ask again
			}
		}
		if next.Equal(end) && !time.Now().Before(end) {
			return nil
		}
		time.Sleep(time.Until(next))
	}
}

// send takes out what the first of the line takes, and checks that it leaves half of
// the bucket, or found it full.
func (m *mix) send() error {
	burst := m.turns.MaxTokens()
	before := m.turns.limiter.Tokens()
	size := min(m.sizes[0], burst)
	if before < float64(burst) && before-float64(size) < float64(burst/2) {
		return fmt.Errorf("%d tokens are sent out of %.0f", size, before)
	}
	m.turns.Claim(size)
	m.line, m.sizes = m.line[1:], m.sizes[1:]
	return nil
}

func TestTurnNeverWaitsForBackgroundThatIsNotSent(t *testing.T) {
	const perMinute, most = 60_000, 80_000
	request := rapid.Custom(func(rt *rapid.T) asked {
		return asked{
			background: rapid.Bool().Draw(rt, "background"),
			pause:      time.Duration(rapid.IntRange(0, 40_000).Draw(rt, "pause")) * time.Millisecond,
			tokens:     rapid.Int64Range(0, most).Draw(rt, "tokens"),
			counted:    rapid.Int64Range(0, most).Draw(rt, "counted"),
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		requests := rapid.SliceOfN(request, 1, 60).Draw(rt, "requests")
		var err error
		synctest.Test(t, func(*testing.T) {
			m := mix{both: NewBudget(perMinute), turns: NewBudget(perMinute)}
			if err = m.play(requests); err != nil {
				return
			}
			// When no more turns come, each of those that wait is sent, one a minute at
			// least; what turns have taken ahead is waited for first.
			m.turns.mu.Lock()
			ahead := max(0, -m.turns.limiter.Tokens()/float64(m.turns.limiter.Limit()))
			m.turns.mu.Unlock()
			patience := time.Duration(ahead*float64(time.Second)) + time.Duration(len(m.line))*(time.Minute+time.Second)
			if err = m.wait(patience); err == nil && len(m.line) > 0 {
				err = fmt.Errorf("%d requests are not sent after %v without turns", len(m.line), patience)
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

func TestBackgroundThatIsCancelledLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(60_000) // 57,000, or 950 a second
		b.Claim(950)
		first, second := b.Background().Claim(57_000), b.Background().Claim(950)
		if w := first.Wait(); w < time.Second-leastWait || w > time.Second+leastWait {
			t.Errorf("the first waits %v, want the second until the bucket is full", w)
		}
		if w := second.Wait(); w <= time.Second {
			t.Errorf("the one behind it waits %v", w)
		}
		first.Cancel()
		if w := second.Wait(); w != 0 {
			t.Errorf("alone it waits %v: there is room for it", w)
		}
	})
	var none *Budget
	if c := none.Background().Claim(1); c.Wait() != 0 || c.Background() {
		t.Error("no budget has become one")
	}
}
