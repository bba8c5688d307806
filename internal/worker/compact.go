package worker

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	defaultSummaryBytes = 8192
	// leastSummaryBytes is what a summary may have however little room there is.
	leastSummaryBytes = 512
	// leastPieceBytes is what a model must be able to read in order to be asked.
	leastPieceBytes = 2048
	summaryHead     = "[Summary of the conversation up to here, made to save room.]\n\n"
)

//go:embed compact.md
var compactInstructions string

// Compaction says how old messages are summed up. With the zero value no model is
// asked: they are shortened by rule.
type Compaction struct {
	Provider     llm.Provider
	Window       llm.Window  // of its model
	Budget       *llm.Budget // of its key
	MaxCalls     int         // model requests of one compaction
	SummaryBytes int         // of a summary at most; 0: 8192
}

// summaryBytes is how long a summary may be in a request with so much room.
func (c Compaction) summaryBytes(room int64) int64 {
	most := int64(c.SummaryBytes)
	if most <= 0 {
		most = defaultSummaryBytes
	}
	return max(leastSummaryBytes, min(most, room/8))
}

// compact stores a summary that stands for the history up to number to. It fails
// only when the turn cannot go on: what no model sums up is shortened by rule.
func (r *run) compact(ctx context.Context, to int64) error {
	c := compactor{run: r, Compaction: r.engine.Compaction}
	c.maxBytes = int(c.summaryBytes(r.history.Gauge.room(r.engine.inputTokens())))
	c.take(r.history.Items, to)
	err := c.summarise(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	how := compactedByModel
	if len(c.items) > 0 {
		how = compactedByRule
		c.text = skeleton(c.text, c.items, c.maxBytes)
	}
	r.engine.Metrics.compacted(how)
	r.log.Info().Err(err).Int64("to", to).Str("how", string(how)).Int("summary_bytes", len(c.text)).Msg("old messages compacted")
	item := r.newItem(r.history.next(), session.KindSummary)
	item.Summary = &session.Summary{Text: summaryHead + c.text, FromN: 1, ToN: to}
	err = r.commit(ctx, r.itemEvent(&item))
	r.history.Items = append(r.history.Items, item) // also when the disk refused it: then it is stored with the end
	return err
}

// compactor makes one summary.
type compactor struct {
	Compaction
	run      *run
	maxBytes int            // of text
	text     string         // the summary of all before items
	items    []session.Item // that are still to be summed up
}

// take finds the items up to number to for which no summary stands yet.
func (c *compactor) take(history []session.Item, to int64) {
	shown, summary := visible(history)
	covered := int64(0)
	for _, item := range shown {
		switch s := item.Summary; {
		case summary > 0 && item.N == summary:
			c.text, covered = strings.TrimPrefix(s.Text, summaryHead), s.ToN
		case item.N > covered && item.N <= to:
			c.items = append(c.items, item)
		}
	}
}

// summarise asks the model to sum up as many items as its calls reach. Its error is
// why it stopped early, when it did.
func (c *compactor) summarise(ctx context.Context) error {
	if c.Provider == nil || c.MaxCalls < 1 {
		return nil
	}
	var last error
	shrunk := int64(1)
	for call := 1; call <= c.MaxCalls && len(c.items) > 0; call++ {
		room := int(c.pieceBytes()/shrunk) - len(c.text)
		if room < leastPieceBytes {
			return errors.Join(errors.New("the model takes too little to be asked"), last)
		}
		piece, n := render(c.items, room, c.MaxCalls-call+1)
		text, err := c.ask(ctx, piece)
		if err == nil {
			c.text, c.items = text, c.items[n:]
			continue
		}
		refused, ok := errors.AsType[*llm.Error](err)
		if !ok || refused.Class == llm.ClassFail || ctx.Err() != nil {
			return err
		}
		last = err
		if refused.Class == llm.ClassShrink {
			shrunk *= 2
		} else if call < c.MaxCalls {
			if err := pause(ctx, llm.Backoff(call, refused.RetryAfter, c.run.engine.RetryMaxWait)); err != nil {
				return err
			}
		}
	}
	return last
}

// pieceBytes is how much of a conversation one request holds, the summary of what
// came before included.
func (c *compactor) pieceBytes() int64 {
	tokens := min(c.Window.InputTokens(), c.Budget.MaxTokens())
	g := Gauge{tokensPerByte: c.run.history.Gauge.tokensPerByte}
	return g.room(tokens) - int64(len(compactInstructions)) - 4*itemBytes
}

// ask asks for one summary of the one so far and a piece.
func (c *compactor) ask(ctx context.Context, piece string) (string, error) {
	var input strings.Builder
	if c.text != "" {
		fmt.Fprintf(&input, "The summary of what came before:\n\n%s\n\n", c.text)
	}
	mark := "conversation-" + rand.Text() // that nobody can have guessed who wrote in it
	fmt.Fprintf(&input, "What follows it, quoted between two lines that say %s:\n\n%s\n%s%s\n\nSummarise.", mark, mark, piece, mark)
	item := c.run.newItem(1, session.KindUserMessage)
	item.UserMessage = &session.UserMessage{Text: input.String()}
	request := llm.Request{System: fmt.Sprintf(strings.TrimSpace(compactInstructions), c.maxBytes), Items: []session.Item{item}}
	g := Gauge{tokensPerByte: c.run.history.Gauge.tokensPerByte}
	claim, err := c.run.takeTurn(ctx, c.Budget, g.tokensOf(requestBytes(request)))
	if err != nil {
		return "", err
	}
	answer, err := c.Provider.Ask(ctx, request, func(llm.Delta) {})
	claim.Settle(answer.Usage.InputTokens, err)
	if err != nil {
		return "", err
	}
	c.run.engine.Metrics.used(c.Provider.Name(), answer.Usage)
	return c.summaryOf(answer)
}

func (c *compactor) summaryOf(answer llm.Answer) (string, error) {
	var texts []string
	for _, b := range answer.Blocks {
		if b.Kind == session.KindAssistantMessage && !blank(b.Text) {
			texts = append(texts, strings.TrimSpace(session.Clean(b.Text)))
		}
	}
	if len(texts) == 0 || answer.Stop == llm.StopRefusal {
		return "", errors.New("the model summed up nothing")
	}
	return ends(strings.Join(texts, "\n\n"), c.maxBytes), nil
}
