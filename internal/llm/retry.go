package llm

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	firstBackoff = 500 * time.Millisecond
	// maxRetryAfter bounds what a provider may ask for; whoever waits has a bound
	// of its own.
	maxRetryAfter = time.Hour
)

// Backoff is how long to wait after the attempt-th failure in a row, 1 being the
// first: about 0.5 s, 1 s, 2 s and so on, each up to half more or less, so that
// those who failed together do not come back together. A retryAfter above 0, as
// the provider asked for it, is obeyed instead, plus up to a tenth. The wait is
// never above maxWait.
func Backoff(attempt int, retryAfter, maxWait time.Duration) time.Duration {
	if retryAfter > 0 {
		return min(retryAfter+rand.N(retryAfter/10+1), maxWait)
	}
	b := backoff.ExponentialBackOff{
		InitialInterval:     firstBackoff,
		RandomizationFactor: 0.5,
		Multiplier:          2,
		MaxInterval:         max(maxWait, firstBackoff),
	}
	wait := b.NextBackOff()
	for n := 1; n < min(attempt, 32); n++ {
		wait = b.NextBackOff()
	}
	return min(wait, maxWait)
}

// retryAfter reads the wait that an answer asks for: retry-after-ms, or
// Retry-After in seconds or as an HTTP date. It is 0 when there is none, when it
// is past or unreadable, and at most maxRetryAfter.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return boundedWait(ms, time.Millisecond)
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return boundedWait(seconds, time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return boundedWait(float64(time.Until(at)), 1)
	}
	return 0
}

func boundedWait(n float64, unit time.Duration) time.Duration {
	// A NaN fails both comparisons.
	if wait := n * float64(unit); wait > 0 && wait < float64(maxRetryAfter) {
		return time.Duration(wait)
	} else if wait > 0 {
		return maxRetryAfter
	}
	return 0
}
