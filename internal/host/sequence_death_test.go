package host_test

import (
	"pgregory.net/rapid"

	"loadline/internal/session"
)

// fillDisk has the disk refuse what comes next.
func (s *sequence) fillDisk() {
	s.full = true
	s.life.refuse(rapid.IntRange(1, 4).Draw(s.T, "refused commits"))
}

// crash ends the process at one of the next commits: before it, or after it and
// before anybody has heard of it. What is on disk stays.
func (s *sequence) crash() {
	s.life.dieAfter(rapid.IntRange(0, 5).Draw(s.T, "commits before the death"), rapid.Bool().Draw(s.T, "the last one stands"))
	if rapid.Bool().Draw(s.T, "a turn before the death") {
		s.model.prepare("last words", drawScript(s.T))
		if t, _, err := s.life.host.Submit(s.ctx, s.id, session.Submission{Input: "last words", Mode: session.ModeEnqueue}, nil); err == nil {
			s.turns = append(s.turns, t.ID)
		}
	}
	s.wait()
	s.life.die()
	s.life.end(0)
	s.begin()
}
