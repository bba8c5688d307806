package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"loadline/internal/session"
)

// remembered is a model of one project's memory.
type remembered struct {
	store    *Store
	project  string
	versions map[session.DocumentName][]string // texts
	open     []session.RecordID
	closed   int
}

// TestMemoryIsNeverLost plays random work on memory against a model of it: versions
// are dense, no record is closed twice or lost, and what fails changes nothing.
func TestMemoryIsNeverLost(t *testing.T) {
	s := openStore(t, t.TempDir())
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		m := &remembered{store: s, project: fmt.Sprintf("p%d", runs), versions: map[session.DocumentName][]string{}}
		work := map[string]func(*rapid.T){"stage": m.stage, "consolidate": m.consolidate, "restore": m.restore, "delete": m.delete}
		names := slices.Sorted(maps.Keys(work))
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			work[rapid.SampledFrom(names).Draw(t, "work")](t)
		}
		m.check(t)
	})
}

func (m *remembered) stage(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "records")
	m.open = append(m.open, stage(t, m.store, m.project, slices.Repeat([]string{"claim"}, n)...)...)
}

func (m *remembered) consolidate(t *rapid.T) {
	name := rapid.SampledFrom(session.DocumentNames()).Draw(t, "name")
	next := int64(len(m.versions[name]) + 1)
	version := next + rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(t, "off")
	text := fmt.Sprintf("text %d", rapid.IntRange(0, 1000).Draw(t, "text"))
	c := session.Consolidation{Project: m.project, Documents: []session.Document{written(name, version, text)}}
	n := rapid.IntRange(0, len(m.open)).Draw(t, "closed")
	for _, id := range m.open[:n] {
		c.Closed = append(c.Closed, session.ClosedRecord{ID: id, Reason: rapid.SampledFrom(session.CloseReasons()).Draw(t, "reason")})
	}
	twice := n > 0 && rapid.IntRange(0, 4).Draw(t, "twice") == 0
	if twice {
		c.Closed = append(c.Closed, c.Closed[0])
	}
	err := m.store.Consolidate(context.Background(), c)
	if fits := version == next && !twice; fits != (err == nil) {
		t.Fatalf("version %d, wanted %d, twice %t: %v", version, next, twice, err)
	}
	if err == nil {
		m.versions[name] = append(m.versions[name], text)
		m.open, m.closed = m.open[n:], m.closed+n
	}
}

func (m *remembered) restore(t *rapid.T) {
	name := rapid.SampledFrom(session.DocumentNames()).Draw(t, "name")
	version := rapid.IntRange(1, 4).Draw(t, "version")
	d, err := m.store.RestoreDocument(context.Background(), m.project, name, int64(version))
	if known := version <= len(m.versions[name]); known != (err == nil) {
		t.Fatalf("restore %s %d of %d: %v", name, version, len(m.versions[name]), err)
	}
	if err == nil {
		m.versions[name] = append(m.versions[name], d.Text)
	}
}

func (m *remembered) delete(t *rapid.T) {
	name := rapid.SampledFrom(session.DocumentNames()).Draw(t, "name")
	if err := m.store.DeleteDocument(context.Background(), m.project, name); (err == nil) != (len(m.versions[name]) > 0) {
		t.Fatalf("delete %s of %d versions: %v", name, len(m.versions[name]), err)
	}
	delete(m.versions, name)
}

// check compares all of it.
func (m *remembered) check(t *rapid.T) {
	t.Helper()
	newest, err := m.store.Documents(context.Background(), m.project)
	if err != nil || len(newest) != len(m.versions) {
		t.Fatalf("documents: %+v, %v, want %d", newest, err, len(m.versions))
	}
	for _, d := range newest {
		if d.Version != int64(len(m.versions[d.Name])) {
			t.Fatalf("newest %s: %d, want %d", d.Name, d.Version, len(m.versions[d.Name]))
		}
		for i, text := range m.versions[d.Name] {
			if d, err := m.store.Document(context.Background(), m.project, d.Name, int64(i+1)); err != nil || d.Text != text {
				t.Fatalf("%s %d: %q, %v, want %q", d.Name, i+1, d.Text, err, text)
			}
		}
	}
	records, err := m.store.Records(context.Background(), m.project, "", "", "", 1000)
	if err != nil || len(records) != len(m.open)+m.closed {
		t.Fatalf("%d records, %v, want %d open and %d closed", len(records), err, len(m.open), m.closed)
	}
	left, err := m.store.OpenRecords(context.Background(), m.project, "", 1000)
	if err != nil || !slices.EqualFunc(left, m.open, func(r session.Record, id session.RecordID) bool { return r.ID == id }) {
		t.Fatalf("open: %v, %v, want %v", left, err, m.open)
	}
}
