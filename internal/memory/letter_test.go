package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
)

// inTime runs a test on a clock that jumps.
func inTime(t *testing.T, s setup, test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		if s.backoff == 0 {
			s.backoff = time.Second
		}
		w := newWorld(t, s)
		w.step = s.backoff / 4
		test(t, w)
	})
}

func (w *world) letters() []session.DeadLetter {
	w.t.Helper()
	letters, err := w.store.DeadLetters(w.t.Context(), project, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return letters
}

func (w *world) outcomes(id session.ID) string {
	var all []string
	for _, p := range w.passes(id) {
		all = append(all, fmt.Sprintf("%d-%d %s", p.FromN, p.ToN, p.Outcome))
	}
	return strings.Join(all, ", ")
}

// Only failures that say something about the range itself make a dead letter of it,
// and only the fifth.
func TestDeadLetterAfterFailuresOfTheRange(t *testing.T) {
	invalid, talk := []reply{submits(99), prose("no")}, []reply{prose("no")}
	for _, c := range []struct {
		name    string
		failing []reply // of one pass
		items   int
		dead    bool
	}{
		{"invalid", invalid, 3, true},
		{"no submission", talk, 3, true},
		{"turn limit", slices.Repeat([]reply{calls("Read", `{}`)}, 8), 3, true},
		{"provider error", []reply{refuses(llm.ClassRetry)}, 3, false},
		{"bad request", []reply{refuses(llm.ClassFail)}, 3, false},
		{"too long, one short item", []reply{refuses(llm.ClassShrink)}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, setup{}, func(t *testing.T, w *world) {
				id := w.session(users(c.items)...)
				w.model.add(slices.Repeat(c.failing, 4)...)
				w.memory.TurnEnded(id)
				w.passesAre(id, 4)
				if len(w.letters()) != 0 || w.backlog(id).Pointer != 0 {
					t.Fatalf("after four failures: %+v, pointer %d", w.letters(), w.backlog(id).Pointer)
				}
				w.model.add(c.failing...)
				w.restart() // counts are on disk
				w.passesAre(id, 5)
				w.idle()
				checkLetter(t, w, id, c.dead, int64(c.items))
			})
		})
	}
}

func checkLetter(t *testing.T, w *world, id session.ID, dead bool, items int64) {
	t.Helper()
	letters := w.letters()
	if strings.Contains(w.log.String(), `:""`) || strings.Contains(w.log.String(), `"dead_letter":"ded_`) != dead {
		t.Errorf("the log has an empty field, or names a dead letter wrongly:\n%s", w.log)
	}
	if !dead {
		if len(letters) != 0 || w.metric("dead_letters") != "0" || w.backlog(id).Pointer != items {
			t.Errorf("letters %+v, pointer %d", letters, w.backlog(id).Pointer)
		}
		return
	}
	if len(letters) != 1 || letters[0].FromN != 1 || letters[0].ToN != items || letters[0].Failures != 5 || letters[0].SessionID != id {
		t.Fatalf("letters: %+v after %s", letters, w.outcomes(id))
	}
	if w.backlog(id).Pointer != items || w.metric("dead_letters") != "1" {
		t.Errorf("pointer %d, metric %s", w.backlog(id).Pointer, w.metric("dead_letters"))
	}
	var told bool
	for _, n := range w.notices(id) {
		told = told || n.Text == letterText
	}
	if !told {
		t.Error("no notice tells of the dead letter")
	}
}

// A second dead letter is made only after a success of any session, or an hour.
func TestDeadLettersAreFarBetween(t *testing.T) {
	for _, success := range []bool{false, true} {
		t.Run(fmt.Sprintf("with a success %t", success), func(t *testing.T) {
			inTime(t, setup{settings: func(m *manifest.Memory) { m.DeadLetterAfter = 1 }}, func(t *testing.T, w *world) {
				first, second := w.session(user("one")), w.session(user("two"))
				w.model.add(prose("no"))
				w.memory.TurnEnded(first)
				w.eventually("the first letter", func() bool { return len(w.letters()) == 1 })
				began := time.Now()
				talk := slices.Repeat([]reply{prose("no")}, 40)
				w.model.add(talk...)
				w.memory.TurnEnded(second)
				w.passesAre(second, 3)
				if w.memory.Held() != 1 || w.metric("dead_letters_held") != "1" || len(w.letters()) != 1 {
					t.Errorf("%d sessions are held, %d letters", w.memory.Held(), len(w.letters()))
				}
				if success {
					third := w.session(user("three"))
					w.model.mu.Lock()
					rest := w.model.script
					w.model.script = append([]reply{{make: func(r llm.Request) reply {
						if strings.Contains(r.Items[0].UserMessage.Text, "three") {
							return submits()
						}
						return prose("no")
					}}}, rest...)
					for i := range w.model.script {
						w.model.script[i] = w.model.script[0]
					}
					w.model.mu.Unlock()
					w.settleOther(third)
				}
				for len(w.letters()) < 2 {
					<-time.After(time.Minute)
				}
				waited := time.Since(began)
				if success != (waited < letterPause) || waited > 2*letterPause {
					t.Errorf("the second letter came after %s", waited)
				}
				w.eventually("nobody is held", func() bool { return w.memory.Held() == 0 })
			})
		})
	}
}

