package llm

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// leastWait is the shortest time after which a background request asks again.
	leastWait = 10 * time.Millisecond
	// strictMinute is in what time a strict budget is sent at most once: a minute, and
	// what requests may be longer on their way than others.
	strictMinute = time.Minute + time.Second
)

// Budget is how many input tokens a minute the holder of one key may send, all
// models and sessions together. It is a bucket that is full at first and fills
// again evenly, as those of OpenAI and Anthropic are. A service that counts each
// minute as a whole refuses what comes out of such a bucket: from its first refusal
// on the budget is strict, which is that no more than it is sent in any minute.
// Nil is no limit. It is safe for concurrent use.
type Budget struct {
	*bucket
	anySize, background bool
}

// bucket is what all views of one budget share.
type bucket struct {
	limiter *rate.Limiter

	mu     sync.Mutex // guards the fields below, and makes a look into the limiter and a take one step
	line   []*Claim   // of the background, which have not been taken yet, in order
	sent   minute
	strict bool
}

// NewBudget makes a budget of so many tokens a minute, at least 20. It stays a
// twentieth below them: requests reach the service at other distances from each
// other than they were sent in.
func NewBudget(tokensPerMinute int64) *Budget {
	tokens := int(min(max(tokensPerMinute-tokensPerMinute/20, 1), math.MaxInt32))
	return &Budget{bucket: &bucket{limiter: rate.NewLimiter(rate.Limit(float64(tokens)/time.Minute.Seconds()), tokens)}}
}

// AnySize is the same budget for requests that the service alone may refuse for their
// size: one above the budget waits until all of it is there.
func (b *Budget) AnySize() *Budget {
	if b == nil {
		return nil
	}
	return &Budget{bucket: b.bucket, anySize: true, background: b.background}
}

// Background is the same budget for requests that nobody waits for. They take nothing
// before they are sent, and leave half of the bucket to others; one that needs more
// than the other half is sent when the bucket is full. So none that is not sent yet
// makes another request wait, and under a load that never lets the bucket fill they
// do wait.
func (b *Budget) Background() *Budget {
	if b == nil {
		return nil
	}
	return &Budget{bucket: b.bucket, anySize: b.anySize, background: true}
}

// MaxTokens is the largest request that can ever be sent.
func (b *Budget) MaxTokens() int64 {
	if b == nil || b.anySize {
		return math.MaxInt64
	}
	return int64(b.limiter.Burst())
}

// Claim is the place of one request in a budget. Nil need not wait. It is for one
// goroutine.
type Claim struct {
	budget *Budget
	tokens int
	taken  *rate.Reservation // nil while a claim of the background stands in line
	at     time.Time         // when it may be sent, once it is taken
}

// Claim takes the tokens of one request out of the budget; its turn comes in order of
// claiming. A request above the budget counts as all of it. Who does not send the
// request after all cancels the claim.
func (b *Budget) Claim(tokens int64) *Claim {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Claim{budget: b, tokens: b.bounded(tokens)}
	if b.background {
		b.line = append(b.line, c)
	} else {
		b.take(c, time.Now())
	}
	return c
}

// take gives a claim its time. The mu is held.
func (b *bucket) take(c *Claim, now time.Time) {
	c.taken = b.limiter.ReserveN(now, c.tokens)
	c.at = now.Add(c.taken.DelayFrom(now))
	if b.strict {
		c.at = latest(c.at, b.sent.roomFor(c.tokens, b.limiter.Burst()))
	}
	b.sent.add(c, now)
}

// Background reports whether the claim gives way to others.
func (c *Claim) Background() bool { return c != nil && c.budget.background }

// Wait is how long the request must wait before it may be sent; 0 is now. One of the
// background may be told to wait longer when it asks again, as others came first.
func (c *Claim) Wait() time.Duration {
	if c == nil {
		return 0
	}
	b := c.budget.bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if c.taken != nil {
		return max(0, c.at.Sub(now))
	}
	needed := 0
	place := slices.Index(b.line, c)
	for i, next := range b.line[:place+1] {
		if i == 0 {
			needed += b.needed(next)
		} else {
			needed += next.tokens
		}
	}
	wait := b.until(needed, now)
	if place == 0 && wait <= 0 {
		b.line = b.line[1:]
		b.take(c, now)
		return 0
	}
	return max(wait, leastWait)
}

// until is how long it takes until so many tokens are there; 0 or less is now. The mu
// is held.
func (b *bucket) until(tokens int, now time.Time) time.Duration {
	seconds := (float64(tokens) - b.limiter.TokensAt(now)) / float64(b.limiter.Limit())
	wait := time.Duration(math.Ceil(seconds * float64(time.Second)))
	if b.strict {
		full := b.limiter.Burst()
		wait = max(wait, b.sent.roomFor(min(tokens, full), full).Sub(now))
	}
	return wait
}

// needed is how much of the bucket must be there before a claim of the background is
// sent.
func (b *bucket) needed(c *Claim) int {
	full := b.limiter.Burst()
	return min(c.tokens+full/2, full)
}

// Cancel gives back what the claim has taken and leaves the line.
func (c *Claim) Cancel() {
	if c == nil {
		return
	}
	b := c.budget.bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.taken != nil {
		c.taken.Cancel()
		b.sent.remove(c)
	}
	b.line = slices.DeleteFunc(b.line, func(other *Claim) bool { return other == c })
}

// Settle says how the request went that was sent on a claim. What the service has
// counted, 0 if that is unknown, corrects what was taken: the next requests wait longer
// for what was too little, and less for what was too much. A refusal because it
// came too early makes the budget strict.
func (c *Claim) Settle(counted int64, err error) {
	if c == nil || c.taken == nil {
		return
	}
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusTooManyRequests && refused.Class == ClassRetry {
		b.strict = true
	}
	now := time.Now()
	if counted > 0 {
		taken := c.tokens
		c.tokens = b.bounded(counted)
		b.limiter.ReserveN(now, c.tokens-taken)
	}
	if b.strict {
		b.sent.delay(now, b.limiter.Burst())
	}
}

func (b *Budget) bounded(tokens int64) int {
	return min(int(min(max(tokens, 0), math.MaxInt32)), b.limiter.Burst())
}
