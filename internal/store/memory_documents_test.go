package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loadline/internal/session"
)

// written is a version of a document as a consolidation makes it.
func written(name session.DocumentName, version int64, text string, records ...session.RecordRef) session.Document {
	return session.Document{Name: name, Version: version, Text: text, Records: records, Reason: session.VersionConsolidated}
}

func consolidate(tb testing.TB, s *Store, project string, documents ...session.Document) {
	tb.Helper()
	if err := s.Consolidate(context.Background(), session.Consolidation{Project: project, Documents: documents}); err != nil {
		tb.Fatal(err)
	}
}

func TestConsolidationIsStoredWhole(t *testing.T) {
	s := openStore(t, t.TempDir())
	ids := stage(t, s, "p", "Ada likes tabs", "Ada likes tabs!", "Bob exists", "Ada liked spaces")
	other := stage(t, s, "other", "elsewhere")
	ref := session.RecordRef{N: 1, ID: ids[0]}
	err := s.Consolidate(t.Context(), session.Consolidation{
		Project: "p", Documents: []session.Document{written(session.DocumentPreferences, 1, "- Ada likes tabs [^1]", ref)},
		Closed: []session.ClosedRecord{{ID: ids[0], Reason: session.CloseApplied}, {ID: ids[1], Reason: session.CloseDuplicate}, {ID: ids[3], Reason: session.CloseSuperseded}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Document(t.Context(), "p", session.DocumentPreferences, 0)
	want := session.Document{Project: "p", Name: session.DocumentPreferences, Version: 1, Text: "- Ada likes tabs [^1]", TextBytes: 21,
		Records: []session.RecordRef{ref}, Reason: session.VersionConsolidated}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(session.Document{}, "CreatedAt")); diff != "" || err != nil || got.CreatedAt == 0 {
		t.Error(diff, err)
	}
	records, err := s.Records(t.Context(), "p", "", "", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, r := range records {
		reasons = append(reasons, fmt.Sprintf("%d %s %s %t", r.N, r.State, r.Reason, r.ClosedAt != 0))
	}
	wantReasons := []string{"1 closed applied true", "2 closed duplicate true", "3 open  false", "4 closed superseded true"}
	if diff := cmp.Diff(wantReasons, reasons); diff != "" {
		t.Error(diff)
	}
	if open, err := s.OpenRecords(t.Context(), "p", "", 10); err != nil || len(open) != 1 || open[0].ID != ids[2] {
		t.Errorf("open records: %v, %v", open, err)
	}
	if count, size, err := s.OpenRecordsTotal(t.Context(), "p"); count != 1 || size != int64(len("Bob exists"+"because")) || err != nil {
		t.Errorf("open records: %d of %d bytes, %v", count, size, err)
	}
	if diff := cmp.Diff([]string{"Ada likes tabs", "preferences"}, sorted(found(t, s, "p", "ada"))); diff != "" {
		t.Error(diff)
	}
	// A record of another project is none of this one.
	err = s.Consolidate(t.Context(), session.Consolidation{Project: "p", Closed: []session.ClosedRecord{{ID: other[0], Reason: session.CloseApplied}}})
	if !errors.Is(err, session.ErrConflict) {
		t.Errorf("closing a record of another project: %v", err)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func TestConsolidationThatDoesNotFitChangesNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	ids := stage(t, s, "p", "one", "two")
	consolidate(t, s, "p", written(session.DocumentLessons, 1, "first"))
	closed := []session.ClosedRecord{{ID: ids[0], Reason: session.CloseApplied}}
	if err := s.Consolidate(t.Context(), session.Consolidation{Project: "p", Closed: []session.ClosedRecord{{ID: ids[1], Reason: session.CloseDiscarded}}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]session.Consolidation{
		"document made meanwhile":    {Documents: []session.Document{written(session.DocumentLessons, 1, "again")}, Closed: closed},
		"document changed meanwhile": {Documents: []session.Document{written(session.DocumentLessons, 3, "again")}, Closed: closed},
		"document deleted meanwhile": {Documents: []session.Document{written(session.DocumentSummary, 2, "again")}, Closed: closed},
		"second document":            {Documents: []session.Document{written(session.DocumentLessons, 2, "again"), written(session.DocumentSummary, 2, "x")}, Closed: closed},
		"record closed meanwhile":    {Documents: []session.Document{written(session.DocumentLessons, 2, "again")}, Closed: append(closed, session.ClosedRecord{ID: ids[1], Reason: session.CloseApplied})},
		"record closed twice":        {Documents: []session.Document{written(session.DocumentLessons, 2, "again")}, Closed: append(closed, closed...)},
		"unknown record":             {Documents: []session.Document{written(session.DocumentLessons, 2, "again")}, Closed: append(closed, session.ClosedRecord{ID: "rec_", Reason: session.CloseApplied})},
	} {
		t.Run(name, func(t *testing.T) {
			c.Project = "p"
			if err := s.Consolidate(t.Context(), c); !errors.Is(err, session.ErrConflict) {
				t.Errorf("%v, want ErrConflict", err)
			}
			all, err := s.Documents(t.Context(), "p")
			if err != nil || len(all) != 1 || all[0].Version != 1 {
				t.Errorf("documents: %+v, %v", all, err)
			}
			if open, err := s.OpenRecords(t.Context(), "p", "", 10); err != nil || len(open) != 1 {
				t.Errorf("open records: %v, %v", open, err)
			}
		})
	}
}

func TestVersionsAreKeptAndRestored(t *testing.T) {
	s := openStore(t, t.TempDir())
	name := session.DocumentDecisions
	ref := session.RecordRef{N: 7, ID: "rec_x"}
	consolidate(t, s, "p", written(name, 1, "old zebra [^7]", ref))
	consolidate(t, s, "p", written(name, 2, "new lion"))
	restored, err := s.RestoreDocument(t.Context(), "p", name, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Document(t.Context(), "p", name, 0)
	if diff := cmp.Diff(restored, got); diff != "" || err != nil || got.Version != 3 || got.Text != "old zebra [^7]" || got.RestoredFrom != 1 ||
		got.Reason != session.VersionRestored || len(got.Records) != 1 || got.Records[0] != ref {
		t.Errorf("restored %+v, read %+v, %v", restored, got, err)
	}
	versions, err := s.DocumentVersions(t.Context(), "p", name, 0, 2)
	if err != nil || len(versions) != 2 || versions[0].Version != 3 || versions[1].Version != 2 || versions[1].Text != "" || versions[1].TextBytes != 8 {
		t.Errorf("newest versions: %+v, %v", versions, err)
	}
	if versions, err = s.DocumentVersions(t.Context(), "p", name, 2, 2); err != nil || len(versions) != 1 || versions[0].Version != 1 {
		t.Errorf("versions before 2: %+v, %v", versions, err)
	}
	if versions, err = s.DocumentVersions(t.Context(), "p", name, 1, 2); err != nil || len(versions) != 0 {
		t.Errorf("versions before 1: %+v, %v", versions, err)
	}
	if zebra, lion := found(t, s, "p", "zebra"), found(t, s, "p", "lion"); len(zebra) != 1 || len(lion) != 0 {
		t.Errorf("found %v and %v, want only what the newest version says", zebra, lion)
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	s := openStore(t, t.TempDir())
	consolidate(t, s, "p", written(session.DocumentSummary, 1, "text"))
	attempts := map[string]func() error{
		"document": func() error { _, err := s.Document(t.Context(), "p", session.DocumentLessons, 0); return err },
		"version":  func() error { _, err := s.Document(t.Context(), "p", session.DocumentSummary, 2); return err },
		"project":  func() error { _, err := s.Document(t.Context(), "q", session.DocumentSummary, 0); return err },
		"versions": func() error {
			_, err := s.DocumentVersions(t.Context(), "p", session.DocumentLessons, 0, 9)
			return err
		},
		"restore":         func() error { _, err := s.RestoreDocument(t.Context(), "p", session.DocumentSummary, 2); return err },
		"restore of none": func() error { _, err := s.RestoreDocument(t.Context(), "p", session.DocumentLessons, 1); return err },
		"delete":          func() error { return s.DeleteDocument(t.Context(), "p", session.DocumentLessons) },
	}
	for name, try := range attempts {
		if err := try(); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	if all, err := s.Documents(t.Context(), "p"); err != nil || len(all) != 1 {
		t.Errorf("documents after that: %+v, %v", all, err)
	}
}

func TestDeletedDocumentLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	consolidate(t, s, "p", written(session.DocumentSummary, 1, "the word Xylophonist, 言葉"))
	consolidate(t, s, "p", written(session.DocumentSummary, 2, "the word Xylophonist again, 言葉"))
	c := newChatIn(t, s, "p")
	if text, err := s.Recall(t.Context(), c.lease.SessionID); err != nil || text == "" {
		t.Fatalf("recalled %q, %v", text, err)
	}
	if err := s.DeleteDocument(t.Context(), "p", session.DocumentSummary); err != nil {
		t.Fatal(err)
	}
	if hits := found(t, s, "p", "xylophonist"); len(hits) != 0 {
		t.Errorf("found %v", hits)
	}
	if text, err := s.Recall(t.Context(), c.lease.SessionID); err != nil || text != "" {
		t.Errorf("recalled %q, %v", text, err)
	}
	consolidate(t, s, "p", written(session.DocumentSummary, 1, "anew"))
	if text, err := s.Recall(t.Context(), c.lease.SessionID); err != nil || text != "" {
		t.Errorf("an old session recalls %q of a new document, %v", text, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"Xylophonist", "xylophonist", "言葉"} {
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("the file still has %q", word)
		}
	}
}

// newChatIn makes a session of a project.
func newChatIn(tb testing.TB, s *Store, project string) *chat {
	tb.Helper()
	lease, err := s.CreateSession(context.Background(), session.Session{ID: session.NewID(), Project: project, CreatedAt: session.Now()})
	if err != nil {
		tb.Fatal(err)
	}
	return &chat{tb: tb, store: s, lease: lease, at: session.Now()}
}

func TestSessionRecallsTheSummaryOfItsBeginning(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	recalls := func(c *chat) string {
		t.Helper()
		text, err := c.store.Recall(t.Context(), c.lease.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := newChatIn(t, s, "p")
	consolidate(t, s, "p", written(session.DocumentSummary, 1, "one"), written(session.DocumentLessons, 1, "no summary"))
	first, elsewhere := newChatIn(t, s, "p"), newChatIn(t, s, "q")
	consolidate(t, s, "p", written(session.DocumentSummary, 2, "two"))
	second := newChatIn(t, s, "p")
	if _, err := s.RestoreDocument(t.Context(), "p", session.DocumentSummary, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got := []string{recalls(before), recalls(first), recalls(elsewhere), recalls(second), recalls(newChatIn(t, s, "p"))}
		if diff := cmp.Diff([]string{"", "one", "", "two", "one"}, got); diff != "" {
			t.Error(diff)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, dir)
		before.store, first.store, elsewhere.store, second.store = s, s, s, s
	}
	if _, err := s.Recall(t.Context(), session.NewID()); err != nil {
		t.Errorf("recall of an unknown session: %v", err)
	}
}
