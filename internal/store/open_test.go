package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

// openUnlocked opens a second store on a folder that is in use, as no server can.
func openUnlocked(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := open(context.Background(), dir, zerolog.Nop(), options{unlocked: true, busyTimeout: 20 * time.Millisecond})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// count is the number of rows of a table.
func count(tb testing.TB, s *Store, table string) (n int) {
	tb.Helper()
	if err := s.reader.db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	write := func(name, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name string
		make func(t *testing.T, dir string)
		sub  string
		want []string
	}{
		{"folder is a file", write("data", "x"), "data", []string{"data", "not a directory", "set store.dir"}},
		{"parent is a file", write("data", "x"), "data/below", []string{"not a directory", "set store.dir"}},
		{"not a database", write(fileName, strings.Repeat("this is no database\n", 400)), "", []string{fileName, "not a database", "restore it from a backup"}},
		{"database is a folder", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, fileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "", []string{fileName, "is a directory", "set store.dir"}},
		{"newer tables", func(t *testing.T, dir string) {
			s := openStore(t, dir)
			if _, err := s.reader.db.Exec("PRAGMA query_only(0); INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
				t.Fatal(err)
			}
			s.Close()
		}, "", []string{fileName, "version 99", "newer version", "run that version"}},
		{"in use", func(t *testing.T, dir string) { openStore(t, dir) }, "",
			[]string{"another server (process " + strconv.Itoa(os.Getpid()) + ")", "stop it or set store.dir"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.make(t, dir)
			s, err := Open(t.Context(), filepath.Join(dir, test.sub), zerolog.Nop())
			if err == nil {
				s.Close()
				t.Fatal("the store opened")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if !errors.Is(err, session.ErrStorage) {
				t.Errorf("error %v does not wrap ErrStorage", err)
			}
		})
	}
}

func TestFolderIsFreeAfterClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%20", "data")
	for range 2 {
		s := openStore(t, dir)
		if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, fileName+"-wal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write-ahead log is still there: %v", err)
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, fileName): 0o600} {
		stat, err := os.Stat(name)
		if err != nil || stat.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, stat.Mode(), err, want)
		}
	}
}

func TestDamagedFileIsAClearError(t *testing.T) {
	dir := t.TempDir()
	c := longChat(t, openStore(t, dir), 200)
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	stat, _ := f.Stat()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xA5}, int(stat.Size())/2), 40_960); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s, err := Open(t.Context(), dir, zerolog.Nop())
	if err == nil {
		defer s.Close()
		_, err = s.History(t.Context(), c.lease.SessionID)
	}
	if !errors.Is(err, session.ErrStorage) || !strings.Contains(err.Error(), "restore it from a backup") {
		t.Errorf("damaged file: %v", err)
	}
}

func TestLockedFileIsAClearErrorAndPasses(t *testing.T) {
	dir := t.TempDir()
	openStore(t, dir).Close()
	s := openUnlocked(t, dir)
	c := newChat(t, s)
	other, err := sql.Open("sqlite", dsn(s.path, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin() // immediate
	if err != nil {
		t.Fatal(err)
	}
	turn := c.newTurn("hello")
	err = c.try(c.queued(turn))
	if !errors.Is(err, session.ErrStorage) || !strings.Contains(err.Error(), "close the other program") {
		t.Errorf("append to a locked file: %v", err)
	}
	if _, err := s.Session(t.Context(), c.lease.SessionID); err != nil {
		t.Errorf("reading waits for a writer: %v", err)
	}
	tx.Rollback()
	c.must(c.queued(turn))
}
