package llm

import (
	"slices"
	"time"
)

// minute is what is sent within a strict minute, in order of its times: what has been,
// and what has its time. The zero value is empty.
type minute []*Claim

// roomFor is the earliest time at which so many tokens, at most full, can be sent after
// all others, so that in no strict minute more than full are.
func (m minute) roomFor(tokens, full int) time.Time {
	var at time.Time
	within := tokens
	for i, c := range slices.Backward(m) {
		if i == len(m)-1 {
			at = c.at
		}
		if within += c.tokens; within > full {
			return latest(at, c.at.Add(strictMinute))
		}
	}
	return at
}

// add notes a claim that has its time, and forgets those that are over.
func (m *minute) add(c *Claim, now time.Time) {
	over := 0
	for over < len(*m) && !(*m)[over].at.Add(strictMinute).After(now) {
		over++
	}
	*m = slices.Delete(*m, 0, over)
	after := len(*m)
	for after > 0 && (*m)[after-1].at.After(c.at) {
		after--
	}
	*m = slices.Insert(*m, after, c)
}

// delay gives those that wait later times where they have no room any more.
func (m *minute) delay(now time.Time, full int) {
	waiting := len(*m)
	for waiting > 0 && (*m)[waiting-1].at.After(now) {
		waiting--
	}
	for i := waiting; i < len(*m); i++ {
		c := (*m)[i]
		c.at = latest(c.at, (*m)[:i].roomFor(c.tokens, full))
	}
}

func (m *minute) remove(c *Claim) {
	*m = slices.DeleteFunc(*m, func(other *Claim) bool { return other == c })
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
