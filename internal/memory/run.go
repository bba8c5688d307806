package memory

import (
	"slices"
	"time"

	"loadline/internal/session"
)

// extract runs one pass over what comes after a session's pointer.
func (x *Extractor) extract(j *job, p *Project, b session.Backlog) round {
	r := x.newReading(j, p, j.trigger, b.Pointer)
	if over, how := r.read(boundsOf(p.Settings.ExtractChunkBytes, b.Retry)); over {
		return how
	}
	if r.chunk == nil {
		return r.store(&session.Extracted{})
	}
	e := &session.Extracted{}
	retry := r.chunk.after(b.Retry, r.answer.outcome)
	e.Retry = &retry
	moved := r.answer.outcome.Succeeded()
	if !moved && r.chunk.counted(r.answer.outcome) && retry.Failures >= p.Settings.DeadLetterAfter {
		if undo, ok := x.gate.take(j.id); ok {
			e.MadeLetter = r.newLetter(retry.Failures)
			r.undo, moved, retry = undo, true, session.Retrying{More: r.chunk.more}
		}
	}
	if moved {
		e.From, e.To, e.Bytes = r.chunk.from, r.chunk.to, r.chunk.noteBytes
	}
	how := r.store(e)
	if how == roundAgain && moved && !r.chunk.more {
		j.trigger = ""
	}
	return how
}

// redrive reads what a dead letter has set aside, in as many passes as it takes. It
// ends with the first that fails on its own account.
func (x *Extractor) redrive(j *job, id session.DeadLetterID) round {
	letter, err := x.Store.DeadLetter(x.ctx, id)
	p, on := x.Projects[letter.Project]
	if err != nil || !on {
		return roundAgain // it is gone, or can be asked for again
	}
	if !x.enter(j) {
		return roundOver
	}
	defer x.exit()
	var retry session.Retrying
	for after := letter.FromN - 1; after < letter.ToN; {
		r := x.newReading(j, &p, session.TriggerRedrive, after)
		r.pass.DeadLetterID = id
		b := boundsOf(p.Settings.ExtractChunkBytes, retry)
		b.lastN = letter.ToN
		if over, how := r.read(b); over {
			return redriven(how)
		}
		e := &session.Extracted{}
		if r.answer.outcome.Succeeded() {
			e.RedrivenLetter, e.RedrivenTo = id, r.chunk.to
		}
		if how := r.store(e); how != roundAgain {
			return redriven(how)
		}
		if r.answer.outcome.Succeeded() {
			after = r.chunk.to
		}
		retry = r.chunk.after(retry, r.answer.outcome)
	}
	return roundAgain
}

// redriven is how a job goes on after a redrive that has failed: as if there had been
// none. Who asked for it can ask again.
func redriven(how round) round {
	if how == roundRetry || how == roundIdle {
		return roundAgain
	}
	return how
}

// reading is one pass on its way.
type reading struct {
	x       *Extractor
	job     *job
	project *Project
	pass    session.Pass
	chunk   *chunk // nil when it could not be read
	answer  answer
	undo    func() // of the claim to make a dead letter; nil for none
	started time.Time
}

func (x *Extractor) newReading(j *job, p *Project, t session.Trigger, after int64) *reading {
	return &reading{x: x, job: j, project: p, started: time.Now(), pass: session.Pass{
		ID: session.NewPassID(), SessionID: j.id, Trigger: t, FromN: after + 1, ToN: after, StartedAt: session.Now(),
	}}
}

// read takes the next chunk and has the model read it. When that is over before a
// pass has come of it, how says how the job goes on.
func (r *reading) read(b bounds) (over bool, how round) {
	c, err := readChunk(r.x.ctx, r.x.Store, r.job.id, r.pass.FromN-1, b, r.x.mask)
	switch {
	case r.x.ctx.Err() != nil, lost(err):
		return true, roundOver
	case err != nil:
		r.answer = answer{outcome: session.OutcomeStorageError, detail: err.Error()}
		return false, 0
	case c.items() == 0:
		r.job.trigger = ""
		return true, roundIdle
	}
	r.chunk = c
	r.pass.ToN, r.pass.Items, r.pass.ChunkBytes = c.to, c.items(), int64(c.text.Len())
	if c.text.Len() == 0 {
		r.answer = answer{outcome: session.OutcomeEmpty} // reasoning alone: there is nothing to ask
		return false, 0
	}
	if r.answer, err = r.x.ask(r.x.ctx, r.project, r.job.id, c); err != nil {
		r.answer = answer{outcome: session.OutcomeToolError, detail: err.Error()}
	}
	return false, 0
}

