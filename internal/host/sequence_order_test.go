package host_test

import (
	"errors"
	"slices"
	"time"

	"loadline/internal/session"
)

// longestStep is after what time a turn must have made room for one that interrupts
// it: a call that hears nothing is given up before.
const longestStep = 5 * time.Minute

// checkOrder holds that turns start in the order in which they should: the newest of
// those that interrupt, then the oldest of those that were to steer a turn that has
// ended, then the oldest of the rest; and that whoever is interrupted ends soon.
func (s *sequence) checkOrder(events []session.Event) {
	s.Helper()
	var queue []session.Turn
	var interrupted session.Time // when the running turn was; 0: it was not
	running := session.TurnID("")
	for _, ev := range events {
		at := slices.IndexFunc(queue, func(t session.Turn) bool { return t.ID == ev.TurnID })
		switch {
		case ev.Type == session.EventTurnQueued:
			queue = append(queue, *ev.Turn)
			if ev.Turn.Mode == session.ModeInterrupt && running != "" && interrupted == 0 {
				interrupted = ev.At
			}
		case ev.Type == session.EventTurnStarted:
			if next := nextOf(queue); next != at {
				s.Fatalf("event %d: turn %s starts, %s is next", ev.Seq, ev.TurnID, queue[next].ID)
			}
			queue, running = slices.Delete(queue, at, at+1), ev.TurnID
		case ev.Type.Terminal() && at >= 0: // it steered another, or was withdrawn
			if ev.Turn.State == session.TurnCompleted && (queue[at].Mode != session.ModeSteer || queue[at].ExpectedTurn != running) {
				s.Fatalf("event %d: turn %s entered turn %s", ev.Seq, ev.TurnID, running)
			}
			queue = slices.Delete(queue, at, at+1)
		case ev.Type.Terminal() && ev.TurnID == running:
			if took := time.Duration(ev.At-interrupted) * time.Microsecond; interrupted != 0 && took > longestStep && !s.full {
				s.Fatalf("event %d: turn %s ends %s after it was interrupted", ev.Seq, ev.TurnID, took)
			}
			running, interrupted = "", 0
		}
	}
}

// nextOf is the place of the turn that should start; -1 when none waits.
func nextOf(queue []session.Turn) int {
	next := -1
	for i, t := range queue {
		switch {
		case next < 0, t.Mode == session.ModeInterrupt,
			t.Mode == session.ModeSteer && queue[next].Mode != session.ModeInterrupt && queue[next].Mode != session.ModeSteer:
			next = i
		}
	}
	return next
}

// checkInputs holds that nothing that was said is in the history twice.
func (s *sequence) checkInputs(items []session.Item) {
	s.Helper()
	seen := map[string]bool{}
	for _, item := range items {
		if item.UserMessage == nil || !slices.Contains(s.inputs, item.UserMessage.Text) {
			continue
		}
		if seen[item.UserMessage.Text] {
			s.Fatalf("item %d says again %.40q", item.N, item.UserMessage.Text)
		}
		seen[item.UserMessage.Text] = true
	}
}

// checkEnds holds that each turn has ended, once, with nothing of it after its end,
// and that what was said in a completed one is in the history.
func (s *sequence) checkEnds() {
	s.Helper()
	events := s.events()
	items := itemsOf(events)
	for _, id := range s.turns {
		t, err := s.life.store.Turn(s.ctx, s.id, id)
		switch {
		case errors.Is(err, session.ErrNotFound): // the crash was first
		case err != nil:
			s.Fatal(err)
		case !t.State.Ended():
			s.Fatalf("turn %s is %s", id, t.State)
		case t.Error != nil && (t.Error.Code == session.CodeInternal && !s.model.broken || t.Error.Code == session.CodeStorage && !s.full):
			s.Fatalf("turn %s is %s without a reason: %+v", id, t.State, *t.Error)
		case t.State == session.TurnCompleted && !slices.ContainsFunc(items, func(i session.Item) bool { return i.UserMessage != nil && i.UserMessage.Text == t.Input }):
			s.Fatalf("turn %s is completed, what was said in it is not in the history", id)
		}
	}
	ended := map[session.TurnID]bool{}
	for _, ev := range events {
		if ev.TurnID != "" && ended[ev.TurnID] {
			s.Fatalf("event %d, %s, is of turn %s, which had ended", ev.Seq, ev.Type, ev.TurnID)
		}
		ended[ev.TurnID] = ended[ev.TurnID] || ev.Type.Terminal()
	}
	for _, id := range s.turns {
		if !ended[id] {
			s.Fatalf("the end of turn %s is not in the log", id)
		}
	}
}
