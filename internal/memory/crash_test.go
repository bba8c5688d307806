package memory

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
)

const (
	childVariable = "MEMORY_TEST_CHILD" // "boundary:number of the pass"
	dirVariable   = "MEMORY_TEST_DIR"
)

// boundaries are the moments of a pass at which the process may die.
func boundaries() []string {
	return []string{"before the call", "after the call", "before the commit", "after the commit"}
}

// halting stops the process's work at one boundary of one pass, and says so.
type halting struct {
	*model
	boundary string
	pass     int
	asked    int
	commits  int
}

func (h *halting) halt(boundary string, pass int) {
	if boundary == h.boundary && pass == h.pass {
		fmt.Println("halted")
		select {}
	}
}

func (h *halting) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	h.asked++
	h.halt("before the call", h.asked)
	answer, err := h.model.Ask(ctx, r, emit)
	h.halt("after the call", h.asked)
	return answer, err
}

func (h *halting) around(commit func() error) error {
	h.commits++
	h.halt("before the commit", h.commits)
	err := commit()
	h.halt("after the commit", h.commits)
	return err
}

// firstOf submits one record for the first item of the slice.
func firstOf(r llm.Request) reply {
	var from, to int64
	if _, err := fmt.Sscanf(r.Items[0].UserMessage.Text, "Items %d to %d", &from, &to); err != nil {
		return reply{err: err}
	}
	return submits(from)
}

func crashSetup(dir string) setup {
	return setup{dir: dir, settings: func(m *manifest.Memory) { m.ExtractChunkBytes = 600 }}
}

// TestCrashChild is the process that dies: it does something only as such.
func TestCrashChild(t *testing.T) {
	boundary, number, ok := strings.Cut(os.Getenv(childVariable), ":")
	if !ok {
		return
	}
	h := &halting{model: &model{}, boundary: boundary}
	if _, err := fmt.Sscan(number, &h.pass); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		h.model.add(reply{make: firstOf})
	}
	s := crashSetup(os.Getenv(dirVariable))
	s.provider, s.around = h, h.around
	w := newWorld(t, s)
	id := w.session(users(40)...)
	fmt.Println(id)
	w.memory.TurnEnded(id)
	w.idle()
}

// Wherever a process dies: each range has at most one set of records, and there is no
// gap.
func TestKilledProcessDoublesAndLosesNothing(t *testing.T) {
	for _, boundary := range boundaries() {
		for _, pass := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s of pass %d", boundary, pass), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				id := killAt(t, dir, boundary, pass)
				w := newWorld(t, crashSetup(dir))
				for range 20 {
					w.model.add(reply{make: firstOf})
				}
				if err := w.memory.Recover(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.eventually("all is read", func() bool { return w.backlog(id).Items == 0 })
				w.idle()
				checkNoGap(t, w, id)
			})
		}
	}
}

func killAt(t *testing.T, dir, boundary string, pass int) session.ID {
	t.Helper()
	return session.ID(killHalted(t, "TestCrashChild", fmt.Sprintf("%s=%s:%d", childVariable, boundary, pass), dirVariable+"="+dir))
}

// killHalted runs a test of this file in a process of its own, kills that with
// SIGKILL once it says that it has halted, and returns the first line that it said.
func killHalted(t *testing.T, test string, environment ...string) (first string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "halted" {
		if first == "" {
			first = lines.Text()
		}
	}
	if lines.Text() != "halted" {
		t.Fatalf("the process ended by itself, after %q", lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	return first
}

func checkNoGap(t *testing.T, w *world, id session.ID) {
	t.Helper()
	next, succeeded := int64(1), 0
	firsts := map[int64]bool{}
	for _, p := range w.passes(id) {
		if !p.Outcome.Succeeded() {
			continue
		}
		if p.FromN != next {
			t.Errorf("%d to %d is read when %d is next", p.FromN, p.ToN, next)
		}
		firsts[p.FromN] = true
		next = p.ToN + 1
		succeeded++
	}
	records := w.records()
	if next != 41 || len(records) != succeeded || len(w.notices(id)) != len(w.passes(id)) {
		t.Errorf("read up to %d in %d passes with %d records", next-1, succeeded, len(records))
	}
	for _, r := range records {
		if !firsts[r.Evidence[0]] {
			t.Errorf("a record of item %d, which begins no range", r.Evidence[0])
		}
		delete(firsts, r.Evidence[0])
	}
}
