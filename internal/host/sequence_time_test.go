package host_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"loadline/internal/session"
	"loadline/internal/store"
)

// TestSequences proves the promise of this project on random sequences of what can
// happen to a session: turns of each mode with any answers of a model and any outputs
// of tools, failures of each class, interceptors, cancels, memory that reads along, a
// full disk, crashes between any two commits, restarts with smaller limits and smaller
// models. After each event the
// history holds what it must; at last the session takes the next turn, memory has read
// all of it, and it is deleted without a trace. Time is virtual. `go test` runs 100
// sequences, `make sequences` 10,000; a failure prints its seed.
func TestSequences(t *testing.T) {
	blank := blankStore(t)
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set("50"); err != nil { // of each half
			t.Fatal(err)
		}
	}
	for _, half := range []string{"first half", "second half"} { // for two cores
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var once sync.Once
			rapid.Check(t, func(r *rapid.T) {
				inBubble(t, func(b *testing.T) {
					s := &sequence{T: r, ctx: b.Context(), dir: dir, model: &model{}}
					s.first = func(what string) { once.Do(func() { t.Log("first failure, before it is made smaller: " + what) }) }
					s.play(blank)
				})
			})
		})
	}
}

// inBubble runs one sequence in virtual time. What rapid throws to end it crosses
// the bubble's wall by hand.
func inBubble(t *testing.T, sequence func(*testing.T)) {
	var thrown any
	synctest.Test(t, func(b *testing.T) {
		defer func() { thrown = recover() }()
		sequence(b)
	})
	if thrown != nil {
		panic(thrown)
	}
}

// blankStore is the file of a store without sessions: copying it is cheaper than
// making it.
func blankStore(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "loadline.db"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// sequence is one session on its way through everything.
type sequence struct {
	*rapid.T
	ctx     context.Context
	dir     string
	model   *model
	life    *life
	id      session.ID
	readers []*reader
	turns   []session.TurnID
	inputs  []string     // that were submitted, taken or not
	foreign int64        // number of the last imported item
	full    bool         // the disk has refused something
	swept   bool         // outputs may have been swept: there was little room for them
	first   func(string) // logs what has failed first: making it smaller may lose it
}

// Fatalf ends the sequence.
func (s *sequence) Fatalf(format string, args ...any) {
	s.Helper()
	s.first(fmt.Sprintf(format, args...))
	s.T.Fatalf(format, args...)
}

// Fatal ends the sequence.
func (s *sequence) Fatal(args ...any) { s.Helper(); s.Fatalf("%s", fmt.Sprint(args...)) }

// play takes a new session through a few actions and to its end.
func (s *sequence) play(blank []byte) {
	s.unpack(blank)
	s.begin()
	defer func() {
		s.life.end(time.Hour)
		pass(time.Hour) // until calls that nobody waits for have returned
	}()
	s.id = s.newSession()
	s.readers = []*reader{newReader(s), newReader(s)}
	actions := map[string]func(){
		"submit": s.submit, "wait": s.wait, "cancel": s.cancel, "fill the disk": s.fillDisk, "crash": s.crash, "restart": s.restart, "read": s.read, "leave": s.leave, "extract": s.extract,
	}
	often := []string{"submit", "submit", "submit", "submit", "wait", "wait", "cancel", "fill the disk", "crash", "restart", "read", "leave", "extract", "extract"}
	for range rapid.IntRange(1, 12).Draw(s.T, "actions") {
		actions[rapid.SampledFrom(often).Draw(s.T, "action")]()
		s.check()
	}
	s.finish()
}

// unpack puts the store of a new server into the folder.
func (s *sequence) unpack(blank []byte) {
	if err := os.RemoveAll(s.dir); err != nil {
		s.Fatal(err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "loadline.db"), blank, 0o600); err != nil {
		s.Fatal(err)
	}
}

// begin starts a server on what is on disk.
func (s *sequence) begin() {
	for _, r := range s.readers {
		r.leave()
	}
	s.life = newLife(s)
	s.model.set(s.life.settings)
	if err := s.life.recover(s.ctx); err != nil {
		s.Fatalf("recover: %v", err)
	}
}

func (s *sequence) read() {
	rapid.SampledFrom(s.readers).Draw(s.T, "reader").read(rapid.IntRange(1, 5).Draw(s.T, "reads"))
}
func (s *sequence) leave() { rapid.SampledFrom(s.readers).Draw(s.T, "reader").leave() }

// finish waits for the end of all turns, and has the session take one more.
func (s *sequence) finish() {
	s.life.refuse(0)
	s.awaitIdle()
	s.model.prepare("next", nil)
	t, _, err := s.life.host.Submit(s.ctx, s.id, session.Submission{Input: "next", Mode: session.ModeEnqueue}, nil)
	if err != nil {
		s.Fatalf("the next turn is refused: %v", err)
	}
	s.turns = append(s.turns, t.ID)
	s.awaitIdle()
	s.check()
	if t, err = s.life.store.Turn(s.ctx, s.id, t.ID); err != nil || t.State != session.TurnCompleted {
		s.Fatalf("the session is wedged: the next turn is %s, %+v, %v", t.State, t.Error, err)
	}
	s.finishMemory()
	s.check()
	for _, r := range s.readers {
		r.readAll()
	}
	s.checkEnds()
	s.deleteSession()
}

// awaitIdle waits until no turn is open: a day is long enough for any.
func (s *sequence) awaitIdle() {
	var last session.Session
	for range 24 * 60 {
		synctest.Wait()
		found, err := s.life.store.Session(s.ctx, s.id)
		if err != nil {
			s.Fatal(err)
		}
		if last = found; found.State == session.StateIdle && found.Queued == 0 {
			return
		}
		pass(time.Minute)
	}
	s.Fatalf("the session is stuck: it is %s with %d queued turns after a day", last.State, last.Queued)
}

// pass has time pass, which is virtual.
func pass(d time.Duration) { time.Sleep(d) }

func indent(lines []string) string { return "\t" + strings.Join(lines, "\n\t") }
