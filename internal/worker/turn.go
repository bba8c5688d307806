package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// run is one turn on its way.
type run struct {
	engine  *Engine
	sink    Log
	log     zerolog.Logger
	history *History
	turn    session.Turn

	live       *answer         // the answer that arrives now; nil between answers
	sent       fitted          // the request that was asked last
	attempt    int             // of the request that is asked now; the first is 1
	step       *step           // the calls that run now; nil between them
	unstoredMu sync.Mutex      // guards unstored
	unstored   []session.Event // whose commit failed; they go with the end

	abandon context.Context // ends when nobody waits any more for the disk to recover
}

// Run takes a started turn to its end and returns its final form. The history holds
// everything stored in the session, the turn's user message included; Run appends
// what it stores. Resumed says that an earlier process ran the turn before: the
// results of its open calls are written first, and none of them runs again.
//
// The turn ends when ctx does; the cause is an *End, which says how. Run returns an
// error only when the session is lost to it: session.ErrStale or ErrNotFound; or
// when abandon ended while storage still refused the end.
func (e *Engine) Run(ctx, abandon context.Context, sink Log, history *History, turn session.Turn, resumed bool) (session.Turn, error) {
	r := &run{engine: e, sink: sink, history: history, turn: turn, abandon: abandon,
		log: e.Log.With().Str("session", string(turn.SessionID)).Str("turn", string(turn.ID)).Logger()}
	err := r.contain(func() error {
		if resumed {
			if err := r.resume(ctx); err != nil {
				return err
			}
		}
		return r.loop(ctx)
	})
	if _, unstored := errors.AsType[*unstoredEnd](err); err == nil || unstored {
		return r.turn, err
	}
	return r.end(ctx, err)
}

// contain turns a panic of the engine itself into an error of the turn.
func (r *run) contain(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("panic in a turn")
			err = errors.New("internal error; the server's log has the details")
		}
	}()
	return work()
}

// loop runs steps until the model asks for no tool. It returns nil when the turn's
// end is stored.
func (r *run) loop(ctx context.Context) error {
	for r.turn.Steps < r.engine.MaxSteps {
		asking, err := r.nextStep(ctx)
		if err != nil {
			return err
		}
		whole, err := r.ask(asking)
		if err != nil {
			return err
		}
		items := r.live.items(whole)
		calls := callsOf(items)
		if len(calls) == 0 {
			return r.complete(ctx, items, whole.Usage)
		}
		if err := r.takeStep(ctx, items, calls, whole); err != nil {
			return err
		}
	}
	return &turnError{session.CodeStepLimit, fmt.Sprintf("the turn used all its %d steps (worker.max_steps); the next turn can go on from here", r.engine.MaxSteps)}
}

// complete stores the last answer together with the turn's end.
func (r *run) complete(ctx context.Context, items []session.Item, usage session.Usage) error {
	ended := r.turn
	ended.Steps++
	ended.Usage = ended.Usage.Plus(usage)
	ended.State, ended.EndedAt = session.TurnCompleted, session.Now()
	r.stored(items)
	return r.store(ctx, append(r.answerEvents(items, usage), r.turnEvent(&ended)), ended)
}

// takeStep stores an answer with calls, runs them, and stores their results.
func (r *run) takeStep(ctx context.Context, items, calls []session.Item, whole llm.Answer) error {
	r.engine.declare(calls, whole.Stop)
	r.step = r.engine.newStep(calls, items[len(items)-1].N+1)
	r.step.tail = r.droppedCalls()
	err := r.commit(ctx, r.answerEvents(slices.Concat(items, r.step.tail), whole.Usage)...)
	r.stored(items)
	r.turn.Steps++
	r.turn.Usage = r.turn.Usage.Plus(whole.Usage)
	if err == nil {
		err = r.doCalls(ctx, whole.Stop)
	}
	if err == nil {
		r.closeStep()
	}
	return err
}

// closeStep takes over the results of the step, all of which are there.
func (r *run) closeStep() {
	for _, result := range r.step.results {
		r.history.Items = append(r.history.Items, *result)
	}
	r.history.Items = append(r.history.Items, r.step.tail...)
	r.step = nil
}

func (r *run) doCalls(ctx context.Context, stop llm.Stop) error {
	switch stop {
	case llm.StopLength:
		return r.answerCalls(ctx, r.step, "not run", "The answer was cut by the output limit, so none of its calls ran: this one may be incomplete. Issue it again, in a shorter answer.", outcomeInterrupted)
	case llm.StopRefusal:
		return r.answerCalls(ctx, r.step, "not run", "The answer was stopped by a content filter, so none of its calls ran.", outcomeInterrupted)
	}
	return r.runCalls(ctx, r.step)
}

// droppedCalls is the line that tells the model that it asked for too much at once.
// Its number comes after those of the results.
func (r *run) droppedCalls() []session.Item {
	dropped := r.live.calls - r.engine.MaxCallsPerStep
	if dropped <= 0 {
		return nil
	}
	item := r.newItem(r.step.firstN+int64(len(r.step.calls)), session.KindSummary)
	item.Summary = &session.Summary{Text: fmt.Sprintf("%d more tool calls of this answer were dropped and not run: one answer may hold at most %d.", dropped, r.engine.MaxCallsPerStep)}
	r.log.Warn().Int("dropped_calls", dropped).Msg("too many tool calls in one answer")
	return []session.Item{item}
}

// stored takes over the items of an answer that is complete.
func (r *run) stored(items []session.Item) {
	r.history.Items = append(r.history.Items, items...)
	r.live = nil
}
