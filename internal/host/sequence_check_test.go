package host_test

import (
	"math"
	"slices"
	"testing/synctest"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// check holds what is true at every moment, at one at which nothing moves.
func (s *sequence) check() {
	s.Helper()
	synctest.Wait()
	if problems := s.model.trouble(); len(problems) > 0 {
		s.Fatalf("requests:\n%s", indent(problems))
	}
	events := s.events()
	running := session.TurnID("")
	for i, ev := range events {
		if ev.Seq != int64(i+1) {
			s.Fatalf("event %d of the log has the number %d", i+1, ev.Seq)
		}
		switch {
		case ev.Type == session.EventTurnStarted && running != "":
			s.Fatalf("event %d: turn %s starts while %s runs", ev.Seq, ev.TurnID, running)
		case ev.Type == session.EventTurnStarted:
			running = ev.TurnID
		case ev.Type.Terminal() && ev.TurnID == running:
			running = ""
		}
	}
	history := itemsOf(events)
	s.checkHistory(history, running)
	s.checkOrder(events)
	s.checkInputs(history)
	s.checkOutputs(history, running)
	s.checkMemory(events)
	if running == "" {
		s.checkNext(history)
	}
}

// events is the whole log.
func (s *sequence) events() []session.Event {
	s.Helper()
	var all []session.Event
	for {
		page, err := s.life.store.Events(s.ctx, s.id, int64(len(all)), math.MaxInt64, 500)
		if err != nil {
			s.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

func itemsOf(events []session.Event) []session.Item {
	var all []session.Item
	for _, ev := range events {
		if ev.Item != nil {
			all = append(all, *ev.Item)
		}
	}
	slices.SortFunc(all, func(a, b session.Item) int { return int(a.N - b.N) })
	return all
}

// checkHistory holds that each call has one result, in order and with no other item
// between, but for the calls of the turn that runs; that nothing is longer than the
// largest limit; and that the facts of a cut add up.
func (s *sequence) checkHistory(items []session.Item, running session.TurnID) {
	s.Helper()
	var open []session.Item
	for i, item := range items {
		r := item.ToolResult
		switch {
		case i > 0 && items[i-1].N == item.N:
			s.Fatalf("two items have the number %d", item.N)
		case item.ToolCall != nil:
			open = append(open, item)
			continue
		case r == nil:
			continue
		}
		at := slices.IndexFunc(open, func(call session.Item) bool { return call.N == r.CallN })
		if at < 0 || at > 0 && running == "" {
			s.Fatalf("item %d answers call %d, but call %d is next of %d", item.N, r.CallN, first(open), len(open))
		}
		open = slices.Delete(open, at, at+1)
		if r.Content != nil && len(*r.Content) > 16384 || r.Summary == "" || len(r.Summary) > 4096 {
			s.Fatalf("item %d has a summary of %d bytes and a content of %d", item.N, len(r.Summary), len(*r.Content))
		}
		if c := r.Truncated; c != nil && (c.KeptBytes+c.DroppedBytes != c.OriginalBytes || len(*r.Content) > c.Limit) {
			s.Fatalf("item %d: %+v, content of %d bytes", item.N, *c, len(*r.Content))
		}
	}
	for _, call := range open {
		if call.TurnID != running {
			s.Fatalf("call %d of turn %s, which has ended, has no result", call.N, call.TurnID)
		}
	}
}

func first(items []session.Item) int64 {
	if len(items) == 0 {
		return 0
	}
	return items[0].N
}

// checkNext holds that a request with a new input fits.
func (s *sequence) checkNext(history []session.Item) {
	s.Helper()
	n := int64(len(history) + 1)
	if len(history) > 0 {
		n = history[len(history)-1].N + 1
	}
	next := session.Item{N: n, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "next"}}
	h := worker.History{Items: append(slices.Clip(history), next)}
	if p := s.life.engine.Project(&h); !p.Fits {
		s.Fatalf("the next request does not fit: %+v", p)
	}
}
