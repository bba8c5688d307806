package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

// history is a Log and Results in memory.
type history struct {
	mu         sync.Mutex // guards the fields below
	sessions   map[session.ID]map[int64]session.Item
	unfinished []session.ID
}

func (h *history) Session(_ context.Context, id session.ID) (session.Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.sessions[id]; !ok {
		return session.Session{}, session.ErrNotFound
	}
	return session.Session{ID: id}, nil
}

func (h *history) Unfinished(context.Context) ([]session.ID, error) { return h.unfinished, nil }

func (h *history) Item(_ context.Context, id session.ID, n int64) (session.Item, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	item, ok := h.sessions[id][n]
	if !ok {
		return item, session.ErrNotFound
	}
	return item, nil
}

func (h *history) CutResults(_ context.Context, id session.ID, before int64, limit int) ([]session.Item, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []session.Item
	for n := before - 1; n > 0 && len(found) < limit; n-- {
		if item, ok := h.sessions[id][n]; ok && item.ToolResult != nil && item.ToolResult.Truncated != nil {
			found = append(found, item)
		}
	}
	return found, nil
}

// add makes a session.
func (h *history) add(id session.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[id] = map[int64]session.Item{}
}

// commit stores a cut result with what was kept of it.
func (h *history) commit(id session.ID, n int64, tool string, kept *session.KeptOutput, originalBytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[id][n] = session.Item{N: n, SessionID: id, Kind: session.KindToolResult, ToolResult: &session.ToolResult{
		Tool: tool, Summary: "s", KeptOutput: kept, Truncated: &session.Truncated{OriginalBytes: originalBytes},
	}}
}

// shelf is a keeper and the history that it belongs to.
type shelf struct {
	*Keeper
	t       *testing.T
	history *history
	id      session.ID
	config  Config
}

func newShelf(t *testing.T, quotaBytes int64) *shelf {
	t.Helper()
	id := session.NewID()
	h := &history{sessions: map[session.ID]map[int64]session.Item{id: {}}}
	s := &shelf{t: t, history: h, id: id, config: Config{
		Dir: filepath.Join(t.TempDir(), "outputs"), QuotaBytes: quotaBytes, MaxAge: time.Hour, Log: h, Logger: zerolog.New(t.Output()),
	}}
	s.boot()
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *shelf) boot() {
	s.t.Helper()
	var err error
	if s.Keeper, err = Open(s.t.Context(), s.config); err != nil {
		s.t.Fatal(err)
	}
}

// files lists what is on disk, relative to the folder of all.
func (s *shelf) files() []string {
	s.t.Helper()
	all := []string{}
	err := filepath.WalkDir(s.config.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(s.config.Dir, path)
			all = append(all, strings.TrimPrefix(name, string(s.id)+"/"))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

func (s *shelf) wantFiles(want ...string) {
	s.t.Helper()
	if got := s.files(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("files %v, want %v", got, want)
	}
}

// keepAged keeps an output of one block and makes it so old.
func (s *shelf) keepAged(n int64, age time.Duration) {
	s.t.Helper()
	kept := s.Keep(s.id, n, "text")
	if kept.Error != "" {
		s.t.Fatalf("output %d is not kept: %+v", n, kept)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(s.path(s.id, n), at, at); err != nil {
		s.t.Fatal(err)
	}
}

func TestKeptOutputComesBackByteForByte(t *testing.T) {
	s := newShelf(t, 1<<20)
	want := strings.Repeat("日\ufffd\n", 5000)
	if kept := s.Keep(s.id, 3, want); kept != (session.KeptOutput{Bytes: int64(len(want))}) {
		t.Fatalf("Keep = %+v", kept)
	}
	s.Close()
	s.boot()
	f, err := s.Output(s.id, 3, int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); string(got) != want || err != nil {
		t.Errorf("%d bytes come back of %d, %v", len(got), len(want), err)
	}
	info, err := os.Stat(s.path(s.id, 3))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	for _, c := range []struct{ n, bytes int64 }{{4, 1}, {3, 1}} {
		if _, err := s.Output(s.id, c.n, c.bytes); !errors.Is(err, session.ErrOutputGone) {
			t.Errorf("output %d of %d bytes: %v, want ErrOutputGone", c.n, c.bytes, err)
		}
	}
	s.Delete(s.id)
	s.Delete(session.NewID())
	s.wantFiles()
}

func TestDiskThatRefusesIsACode(t *testing.T) {
	s := newShelf(t, 1<<20)
	if err := os.MkdirAll(s.path(s.id, 3), 0o700); err != nil { // no file can have this name
		t.Fatal(err)
	}
	if kept := s.Keep(s.id, 3, "text"); kept != (session.KeptOutput{Error: "io"}) {
		t.Errorf("Keep = %+v", kept)
	}
	s.wantFiles()
	if s.keptBytes != 0 || s.reservedBytes != 0 {
		t.Errorf("it counts %d and %d bytes", s.keptBytes, s.reservedBytes)
	}
	if err := os.RemoveAll(s.config.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config.Dir, nil, 0o600); err != nil { // a file in the way of the folder
		t.Fatal(err)
	}
	if kept := s.Keep(s.id, 3, "text"); kept != (session.KeptOutput{Error: "io"}) {
		t.Errorf("Keep = %+v", kept)
	}
	if err := os.Remove(s.config.Dir); err != nil {
		t.Fatal(err)
	}
	if kept := s.Keep(s.id, 3, "text"); kept.Error != "" {
		t.Errorf("when the disk is well again: %+v", kept)
	}
}

// A disk that is full in the middle of an output: /dev/full takes nothing.
func TestFullDiskLeavesNothingBehind(t *testing.T) {
	s := newShelf(t, 1<<20)
	if err := os.MkdirAll(s.folder(s.id), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/full", s.path(s.id, 3)+unfinished); err != nil {
		t.Fatal(err)
	}
	if kept := s.Keep(s.id, 3, "text"); kept != (session.KeptOutput{Error: "io"}) {
		t.Errorf("Keep = %+v", kept)
	}
	s.wantFiles()
	if s.keptBytes != 0 || s.reservedBytes != 0 {
		t.Errorf("it counts %d and %d bytes", s.keptBytes, s.reservedBytes)
	}
}

func TestManyAtOnceStayInTheQuota(t *testing.T) {
	s := newShelf(t, 20*blockBytes)
	var wg sync.WaitGroup
	for worker := range int64(8) {
		wg.Go(func() {
			id := session.NewID()
			s.history.add(id)
			for n := range int64(20) {
				if kept := s.Keep(id, n+1, strings.Repeat("x", int(worker)*1500+1)); kept.Error != "" {
					t.Errorf("Keep = %+v", kept)
				}
			}
		})
	}
	wg.Wait()
	var onDisk int64
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.Keeper.files() {
		onDisk += f.onDisk
	}
	if onDisk > s.QuotaBytes || onDisk != s.keptBytes || s.reservedBytes != 0 {
		t.Errorf("%d bytes are on disk, %d and %d are counted, of %d", onDisk, s.keptBytes, s.reservedBytes, s.QuotaBytes)
	}
}
