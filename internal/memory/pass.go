package memory

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

const (
	// passTimeout bounds one pass, however alive its model's streams seem.
	passTimeout = 15 * time.Minute
	// commitTimeout bounds the commit of what a pass has come to.
	commitTimeout = 10 * time.Second
	// anyWindow is a window, in tokens, that every chunk fits: no chunk is refused
	// here for its size, also not by a budget, and nothing of it is left out. Only the
	// model can say that it is too long, and then the next one is shorter.
	anyWindow = 1 << 40
)

//go:embed extract.md
var extractInstructions string

// errSubmitted ends the engine's work: the records are there.
var errSubmitted = &worker.End{State: session.TurnCancelled, Why: session.TurnError{Code: session.CodeCancelled, Detail: "the records are there"}}

// answer is what a pass got out of the model.
type answer struct {
	outcome session.Outcome
	records []session.Record
	steps   int
	usage   session.Usage
	detail  string // of a failure, for the log
}

// ask has the model read a chunk. It runs the engine of turns, with a log in memory,
// one tool, and no second attempts: the next pass is the retry.
func (x *Extractor) ask(ctx context.Context, p *Project, id session.ID, c *chunk) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, passTimeout, errPassTimeout)
	defer cancel()
	work, end := context.WithCancelCause(ctx)
	defer end(nil)
	submit := &submission{from: c.from, to: c.to, mask: x.mask, done: func() { end(errSubmitted) }}
	engine, err := p.engine(submit)
	if err != nil {
		return answer{}, err
	}
	turn := session.Turn{ID: session.NewTurnID(), SessionID: id, State: session.TurnRunning, StartedAt: session.Now()}
	history := &worker.History{Items: []session.Item{{
		N: 1, SessionID: id, TurnID: turn.ID, At: turn.StartedAt, Kind: session.KindUserMessage,
		UserMessage: &session.UserMessage{Text: quote(c)},
	}}}
	turn, err = engine.Run(work, context.Background(), discard{}, history, turn, false)
	if err != nil {
		return answer{}, err // not with a log in memory
	}
	return x.judge(ctx, submit, turn, history), nil
}

// judge says what a pass came to, once its engine has ended.
func (x *Extractor) judge(ctx context.Context, submit *submission, turn session.Turn, history *worker.History) answer {
	v, records, refusal := submit.result()
	if v == verdictNone && malformed(history) {
		v, refusal = verdictInvalid, "the arguments are no JSON object"
	}
	a := answer{records: records, steps: turn.Steps, usage: turn.Usage, detail: x.mask(refusal)}
	var code session.ErrorCode
	if turn.Error != nil {
		code, a.detail = turn.Error.Code, x.mask(turn.Error.Detail)
	}
	a.outcome = outcomeOf(v, len(records), ended(ctx), code)
	if a.outcome == session.OutcomeTurnLimit {
		a.detail = "memory.extract_worker_max_turns" // the engine names the key of turns
	}
	if a.detail == "" {
		a.detail = unsaid(a.outcome)
	}
	return a
}

// unsaid is why a pass failed of which the engine knows no error.
func unsaid(o session.Outcome) string {
	switch o {
	case session.OutcomeNoSubmission:
		return "the model ended its answer without a call of " + SubmitTool
	case session.OutcomeToolError:
		return SubmitTool + " did not come to its end"
	}
	return ""
}

// malformed reports whether the last submission was no JSON at all, so that the tool
// did not run.
func malformed(history *worker.History) bool {
	for i := len(history.Items) - 1; i >= 0; i-- {
		if r := history.Items[i].ToolResult; r != nil {
			return r.Tool == SubmitTool && r.Failed && r.Summary == SubmitTool+": bad arguments"
		}
	}
	return false
}

// engine makes the engine of one pass.
func (p *Project) engine(submit tool.Tool) (*worker.Engine, error) {
	c := p.Engine
	c.Tools = tool.NewSet(submit)
	c.Instructions = strings.TrimSpace(extractInstructions)
	if p.Settings.Language != "" {
		c.Instructions += "\n\nWrite records in this language: " + p.Settings.Language + "."
	} else {
		c.Instructions += "\n\nWrite records in the language in which the person writes."
	}
	c.MaxSteps, c.MaxAttempts = p.Settings.ExtractWorkerMaxTurns, 1
	c.Window.ContextTokens, c.Budget = anyWindow, c.Budget.AnySize()
	c.MaxCallsPerStep = 1 // which of several submissions counts must not depend on chance
	return worker.New(p.Limits, c)
}

// quote puts a chunk between marks that nobody can have guessed when its texts were
// written.
func quote(c *chunk) string {
	var key [8]byte
	_, _ = rand.Read(key[:]) // it never fails
	mark := "history-" + hex.EncodeToString(key[:])
	return fmt.Sprintf("Items %d to %d of the history follow, quoted between two lines that say %s.\n\n%s\n%s%s\n\nSubmit what is worth remembering.",
		c.from, c.to, mark, mark, c.text.String(), mark)
}

// discard is the log of an engine whose history nobody keeps.
type discard struct{}

func (discard) Commit(context.Context, []session.Event) error { return nil }
func (discard) Emit(session.Event)                            {}

// commit stores what passes of a session came to, with a notice for each.
func (x *Extractor) commit(ctx context.Context, id session.ID, e *session.Extracted, stored func()) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	b := &session.Batch{Extracted: e}
	for i := range e.Passes {
		b.Events = append(b.Events, notice(&e.Passes[i], e.MadeLetter))
	}
	err := x.Host.Commit(ctx, id, b, stored)
	if err != nil && !lost(err) && !errors.Is(err, session.ErrStorage) {
		err = fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return err
}

// lost reports whether a session is no longer ours to read.
func lost(err error) bool {
	return errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrStale)
}

func notice(p *session.Pass, made *session.DeadLetter) session.Event {
	text := noticeText(p.Outcome)
	if made != nil && p.DeadLetterID == made.ID {
		text = letterText
	}
	return session.Event{Type: session.EventMemoryExtract, SessionID: p.SessionID, At: session.Now(), Extract: &session.Extract{
		Outcome: string(p.Outcome), FromN: p.FromN, ToN: p.ToN, Items: p.Items, Records: p.Records, Text: text,
	}}
}
