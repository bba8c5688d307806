package worker

import (
	"testing"

	"loadline/internal/session"
)

// A refusal makes requests small, and answers let them grow again: one refusal of a
// small request does not keep a session small for ever.
func TestAnswersRaiseTheCeiling(t *testing.T) {
	for _, c := range []struct {
		name     string
		refused  int64
		answered []int64
		want     int64
	}{
		{"a refusal halves", 100_000, nil, 50_000},
		{"a smaller answer says nothing", 100_000, []int64{20_000}, 50_000},
		{"an answer at the ceiling", 100_000, []int64{50_000, 62_500}, 78_125},
		{"an answer above it", 5_000, []int64{6_000}, 12_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g Gauge
			g.refuse(c.refused)
			for _, bytes := range c.answered {
				g.learn(measure{bytes: bytes}, session.Usage{InputTokens: bytes / 4})
			}
			if g.ceilingBytes != c.want {
				t.Errorf("the ceiling is %d bytes, want %d", g.ceilingBytes, c.want)
			}
		})
	}
}
