package worker

import (
	"fmt"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// fitted is a request that fits, or the smallest that there is.
type fitted struct {
	llm.Request
	measure
	tokens int64 // projected
	fits   bool
}

// Projection is how large the next request of a session will be.
type Projection struct {
	HistoryBytes int64 // with nothing left out, instructions and tools included
	Bytes        int64 // as it will be sent
	Tokens       int64 // of Bytes, projected
	LimitTokens  int64
	Fits         bool
}

// Project looks at the next request of a session; a summary that would come before
// it is not made, but guessed. It changes nothing.
func (e *Engine) Project(h *History) Projection {
	f, _ := e.fit(h, true)
	return Projection{
		HistoryBytes: requestBytes(e.request(h.Items, h.Recall)),
		Bytes:        f.bytes, Tokens: f.tokens, LimitTokens: e.inputTokens(), Fits: f.fits,
	}
}

// CheckInput refuses an input that no request of this engine could ever hold, with
// *session.InputTooLarge.
func (e *Engine) CheckInput(input string) error {
	fixed, limit := fixedBytes(e.Instructions, e.Tools.Specs()), e.inputTokens()
	most := max(0, int64(float64(limit)/surelyTokensPerByte)-fixed-itemBytes)
	if int64(len(input)) <= most {
		return nil
	}
	return &session.InputTooLarge{InputBytes: int64(len(input)), LimitBytes: most, LimitTokens: limit}
}

// inputTokens is the largest request that the model and the budget take.
func (e *Engine) inputTokens() int64 { return min(e.Window.InputTokens(), e.Budget.MaxTokens()) }

// fit makes the next request out of a history, and leaves out of it what must be
// left out so that it fits, in this order: the contents of old results, the
// arguments of old calls, old messages, and of the newest results all but an even
// share. It changes nothing of the history.
//
// Where old messages must go, it returns the number of the last item that a summary
// should stand for, and no request; unless the fit is final: then a skeleton, made
// for this request alone, takes their place. It depends on nothing but its
// arguments, and moves what it leaves out in hops, so that the next request begins
// like this one.
func (e *Engine) fit(h *History, final bool) (f fitted, compactTo int64) {
	items, from := visible(h.Items)
	f = fitted{Request: e.request(items, h.Recall), fits: true}
	f.measure = measure{bytes: requestBytes(f.Request), whole: true, from: from}
	limit := e.inputTokens()
	if h.Gauge.fits(f.measure, limit) {
		f.tokens = h.Gauge.tokens(f.measure)
		return f, 0
	}
	s := newShrinker(f.Items, f.bytes, h.Gauge.room(limit))
	s.clear(clearedResult)
	s.clear(clearedCall)
	if s.over() && !final {
		if to := s.oldTo(e.Compaction.summaryBytes(s.room)); to > 0 {
			return fitted{}, to
		}
	}
	s.skeleton(e.Compaction.summaryBytes(s.room))
	s.shareResults()
	s.shareRest()
	f.Items, f.fits = s.items, !s.over()
	f.measure = measure{bytes: s.bytes}
	f.tokens = h.Gauge.tokens(f.measure)
	return f, 0
}

// visible is the history as requests show it: the newest summary of a range stands
// in that range's place, but the newest message of the user stays whatever happens.
// It also returns the number of that summary; 0 for none.
func visible(history []session.Item) (items []session.Item, from int64) {
	summary, input := -1, -1
	for i := range history {
		switch s := history[i].Summary; {
		case history[i].Kind == session.KindUserMessage:
			input = i
		case s != nil && s.ToN > 0 && (summary < 0 || s.ToN >= history[summary].Summary.ToN):
			summary = i
		}
	}
	if summary < 0 {
		return history, 0
	}
	active := history[summary].Summary
	shown := false
	for i := range history {
		item := history[i]
		inRange := item.N >= active.FromN && item.N <= active.ToN
		older := item.Summary != nil && item.Summary.ToN > 0 && item.Summary.FromN >= active.FromN
		if (inRange || item.N > active.ToN) && !shown {
			items = append(items, history[summary])
			shown = true
		}
		if !older && (!inRange || i == input) {
			items = append(items, item)
		}
	}
	return items, history[summary].N
}

// checkNewest ends a turn whose input no request can hold, for example because the
// model is another than when it was accepted.
func (e *Engine) checkNewest(h *History) error {
	if err := e.CheckInput(newestInput(h)); err != nil {
		return &turnError{session.CodeInputTooLarge, err.Error()}
	}
	return nil
}

func newestInput(h *History) string {
	for i := len(h.Items) - 1; i >= 0; i-- {
		if m := h.Items[i].UserMessage; m != nil {
			return m.Text
		}
	}
	return ""
}

// tooLarge ends a turn whose request is refused although nothing more can be left
// out of it.
func (e *Engine) tooLarge(h *History, refused error) error {
	input := newestInput(h)
	alone := measure{bytes: fixedBytes(e.system(h.Recall), e.Tools.Specs()) + int64(itemBytes+len(input))}
	if h.Gauge.tokens(alone) <= e.inputTokens() {
		return refused
	}
	return &turnError{session.CodeInputTooLarge, fmt.Sprintf("the input of %d bytes is too large for the model, also without the history: %v", len(input), refused)}
}
