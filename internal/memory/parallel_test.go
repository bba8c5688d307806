package memory

import (
	"strings"
	"sync"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
)

// A turn is not held up by the extract of the one before it; its items are in the next
// pass, not in that one.
func TestTurnsDoNotWait(t *testing.T) {
	w := newWorld(t, setup{})
	s, err := w.host.Create(t.Context(), project, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	answered := submits()
	answered.hold = hold
	w.model.add(answered)
	w.say(s.ID, "turn A")
	w.eventually("the extract of A is in flight", func() bool { return len(w.model.asked()) == 1 })
	for range 4 {
		if how, err := w.memory.Extract(t.Context(), s.ID); err != nil || how != session.ExtractRunning {
			t.Errorf("extract while one runs: %s, %v", how, err)
		}
	}
	w.say(s.ID, "turn B") // which fails when it waits
	if len(w.passes(s.ID)) != 0 {
		t.Error("the extract of A has ended")
	}
	close(hold)
	passes := w.passesAre(s.ID, 2)
	w.idle()
	asked := w.model.asked()
	if passes[0].ToN != 2 || passes[1].FromN != 3 || passes[1].ToN != 4 || len(asked) != 2 {
		t.Fatalf("passes %+v after %d requests", passes, len(asked))
	}
	if strings.Contains(asked[0], "turn B") || !strings.Contains(asked[1], "turn B") || strings.Contains(asked[1], "turn A") {
		t.Errorf("asked %q", asked)
	}
}

// The items of a turn that runs are left to the pass after its end.
func TestRunningTurnIsNotRead(t *testing.T) {
	hold := make(chan struct{})
	talk := &model{}
	answered := prose("done")
	answered.hold = hold
	talk.add(prose("yes"), answered)
	w := newWorld(t, setup{talk: talk, settings: func(m *manifest.Memory) { m.ExtractThresholdBytes = 100 }})
	s, err := w.host.Create(t.Context(), project, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID
	w.say(id, "before")
	turn, _, err := w.host.Submit(t.Context(), id, session.Submission{Input: "now", Mode: session.ModeEnqueue}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.eventually("the turn runs", func() bool { return len(talk.asked()) == 2 })
	w.settle(id)
	if b := w.backlog(id); b.Pointer != 2 || b.Items != 1 {
		t.Errorf("backlog while a turn runs: %+v", b)
	}
	close(hold)
	w.eventually("the turn has ended", func() bool { return w.backlog(id).Items == 2 })
	w.settle(id)
	if asked := w.model.asked(); len(asked) != 2 || strings.Contains(asked[0], "now") {
		t.Errorf("turn %s: asked %q", turn.ID, asked)
	}
}

// No session has two passes at once, and all together no more than allowed.
func TestPassesAreBounded(t *testing.T) {
	var mu sync.Mutex // guards the fields below
	running, most, perSession := 0, 0, map[string]int{}
	three := make(chan struct{})
	allRun := sync.OnceFunc(func() { close(three) })
	w := newWorld(t, setup{
		settings: func(m *manifest.Memory) { m.MaxParallel = 3; m.ExtractChunkBytes = 600 },
	})
	for range 500 {
		w.model.add(reply{make: func(r llm.Request) reply {
			name := string(r.Items[0].SessionID)
			mu.Lock()
			running++
			perSession[name]++
			most = max(most, running)
			if perSession[name] > 1 {
				t.Errorf("session %s has two passes", name)
			}
			if most == 3 {
				allRun()
			}
			mu.Unlock()
			<-three // nobody is done before three are at work
			mu.Lock()
			running--
			perSession[name]--
			mu.Unlock()
			return submits()
		}})
	}
	var ids []session.ID
	for range 10 {
		ids = append(ids, w.session(users(12)...))
	}
	var all sync.WaitGroup
	for _, id := range ids {
		for range 3 {
			all.Go(func() { w.memory.TurnEnded(id) })
		}
	}
	all.Wait()
	w.idle()
	for _, id := range ids {
		if w.backlog(id).Pointer != 12 {
			t.Errorf("session %s is read up to %d", id, w.backlog(id).Pointer)
		}
	}
	if most != 3 {
		t.Errorf("%d passes at once, want 3", most)
	}
}

// What a stop leaves is taken up at the next start, without a turn or a call.
func TestRestartGoesOn(t *testing.T) {
	w := newWorld(t, setup{settings: func(m *manifest.Memory) { m.ExtractThresholdBytes = 1000; m.ExtractChunkBytes = 1000 }})
	hold := make(chan struct{})
	defer close(hold)
	w.model.add(submits(1), reply{hold: hold})
	var ids []session.ID
	for range 3 {
		ids = append(ids, w.session(users(40)...))
	}
	small := w.session(user("too little"))
	w.memory.TurnEnded(ids[0])
	w.eventually("the second pass waits for the model", func() bool { return len(w.model.asked()) == 2 })
	w.restart()
	for _, id := range ids {
		w.eventually("it is read", func() bool { return w.backlog(id).Items == 0 })
	}
	w.idle()
	next := int64(1)
	for _, p := range w.passes(ids[0]) {
		if p.Outcome.Succeeded() {
			if p.FromN != next {
				t.Errorf("%d to %d is read when %d is next", p.FromN, p.ToN, next)
			}
			next = p.ToN + 1
		}
	}
	if len(w.records()) != 1 || len(w.passes(small)) != 0 {
		t.Errorf("%d records, %d passes of a small backlog", len(w.records()), len(w.passes(small)))
	}
}

// A session that is deleted while it is read is forgotten.
func TestDeletedSessionIsForgotten(t *testing.T) {
	w := newWorld(t, setup{})
	hold := make(chan struct{})
	answered := submits(1)
	answered.hold = hold
	w.model.add(answered)
	id := w.session(user("hello"))
	w.memory.TurnEnded(id)
	w.eventually("the model is asked", func() bool { return len(w.model.asked()) == 1 })
	if err := w.host.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	close(hold)
	w.idle()
	if len(w.records()) != 0 {
		t.Errorf("records of a deleted session: %+v", w.records())
	}
	if _, err := w.memory.Extract(t.Context(), id); err == nil {
		t.Error("a deleted session can be read")
	}
}

// A refusing disk loses no notice: they come with the next pass.
func TestNoticesOfAFullDiskComeLater(t *testing.T) {
	w := newWorld(t, setup{})
	id := w.session(user("hello"))
	fillDisk(w)
	hold := make(chan struct{})
	third := submits(1)
	third.hold = hold
	w.model.add(submits(1), refuses(llm.ClassRetry), third)
	w.memory.TurnEnded(id)
	w.eventually("two passes", func() bool {
		return w.runs(session.OutcomeStorageError) == "1" && w.runs(session.OutcomeProviderError) == "1"
	})
	w.refuse.Store(nil)
	close(hold)
	w.idle()
	counted := 0
	for _, o := range []session.Outcome{session.OutcomeStorageError, session.OutcomeProviderError, session.OutcomeStaged} {
		if w.runs(o) != "0" {
			counted++
		}
	}
	passes, notices := w.passes(id), w.notices(id)
	if counted != 3 || len(passes) != len(notices) || passes[0].Outcome != session.OutcomeStorageError || passes[1].Outcome != session.OutcomeProviderError {
		t.Errorf("%d outcomes, passes %+v, notices %+v", counted, passes, notices)
	}
	if w.backlog(id).Pointer != 1 {
		t.Errorf("pointer %d", w.backlog(id).Pointer)
	}
}
