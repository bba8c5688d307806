package llm

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Budget is how many input tokens a minute the holder of one key may send, all
// models and sessions together. It is a bucket that is full at first and fills
// again evenly. Nil is no limit. It is safe for concurrent use.
type Budget struct {
	bucket  *rate.Limiter
	anySize bool
}

// NewBudget makes a budget of so many tokens a minute, at least 20. It stays a
// twentieth below them: requests reach the service at other distances from each
// other than they were sent in.
func NewBudget(tokensPerMinute int64) *Budget {
	tokens := int(min(max(tokensPerMinute-tokensPerMinute/20, 1), math.MaxInt32))
	return &Budget{bucket: rate.NewLimiter(rate.Limit(float64(tokens)/time.Minute.Seconds()), tokens)}
}

// AnySize is the same budget for requests that the service alone may refuse for their
// size: one above the budget waits until all of it is there.
func (b *Budget) AnySize() *Budget {
	if b == nil {
		return nil
	}
	return &Budget{bucket: b.bucket, anySize: true}
}

// MaxTokens is the largest request that can ever be sent.
func (b *Budget) MaxTokens() int64 {
	if b == nil || b.anySize {
		return math.MaxInt64
	}
	return int64(b.bucket.Burst())
}

// Take takes the tokens of one request out of the budget, and says how long it must
// wait for its turn, which comes in order of taking. A request above the budget
// counts as all of it. Who does not send it after all calls the returned
// function.
func (b *Budget) Take(tokens int64) (wait time.Duration, giveBack func()) {
	if b == nil {
		return 0, func() {}
	}
	r := b.bucket.ReserveN(time.Now(), b.bounded(tokens))
	return r.Delay(), r.Cancel
}

// Settle corrects what Take has taken by what the service has counted: the next
// requests wait longer for what was too little, and less for what was too much.
func (b *Budget) Settle(taken, counted int64) {
	if b == nil || counted <= 0 {
		return
	}
	b.bucket.ReserveN(time.Now(), b.bounded(counted)-b.bounded(taken))
}

func (b *Budget) bounded(tokens int64) int {
	return min(int(min(max(tokens, 0), math.MaxInt32)), b.bucket.Burst())
}
