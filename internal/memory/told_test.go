package memory

import (
	"strings"
	"testing"

	"loadline/internal/host"
	"loadline/internal/session"
)

// TestSessionIsToldTheSameToItsEnd holds what models cache prompts by: the system
// text of a session does not change by a byte, whatever becomes of the documents and
// of the server meanwhile.
func TestSessionIsToldTheSameToItsEnd(t *testing.T) {
	talk := &model{}
	w := newWorld(t, setup{talk: talk, recall: true})
	summarise := func(version int64, text string) {
		t.Helper()
		err := w.store.Consolidate(t.Context(), session.Consolidation{Project: project, Documents: []session.Document{{Name: session.DocumentSummary, Version: version, Text: text}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	told := func(id session.ID) string {
		t.Helper()
		talk.add(prose("ok"))
		w.say(id, "hello")
		return talk.requests[len(talk.requests)-1].System
	}
	begin := func() session.ID {
		t.Helper()
		s, err := w.host.Create(t.Context(), project, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	before := begin()
	summarise(1, "- Tabs [^1]\n- "+strings.Repeat("long ", 2000))
	during := begin()
	first := told(during)
	if !strings.HasPrefix(first, recalled+"> - Tabs [^1]\n> - long ") || !strings.HasSuffix(first, " bytes dropped, refine your query]") || len(first) > 4096 {
		t.Errorf("told %d bytes: %.200q", len(first), first)
	}
	summarise(2, "- Spaces")
	after := begin()
	for range 2 {
		if got := told(before); got != "" {
			t.Errorf("a session from before is told %q", got)
		}
		if got := told(during); got != first {
			t.Errorf("a session is told another thing: %.200q", got)
		}
		if got := told(after); got != recalled+"> - Spaces" {
			t.Errorf("a later session is told %q", got)
		}
		w.restart()
	}
}

// recalls gives sessions of a project what they recall.
func (w *world) recalls(p host.Project) host.Project {
	if w.setup.recall {
		p.Recall = Recall(w.store.Recall)
	}
	return p
}
