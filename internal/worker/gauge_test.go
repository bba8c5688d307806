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

func TestGaugeProjects(t *testing.T) {
	whole := func(bytes, from int64) measure { return measure{bytes, true, from} }
	used := func(tokens int64) session.Usage { return session.Usage{InputTokens: tokens} }
	var g Gauge
	for _, test := range []struct {
		name  string
		do    func()
		after measure
		want  int64
	}{
		{"nothing known", func() {}, whole(100_000, 0), 56_000},
		{"too little to show a ratio", func() { g.learn(whole(1000, 0), used(900)) }, whole(2000, 0), 900 + 560},
		{"no usage", func() { g.learn(whole(50_000, 0), used(0)) }, whole(2000, 0), 900 + 560},
		{"the first ratio", func() { g.learn(whole(100_000, 0), used(25_000)) }, whole(104_000, 0), 26_000},
		{"a lower one", func() { g.learn(whole(200_000, 0), used(40_000)) }, whole(204_000, 0), 41_000},
		{"less than before", func() {}, whole(100_000, 0), 25_000},
		{"another summary", func() {}, whole(204_000, 7), 51_000},
		{"not whole", func() {}, measure{bytes: 204_000}, 51_000},
		{"a higher one", func() { g.learn(measure{bytes: 10_000}, used(5000)) }, whole(204_000, 0), 102_000},
		{"an impossible one", func() { g.learn(measure{bytes: 10_000}, used(500_000)) }, whole(10_000, 0), 10_000},
	} {
		test.do()
		if got := g.tokens(test.after); got < test.want || got > test.want+1 { // what is rounded up
			t.Errorf("%s: %d tokens, want %d", test.name, got, test.want)
		}
	}
	stored := NewGauge([]session.Step{{Usage: used(3000), RequestBytes: 10_000}, {Usage: used(2000), RequestBytes: 10_000}, {Usage: used(9), RequestBytes: 0}})
	if got := stored.tokens(whole(20_000, 0)); got != 6000 {
		t.Errorf("out of stored steps: %d tokens, want 6000", got)
	}
}
