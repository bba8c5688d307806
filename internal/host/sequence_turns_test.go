package host_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"loadline/internal/session"
)

// submit submits a turn with a script for the model.
func (s *sequence) submit() {
	script := drawScript(s.T)
	sub := session.Submission{Input: s.drawInput()}
	sub.Mode = rapid.SampledFrom([]session.Mode{
		session.ModeEnqueue, session.ModeEnqueue, session.ModeReject, session.ModeInterrupt, session.ModeSteer, session.ModeSteer,
	}).Draw(s.T, "mode")
	if rapid.IntRange(0, 2).Draw(s.T, "said while it runs") == 0 {
		script = append([]answer{{Calls: []string{asJSON(order{Tool: "slow"})}, Wait: 10 * time.Minute}}, script...)
	}
	if sub.Mode == session.ModeSteer {
		sub.ExpectedTurn = s.drawExpected()
	}
	s.model.prepare(sub.Input, script)
	t, _, err := s.life.host.Submit(s.ctx, s.id, sub, nil)
	_, tooLarge := errors.AsType[*session.InputTooLarge](err)
	switch {
	case err == nil:
		s.turns = append(s.turns, t.ID)
		s.wait()
	case tooLarge, sub.Mode == session.ModeReject && errors.Is(err, session.ErrBusy),
		sub.Mode == session.ModeSteer && errors.Is(err, session.ErrNotRunning), errors.Is(err, session.ErrStorage) && s.life.refused():
	default:
		s.Fatalf("submit: %v", err)
	}
}

// drawExpected draws the turn that is to be steered: the one that was submitted last,
// which may run, or one that has ended long ago.
func (s *sequence) drawExpected() session.TurnID {
	switch {
	case len(s.turns) == 0:
		return session.NewTurnID()
	case rapid.IntRange(0, 3).Draw(s.T, "expected turn") == 0:
		return s.turns[0]
	}
	open, err := s.life.store.OpenTurns(s.ctx, s.id)
	if err != nil {
		s.Fatal(err)
	}
	if len(open) > 0 {
		return open[0].ID
	}
	return s.turns[len(s.turns)-1]
}

// drawInput draws what a person says, never the same twice.
func (s *sequence) drawInput() string {
	text := rapid.SampledFrom([]string{"go", "go", "go\x00\xff", "日本語 🦆 "}).Draw(s.T, "input")
	times := rapid.SampledFrom([]int{1, 1, 100, 1000, 20_000}).Draw(s.T, "times")
	input := fmt.Sprintf("%d %s", len(s.inputs), strings.Repeat(text, times))
	s.inputs = append(s.inputs, session.Clean(input))
	return input
}

func (s *sequence) wait() {
	pass(rapid.SampledFrom([]time.Duration{0, time.Nanosecond, 50 * time.Millisecond, 700 * time.Millisecond, 5 * time.Second, 2 * time.Minute, time.Hour}).Draw(s.T, "wait"))
}

func (s *sequence) cancel() {
	if len(s.turns) == 0 {
		return
	}
	id := rapid.SampledFrom(s.turns).Draw(s.T, "cancelled turn")
	t, err := s.life.host.Cancel(s.ctx, s.id, id)
	switch {
	case errors.Is(err, session.ErrStorage) && s.life.refused():
	case err != nil:
		s.Fatalf("cancel: %v", err)
	case !t.State.Ended():
		s.Fatalf("turn %s is %s after it was cancelled", t.ID, t.State)
	}
}

// restart stops the server in good order and starts it with another manifest.
func (s *sequence) restart() {
	s.life.end(rapid.SampledFrom([]time.Duration{0, 5 * time.Second}).Draw(s.T, "drain"))
	s.begin()
}