// settleOther waits for one session while others go on.
func (w *world) settleOther(id session.ID) {
	w.t.Helper()
	if _, err := w.memory.Extract(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("it is read", func() bool { return w.backlog(id).Items == 0 })
}

// Halving starts a new count.
func TestHalvingStartsANewCount(t *testing.T) {
	inTime(t, setup{}, func(t *testing.T, w *world) {
		id := w.session(users(4)...)
		w.model.add(slices.Repeat([]reply{prose("no")}, 4)...)
		w.model.add(refuses(llm.ClassShrink))
		w.model.add(slices.Repeat([]reply{prose("no")}, 4)...)
		w.memory.TurnEnded(id)
		w.passesAre(id, 10)
		w.idle()
		if len(w.letters()) != 0 || w.backlog(id).Pointer != 4 {
			t.Errorf("%d letters, pointer %d: %s", len(w.letters()), w.backlog(id).Pointer, w.outcomes(id))
		}
	})
}

// What a session adds while a range fails joins it, so that no two neighbours would
// fit into one chunk, and is another range with a count of its own. A chunk without
// room for more stays the same range, so that its failures add up.
func TestFailingRangeGrowsWhileThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		name       string
		chunkBytes int
		letters    int
		read       string
	}{
		{"room", 1 << 16, 0, "1-3 1-4 1-5 1-6 1-7 1-7"},
		{"no room", 3 * 400, 1, "1-3 1-3 1-3 1-3 1-3 4-6 7-7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, setup{settings: func(m *manifest.Memory) { m.ExtractChunkBytes = c.chunkBytes }}, func(t *testing.T, w *world) {
				long := user(strings.Repeat("x", 300))
				id := w.session(long, long, long)
				w.model.add(slices.Repeat([]reply{prose("no")}, 5)...)
				w.memory.TurnEnded(id)
				for n := range 4 {
					w.passesAre(id, n+1)
					w.add(id, long)
					w.memory.TurnEnded(id)
				}
				w.idle()
				var read []string
				for _, n := range w.notices(id) {
					read = append(read, fmt.Sprintf("%d-%d", n.FromN, n.ToN))
				}
				if got := strings.Join(read, " "); got != c.read || len(w.letters()) != c.letters || w.backlog(id).Pointer != 7 {
					t.Errorf("%s were read, want %s; %d letters, pointer %d", got, c.read, len(w.letters()), w.backlog(id).Pointer)
				}
			})
		})
	}
}

func TestRedriveReadsADeadLetterAgain(t *testing.T) {
	inTime(t, setup{settings: func(m *manifest.Memory) { m.DeadLetterAfter = 1 }}, func(t *testing.T, w *world) {
		id := w.session(users(4)...)
		w.model.add(prose("no"))
		w.memory.TurnEnded(id)
		w.idle()
		letter := w.letters()[0]
		w.model.add(prose("no"))
		w.redrive(letter.ID)
		if len(w.letters()) != 1 {
			t.Fatalf("a redrive that failed has taken the letter away: %s", w.outcomes(id))
		}
		w.model.add(refuses(llm.ClassShrink), submits(1, 2), submits(4))
		w.redrive(letter.ID)
		if len(w.letters()) != 0 || len(w.records()) != 3 || w.backlog(id).Pointer != 4 {
			t.Errorf("%d letters, %d records, pointer %d: %s", len(w.letters()), len(w.records()), w.backlog(id).Pointer, w.outcomes(id))
		}
		if _, err := w.memory.Redrive(t.Context(), letter.ID); err == nil {
			t.Error("a letter can be redriven twice")
		}
		want := "1-4 no_submission, 1-4 no_submission, 1-4 context_too_long, 1-2 staged, 3-4 staged"
		if got := w.outcomes(id); got != want {
			t.Errorf("passes: %s\nwant %s", got, want)
		}
	})
}

func (w *world) redrive(id session.DeadLetterID) {
	w.t.Helper()
	if how, err := w.memory.Redrive(w.t.Context(), id); err != nil || how != session.ExtractStarted {
		w.t.Fatalf("redrive: %s, %v", how, err)
	}
	w.idle()
}

// A dead letter that could not be stored was not made.
func TestDeadLetterOfAFullDiskIsMadeLater(t *testing.T) {
	inTime(t, setup{settings: func(m *manifest.Memory) { m.DeadLetterAfter = 1 }}, func(t *testing.T, w *world) {
		id := w.session(user("hello"))
		fillDisk(w)
		w.model.add(prose("no"), prose("no"))
		began := time.Now()
		w.memory.TurnEnded(id)
		w.eventually("the disk refuses", func() bool { return w.runs(session.OutcomeNoSubmission) == "1" })
		if len(w.letters()) != 0 || w.backlog(id).Pointer != 0 {
			t.Errorf("letters %+v, pointer %d", w.letters(), w.backlog(id).Pointer)
		}
		w.refuse.Store(nil)
		w.idle()
		if len(w.letters()) != 1 || time.Since(began) > time.Minute {
			t.Errorf("%d letters after %s: %s", len(w.letters()), time.Since(began), w.outcomes(id))
		}
	})
}
