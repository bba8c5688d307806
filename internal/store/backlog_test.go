package store

import (
	"database/sql"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"loadline/internal/session"
)

// Whatever is appended and consumed: the counters are those of the items after the
// pointer, and a session is listed as long as it has some.
func TestBacklogIsCountedRight(t *testing.T) {
	s := openStore(t, t.TempDir())
	rapid.Check(t, func(rt *rapid.T) {
		c := newChat(t, s)
		var notes []session.Note
		pointer := 0
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if left := len(notes) - pointer; left > 0 && rapid.Bool().Draw(rt, "extract") {
				to := pointer + rapid.IntRange(1, left).Draw(rt, "items")
				if err := c.extracted(session.Extracted{From: int64(pointer + 1), To: int64(to), Bytes: noteBytes(notes[pointer:to])}); err != nil {
					rt.Fatal(err)
				}
				pointer = to
			} else {
				items := rapid.SliceOfN(rapid.SampledFrom(everyKind()), 1, 5).Draw(rt, "append")
				for _, item := range c.turnOf(items...) {
					notes = append(notes, session.NoteOf(&item))
				}
			}
			b := c.backlog()
			if b.Pointer != int64(pointer) || b.Items != int64(len(notes)-pointer) || b.Bytes != noteBytes(notes[pointer:]) {
				rt.Fatalf("backlog %+v, want %d items of %d bytes after %d", b, len(notes)-pointer, noteBytes(notes[pointer:]), pointer)
			}
			ids, err := s.Backlogs(t.Context(), "default", 0)
			if listed := slices.Contains(ids, c.lease.SessionID); err != nil || listed != (b.Items > 0) {
				rt.Fatalf("it is listed: %t, with %d items, %v", listed, b.Items, err)
			}
		}
	})
}

func noteBytes(notes []session.Note) (sum int64) {
	for i := range notes {
		sum += notes[i].Bytes()
	}
	return sum
}

// A store of a time before extraction has its backlogs counted when it is opened.
func TestOldSessionsGetTheirBacklog(t *testing.T) {
	dir := t.TempDir()
	c := newChat(t, openStore(t, dir))
	c.turnOf(everyKind()...)
	want := c.backlog()
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	copyToFirstVersion(t, c.store.path, filepath.Join(old, fileName))
	s, err := Open(t.Context(), old, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Backlog(t.Context(), c.lease.SessionID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	items, bytes, err := s.BacklogTotal(t.Context(), "default")
	if items != want.Items || bytes != want.Bytes || err != nil {
		t.Errorf("in all %d items of %d bytes, %v", items, bytes, err)
	}
}

// copyToFirstVersion makes a database in the first form of the tables.
func copyToFirstVersion(t *testing.T, from, to string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(to, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	migrations, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	const columns = "row, id, project, title, metadata, generation, queued, running, last_seq, created_at, updated_at"
	const turnColumns = "row, session, id, state, input, mode, created_at, started_at, ended_at, steps, input_tokens, cached_input_tokens, output_tokens, error_code, error_detail"
	for _, statement := range []string{
		"ATTACH '" + from + "' AS new",
		"INSERT INTO sessions (" + columns + ") SELECT " + columns + " FROM new.sessions",
		"INSERT INTO turns (" + turnColumns + ") SELECT " + turnColumns + " FROM new.turns",
		"INSERT INTO log SELECT * FROM new.log",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
