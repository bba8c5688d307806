package memory

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// maxFoldSteps bounds the model requests of one pass of consolidation.
const maxFoldSteps = 40

//go:embed consolidate.md
var consolidateInstructions string

// folder folds the records of one project. What it remembers of failures is how the
// next pass is narrower: nothing that one record holds can keep the others waiting
// for ever.
type folder struct {
	consolidator *Consolidator
	name         string
	project      *Project

	atMost int              // records in the next pass; 0: what fits
	after  session.RecordID // the next pass begins after this one
}

// foldAll consolidates what is open now, pass by pass, when it is enough to begin
// with. Progress is called after each pass that was stored.
func (f *folder) foldAll(ctx context.Context, progress func()) error {
	count, bytes, err := f.consolidator.Store.OpenRecordsTotal(ctx, f.name)
	if err != nil {
		return err
	}
	settings := &f.project.Settings
	if count < int64(settings.ConsolidationThresholdRecords) && bytes < int64(settings.ConsolidationThresholdBytes) {
		return nil
	}
	for left := count; left > 0; {
		set, err := f.next(ctx)
		if err != nil {
			return err
		}
		if len(set) == 0 {
			return nil
		}
		if err := f.fold(ctx, set); err != nil {
			return err
		}
		progress()
		left -= int64(len(set))
	}
	return nil
}

// next is the fixed set of the next pass: the oldest open records, as many as fit.
func (f *folder) next(ctx context.Context) ([]session.Record, error) {
	limit := maxFolded
	if f.atMost > 0 {
		limit = f.atMost
	}
	records, err := f.consolidator.Store.OpenRecords(ctx, f.name, f.after, limit)
	if err == nil && len(records) == 0 && f.after != "" {
		// What failed alone is tried again when nothing comes after it.
		records, err = f.consolidator.Store.OpenRecords(ctx, f.name, "", limit)
	}
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i, r := range records {
		if bytes += len(r.Claim) + len(r.Why); i > 0 && bytes > maxFoldedBytes {
			return records[:i], nil
		}
	}
	return records, nil
}

// fold runs one pass and counts it.
func (f *folder) fold(ctx context.Context, set []session.Record) error {
	k := f.consolidator
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done, outcome, err := f.pass(ctx, set)
	if outcome == foldConsolidated {
		outcome, err = f.store(ctx, done)
	}
	k.metrics.count(outcome, done)
	f.narrow(outcome, set)
	if err != nil {
		return fmt.Errorf("%s: %w", outcome, err)
	}
	if outcome != foldConsolidated {
		return errors.New(string(outcome))
	}
	k.Log.Info().Str("project", f.name).Int("records", len(done.Closed)).Int("documents", len(done.Documents)).Msg("records consolidated")
	return nil
}

// narrow makes the next pass smaller after a failure that may be due to its records,
// and as large as can be after a success. A record that fails alone is passed over.
func (f *folder) narrow(outcome foldOutcome, set []session.Record) {
	switch outcome {
	case foldConsolidated:
		f.atMost = 0
	case foldContextTooLong, foldToolError, foldInvalid, foldNoSubmission, foldTurnLimit:
		if len(set) > 1 {
			f.atMost = len(set) / 2
			return
		}
		f.atMost, f.after = 0, set[0].ID
	}
}

// store commits what a pass has come to.
func (f *folder) store(ctx context.Context, done *session.Consolidation) (foldOutcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err := f.consolidator.Store.Consolidate(ctx, *done)
	switch {
	case err == nil:
		return foldConsolidated, nil
	case errors.Is(err, session.ErrConflict):
		return foldConflict, err
	}
	return foldStorageError, err
}

