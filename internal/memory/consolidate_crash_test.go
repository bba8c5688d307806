package memory

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

const foldVariable = "MEMORY_TEST_FOLD" // a boundary

type memoryStore interface {
	Documents
	OpenRecords
}

// haltingStore stops the process's work before or after the commit of a pass.
type haltingStore struct {
	memoryStore
	boundary string
}

func (h haltingStore) Consolidate(ctx context.Context, done session.Consolidation) error {
	if h.boundary == "before the commit" {
		halt()
	}
	if err := h.memoryStore.Consolidate(ctx, done); err != nil {
		return err
	}
	halt()
	return nil
}

func halt() {
	fmt.Println("halted")
	select {}
}

// folds writes record 1 into a document and discards record 2.
func folds() reply {
	return does(writeTool, fields{"name": "preferences", "text": "- Ada likes tabs [^1]"}, finishTool, finishing(1, "applied", 2, "discarded"))
}

// TestCrashFoldChild is the process that dies: it does something only as such.
func TestCrashFoldChild(t *testing.T) {
	boundary := os.Getenv(foldVariable)
	if boundary == "" {
		return
	}
	a := newArchiveIn(t, os.Getenv(dirVariable), func(c *ConsolidatorConfig, _ *Project) {
		c.Store = haltingStore{c.Store, boundary}
	})
	a.stage("Ada likes tabs.", "It rained.")
	a.model.add(folds())
	a.fold()
}

// Wherever a process dies: documents and records fit each other, and each record is
// folded once.
func TestKilledConsolidationIsWholeOrNothing(t *testing.T) {
	open, closed := []string{"1 open", "2 open"}, []string{"1 closed applied", "2 closed discarded"}
	for _, c := range []struct {
		boundary string
		states   []string // after the kill
		version  int64
		asked    int // of the next process
	}{
		{"before the commit", open, 0, 1},
		{"after the commit", closed, 1, 0},
	} {
		t.Run(c.boundary, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killHalted(t, "TestCrashFoldChild", foldVariable+"="+c.boundary, dirVariable+"="+dir)
			a := newArchiveIn(t, dir, nil)
			if diff := cmp.Diff(c.states, a.states()); diff != "" {
				t.Error(diff)
			}
			if _, version := a.text(session.DocumentPreferences); version != c.version {
				t.Errorf("version %d, want %d", version, c.version)
			}
			a.model.add(folds())
			a.folding.Recover()
			a.idle()
			if diff := cmp.Diff(closed, a.states()); diff != "" {
				t.Error(diff)
			}
			text, version := a.text(session.DocumentPreferences)
			if version != 1 || text != "- Ada likes tabs [^1]" || len(a.model.asked()) != c.asked {
				t.Errorf("version %d says %q after %d requests, want %d\n%s", version, text, len(a.model.asked()), c.asked, a.log)
			}
		})
	}
}
