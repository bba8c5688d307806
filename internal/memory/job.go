package memory

import (
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"loadline/internal/session"
)

const (
	firstBackoff = time.Second
	maxBackoff   = 10 * time.Minute
	// maxUnshown bounds the passes whose notices the disk refused.
	maxUnshown = 32
)

// job is the work on one session, in a goroutine of its own: one pass at a time.
type job struct {
	id   session.ID
	wake chan struct{} // holds a token when somebody asks for work now

	// The extractor's mu guards these.
	again   bool // something is wished since the last look
	asked   bool // a pass, however small the backlog is
	letters []session.DeadLetterID
	busy    bool // a pass runs, or waits for its time

	// The rest is the goroutine's own.
	trigger session.Trigger // of the backlog that is being read; "" for none
	unshown []session.Pass  // to be stored with the next one
	backoff backoff.ExponentialBackOff
}

func (j *job) addLetter(id session.DeadLetterID) {
	if !slices.Contains(j.letters, id) {
		j.letters = append(j.letters, id)
	}
}

// round is what a look at a session came to.
type round int

const (
	roundIdle  round = iota // there is nothing to do now
	roundAgain              // there may be more to do
	roundRetry              // it must be tried again later
	roundOver               // the session is not ours any more, or all must stop
)

// wish notes what is wished of a session and has it done.
func (x *Extractor) wish(id session.ID, note func(*job)) (session.ExtractStart, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopping {
		return "", session.ErrStopping
	}
	j, known := x.jobs[id]
	if !known {
		j = &job{id: id, wake: make(chan struct{}, 1), backoff: backoff.ExponentialBackOff{
			InitialInterval: firstBackoff, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: maxBackoff,
		}}
		if x.Backoff > 0 {
			j.backoff.InitialInterval = x.Backoff
		}
		x.jobs[id] = j
	}
	note(j)
	j.again = true
	if j.asked || len(j.letters) > 0 {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
	if !known {
		x.work.Go(func() { x.run(j) })
	}
	if j.busy {
		return session.ExtractRunning, nil
	}
	return session.ExtractStarted, nil
}

// run works on a session until nothing is left to do.
func (x *Extractor) run(j *job) {
	for {
		switch x.look(j) {
		case roundIdle:
			if x.leave(j) {
				return
			}
		case roundRetry:
			x.pause(j)
		case roundOver:
			x.drop(j)
			return
		}
	}
}

// look does what is to be done next.
func (x *Extractor) look(j *job) round {
	if x.ctx.Err() != nil {
		return roundOver
	}
	asked, letter := x.takeWishes(j)
	if letter != "" {
		return x.redrive(j, letter)
	}
	b, err := x.Store.Backlog(x.ctx, j.id)
	switch {
	case lost(err):
		return roundOver
	case err != nil:
		x.Log.Error().Err(err).Str("session", string(j.id)).Msg("backlog of memory cannot be read")
		return roundRetry
	}
	p, on := x.Projects[b.Project]
	if !on {
		return roundIdle
	}
	if j.trigger == "" {
		j.trigger = due(&p, b, asked)
	}
	if j.trigger == "" {
		return roundIdle
	}
	if !x.enter(j) {
		return roundOver
	}
	defer x.exit()
	return x.extract(j, &p, b)
}

// due says why a backlog is to be read now, or nothing. One that was begun is read to
// its end.
func due(p *Project, b session.Backlog, asked bool) session.Trigger {
	switch {
	case b.Items == 0:
		return ""
	case b.Bytes > 0 && b.Bytes >= int64(p.Settings.ExtractThresholdBytes), b.Retry != session.Retrying{} && !asked:
		return session.TriggerThreshold
	case asked:
		return session.TriggerRequest
	}
	return ""
}

func (x *Extractor) takeWishes(j *job) (asked bool, letter session.DeadLetterID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	j.again = false
	if len(j.letters) > 0 {
		letter, j.letters = j.letters[0], j.letters[1:]
		return false, letter
	}
	asked, j.asked = j.asked, false
	return asked, ""
}

// enter waits until one more pass may run. It reports false when all must stop.
func (x *Extractor) enter(j *job) bool {
	x.mu.Lock()
	j.busy = true
	x.mu.Unlock()
	select {
	case x.slots <- struct{}{}:
		return true
	case <-x.ctx.Done():
		return false
	}
}

func (x *Extractor) exit() { <-x.slots }

// pause waits before the next try, unless somebody asks for it now.
func (x *Extractor) pause(j *job) {
	timer := time.NewTimer(j.backoff.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.wake:
	case <-x.ctx.Done():
	}
}

// leave ends a job unless more was wished meanwhile.
func (x *Extractor) leave(j *job) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	j.busy = false
	if j.again || j.asked || len(j.letters) > 0 {
		return false
	}
	x.remove(j)
	return true
}

func (x *Extractor) drop(j *job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gate.forget(j.id)
	x.remove(j)
}

// remove ends a job. The mu is held.
func (x *Extractor) remove(j *job) {
	delete(x.jobs, j.id)
	x.freed.Broadcast()
}

// keep notes a pass that could not be stored; it goes with the next one.
func (j *job) keep(passes []session.Pass) {
	j.unshown = passes
	if extra := len(j.unshown) - maxUnshown; extra > 0 {
		j.unshown = slices.Delete(j.unshown, 0, extra)
	}
}