// pass has the model fold a set of records into the documents. Nothing is stored.
func (f *folder) pass(ctx context.Context, set []session.Record) (*session.Consolidation, foldOutcome, error) {
	documents, err := f.documents(ctx)
	if err != nil {
		return nil, foldStorageError, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, passTimeout, errPassTimeout)
	defer cancel()
	work, end := context.WithCancelCause(ctx)
	defer end(nil)
	d := newDesk(f.name, documents, set, f.consolidator.mask, func() { end(errSubmitted) })
	calls := newOrder()
	engine, err := f.engine(d, calls)
	if err != nil {
		return nil, foldToolError, err
	}
	turn := session.Turn{ID: session.NewTurnID(), SessionID: session.NewID(), State: session.TurnRunning, StartedAt: session.Now()}
	history := &worker.History{Items: []session.Item{{
		N: 1, SessionID: turn.SessionID, TurnID: turn.ID, At: turn.StartedAt, Kind: session.KindUserMessage,
		UserMessage: &session.UserMessage{Text: f.request(documents, set)},
	}}}
	turn, err = engine.Run(work, context.Background(), calls, history, turn, false)
	if err != nil {
		return nil, foldToolError, err // not with a log in memory
	}
	done, v := d.outcome()
	outcome := foldOutcomeOf(v, ended(ctx), turn.Error)
	if turn.Error != nil && outcome != foldConsolidated {
		err = errors.New(f.consolidator.mask(turn.Error.Detail))
	}
	return done, outcome, err
}

// documents reads those that the project has.
func (f *folder) documents(ctx context.Context) ([]session.Document, error) {
	var all []session.Document
	for _, name := range session.DocumentNames() {
		d, err := f.consolidator.Store.Document(ctx, f.name, name, 0)
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// engine makes the engine of one pass.
func (f *folder) engine(d *desk, calls *order) (*worker.Engine, error) {
	c := f.project.Consolidation
	c.Tools = d.tools()
	c.Instructions = strings.TrimSpace(fmt.Sprintf(consolidateInstructions, f.project.Settings.RecallMaxBytes, session.MaxDocumentBytes))
	if language := f.project.Settings.Language; language != "" {
		c.Instructions += "\n\nWrite documents in this language: " + language + "."
	} else {
		c.Instructions += "\n\nWrite documents in the language of their records."
	}
	c.MaxSteps, c.MaxAttempts = maxFoldSteps, 1
	c.Before = append(c.Before[:len(c.Before):len(c.Before)], calls.before)
	return worker.New(f.project.Limits, c)
}

// foldedRecord is a record as the model is shown it, on a line of its own.
type foldedRecord struct {
	N          int64              `json:"n"`
	Kind       session.RecordKind `json:"kind"`
	Claim      string             `json:"claim"`
	Why        string             `json:"why"`
	At         session.Time       `json:"at"`
	StaleAfter session.Time       `json:"stale_after,omitzero"`
}

// request tells the model which documents there are, and quotes the records between
// marks that nobody can have guessed when their texts were written.
func (f *folder) request(documents []session.Document, set []session.Record) string {
	var key [8]byte
	_, _ = rand.Read(key[:]) // it never fails
	mark := "records-" + hex.EncodeToString(key[:])
	var b strings.Builder
	fmt.Fprintf(&b, "It is %s. ", session.Now())
	if len(documents) == 0 {
		b.WriteString("No document exists yet.")
	}
	for i, d := range documents {
		if i == 0 {
			b.WriteString("The documents that exist:\n")
		}
		fmt.Fprintf(&b, "\n- %s, %d bytes", d.Name, len(d.Text))
	}
	fmt.Fprintf(&b, "\n\n%d records follow, the oldest first, quoted between two lines that say %s.\n\n%s\n", len(set), mark, mark)
	for _, r := range set {
		line, _ := session.EncodeJSON(foldedRecord{r.N, r.Kind, f.consolidator.mask(r.Claim), f.consolidator.mask(r.Why), r.CreatedAt, r.StaleAfter}) // texts and numbers always encode
		b.Write(append(line, '\n'))
	}
	b.WriteString(mark + "\n\nFold them into the documents and finish.")
	return b.String()
}