func (r *reading) newLetter(failures int) *session.DeadLetter {
	letter := &session.DeadLetter{
		ID: session.NewDeadLetterID(), Project: r.project.Name, SessionID: r.job.id, FromN: r.chunk.from, ToN: r.chunk.to,
		Outcome: r.answer.outcome, Failures: failures, CreatedAt: session.Now(),
	}
	r.pass.DeadLetterID = letter.ID
	return letter
}

// store commits what the pass came to, counts it, and says how the job goes on.
func (r *reading) store(e *session.Extracted) round {
	x, j := r.x, r.job
	r.fill(e)
	pass := &e.Passes[len(e.Passes)-1]
	err := x.commit(x.ctx, j.id, e, func() { x.metrics.count(pass, e) })
	if err != nil {
		r.failed(e, err)
		x.metrics.count(pass, &session.Extracted{})
	} else {
		j.unshown = nil
	}
	r.log(pass, err)
	switch {
	case lost(err):
		return roundOver
	case err != nil:
		return roundRetry
	}
	return r.stored(e, pass)
}

// fill completes the pass and what it stages.
func (r *reading) fill(e *session.Extracted) {
	a := &r.answer
	if a.outcome.Succeeded() {
		e.Records = r.records()
	}
	r.pass.Outcome, r.pass.Records, r.pass.Steps, r.pass.Usage = a.outcome, int64(len(e.Records)), a.steps, a.usage
	r.pass.DurationMS = time.Since(r.started).Milliseconds()
	e.Passes = append(slices.Clone(r.job.unshown), r.pass)
}

// records are those of a valid submission, as they are staged.
func (r *reading) records() []session.Record {
	b, now := r.answer.records, session.Now()
	for i := range b {
		b[i].ID = session.NewRecordID(r.job.id, r.chunk.from, r.chunk.to, i)
		b[i].Project, b[i].SessionID, b[i].CreatedAt = r.project.Name, r.job.id, now
	}
	return b
}

// failed turns a pass that could not be stored into what it is. Its notice goes with
// the next one.
func (r *reading) failed(e *session.Extracted, err error) {
	if r.undo != nil {
		r.undo()
	}
	last := &e.Passes[len(e.Passes)-1]
	if last.Outcome.Succeeded() {
		last.Outcome, last.Records = session.OutcomeStorageError, 0
	}
	if e.MadeLetter != nil {
		last.DeadLetterID = ""
	}
	r.answer.detail = err.Error()
	r.job.keep(e.Passes)
}

// stored takes note of what is on disk now.
func (r *reading) stored(e *session.Extracted, pass *session.Pass) round {
	x := r.x
	if e.To != 0 || e.RedrivenTo != 0 {
		x.gate.moved(r.job.id, pass.Outcome.Succeeded())
		r.job.backoff.Reset()
		if pass.Records > 0 && x.Staged != nil {
			x.Staged(r.project.Name)
		}
		return roundAgain
	}
	switch {
	case pass.Outcome == session.OutcomeCancelled:
		return roundOver
	case pass.Outcome == session.OutcomeContextTooLong && !r.chunk.shortest:
		return roundAgain // the next one is shorter
	}
	return roundRetry
}

func (r *reading) log(p *session.Pass, err error) {
	entry := r.x.Log.Info()
	if !p.Outcome.Succeeded() {
		entry = r.x.Log.Warn()
	}
	if reason := r.x.mask(r.answer.detail); reason != "" {
		entry = entry.Str("reason", reason)
	}
	if p.DeadLetterID != "" {
		entry = entry.Str("dead_letter", string(p.DeadLetterID))
	}
	entry.Err(err).Str("session", string(p.SessionID)).Str("trigger", string(p.Trigger)).Str("outcome", string(p.Outcome)).
		Int64("from_n", p.FromN).Int64("to_n", p.ToN).Int64("records", p.Records).Int64("duration_ms", p.DurationMS).
		Msg("memory pass ended")
}
