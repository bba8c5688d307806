package worker

import (
	"context"
	"fmt"

	"loadline/internal/session"
)

// maxRestarts is how often a turn is taken up again without getting on. A turn that
// kills the server each time must not do so for ever.
const maxRestarts = 5

// resume goes on with a turn that an earlier process left: the calls without a
// result get one that says so, and what was streamed of the next answer is void.
func (r *run) resume(ctx context.Context) error {
	s, err := r.openStep()
	if err != nil {
		return err
	}
	var events []session.Event
	if s != nil {
		events = r.closeAfterCrash(s)
	}
	events = append(events, r.retryEvent(session.EventStepRestarted, 1, 0, "the server was restarted"))
	if err := r.commit(ctx, events...); err != nil || !r.hopeless() {
		return err
	}
	return &End{session.TurnInterrupted, session.TurnError{Code: session.CodeServerKilled,
		Detail: fmt.Sprintf("the server was killed %d times while this turn ran and did not get on, so it is not resumed again", r.turn.Restarts)}}
}

// hopeless reports whether the turn has had all its restarts.
func (r *run) hopeless() bool { return r.turn.Restarts > maxRestarts }

// openStep takes the last answer's calls and what it has of their results off the
// history, as a step. It is nil when this turn has no answer with calls yet.
func (r *run) openStep() (*step, error) {
	items := r.history.Items
	end := len(items)
	if end > 0 && items[end-1].Kind == session.KindUserMessage {
		return nil, nil // inputs come when nothing is open
	}
	for end > 0 && !ofAnswer(items[end-1].Kind) {
		end--
	}
	start := end
	for start > 0 && ofAnswer(items[start-1].Kind) {
		start--
	}
	calls := callsOf(items[start:end])
	if len(calls) == 0 || calls[0].TurnID != r.turn.ID {
		return nil, nil
	}
	s := r.engine.newStep(calls, items[end-1].N+1)
	for _, item := range items[end:] {
		at := item.N - s.firstN
		switch {
		case item.Kind == session.KindToolResult && at >= 0 && at < int64(len(calls)):
			s.results[at] = &item
		case item.Kind == session.KindSummary:
			s.tail = append(s.tail, item)
		default:
			return nil, fmt.Errorf("item %d stands where results of its answer are reserved", item.N)
		}
	}
	r.history.Items = items[:end:end]
	return s, nil
}

func callsOf(answer []session.Item) []session.Item {
	var calls []session.Item
	for _, item := range answer {
		if item.Kind == session.KindToolCall {
			calls = append(calls, item)
		}
	}
	return calls
}

// closeAfterCrash makes results for the calls that a crash left open. They are not
// run again by themselves.
func (r *run) closeAfterCrash(s *step) []session.Event {
	var events []session.Event
	for i, call := range s.calls {
		if s.results[i] == nil {
			out := openOutput(call.ToolCall, true, "The server was stopped")
			if !r.hopeless() { // else it may be an interceptor that kills
				out, _ = r.engine.after(context.Background(), r.interceptedCall(call), out)
			}
			events = append(events, r.settle(s, i, out, outcomeInterrupted))
		}
	}
	r.step = s
	r.closeStep()
	return events
}
