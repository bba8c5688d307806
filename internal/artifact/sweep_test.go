package artifact

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/session"
)

func TestQuotaMakesTheOldestGo(t *testing.T) {
	s := newShelf(t, 10*blockBytes)
	for n := range int64(10) {
		s.keepAged(n+1, 30*time.Minute-time.Duration(n)*time.Minute)
	}
	if kept := s.Keep(s.id, 11, "x"); kept.Error != "" {
		t.Errorf("Keep = %+v", kept)
	}
	s.wantFiles("10", "11", "3", "4", "5", "6", "7", "8", "9") // somewhat below the quota
	if kept := s.Keep(s.id, 12, strings.Repeat("x", 10*blockBytes+1)); kept != (session.KeptOutput{Error: "quota"}) {
		t.Errorf("what is larger than the quota: %+v", kept)
	}
	s.wantFiles("10", "11", "3", "4", "5", "6", "7", "8", "9") // nothing had to go for it
	if kept := s.Keep(s.id, 12, strings.Repeat("x", 10*blockBytes)); kept.Error != "" {
		t.Errorf("what fills the quota: %+v", kept)
	}
	s.wantFiles("12")
}

func TestSmallerQuotaHoldsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, 10*blockBytes)
		for n := range int64(5) {
			s.keepAged(n+1, time.Duration(30-n)*time.Minute)
		}
		s.Close()
		s.config.QuotaBytes = 2 * blockBytes
		s.boot()
		synctest.Wait()
		s.wantFiles("4", "5")
		s.Close()
	})
}

func TestSweepingIsByAgeAndWithTheSession(t *testing.T) {
	s := newShelf(t, 1<<20)
	s.keepAged(1, 61*time.Minute)
	s.keepAged(2, 59*time.Minute)
	gone := session.NewID()
	s.Keep(gone, 1, "text")
	if err := os.WriteFile(s.path(s.id, 9)+unfinished, []byte("te"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.sweep(t.Context())
	s.wantFiles("2", "9.part")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(s.path(s.id, 9)+unfinished, old, old); err != nil {
		t.Fatal(err)
	}
	s.sweep(t.Context())
	s.wantFiles("2")
	if s.keptBytes != blockBytes || s.reservedBytes != 0 {
		t.Errorf("it counts %d and %d bytes", s.keptBytes, s.reservedBytes)
	}
}

// What a killed process wrote without committing its result is gone at the start, and
// nothing else.
func TestCrashLeavesNoFileWithoutResult(t *testing.T) {
	s := newShelf(t, 1<<20)
	finished := session.NewID()
	s.history.add(finished)
	s.history.unfinished = []session.ID{s.id, session.NewID()}
	kept := s.Keep(s.id, 3, "committed")
	s.history.commit(s.id, 3, "Glob", &kept, 9)
	s.Keep(s.id, 4, "not committed")
	s.Keep(s.id, 5, "committed otherwise")
	s.history.commit(s.id, 5, "Glob", nil, 9)
	s.Keep(s.id, 6, "refused")
	s.history.commit(s.id, 6, "Glob", &session.KeptOutput{Error: "io"}, 9)
	if err := os.WriteFile(s.path(s.id, 7)+unfinished, []byte("te"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Keep(finished, 8, "of a session without an open turn")
	s.Close()
	s.boot()
	want := []string{"3", string(finished) + "/8"}
	if strings.Compare(string(finished), string(s.id)) < 0 {
		want = []string{want[1], want[0]}
	}
	s.wantFiles(want...)
}

func TestBrokenFolderDoesNotStopTheStart(t *testing.T) {
	s := newShelf(t, 1<<20)
	s.Close()
	s.history.unfinished = []session.ID{s.id}
	if err := os.WriteFile(s.config.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.boot()
	if kept := s.Keep(s.id, 3, "text"); kept != (session.KeptOutput{Error: "io"}) {
		t.Errorf("Keep = %+v", kept)
	}
}
