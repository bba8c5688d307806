package artifact

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is kept is copied with its age, what is being written is not.
func TestCopyTakesWhatIsKept(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, name := range []string{"ses_a/1", "ses_a/2.part", "ses_b/1"} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	var copiedBytes int64
	if err := Copy(t.Context(), from, to, func(copied int64) { copiedBytes = copied }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ses_a/1", "ses_b/1"} {
		text, err := os.ReadFile(filepath.Join(to, name))
		info, _ := os.Stat(filepath.Join(to, name))
		if err != nil || string(text) != name || !info.ModTime().Equal(old) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q, %v, %v", name, text, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(to, "ses_a/2.part")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an output that is not whole was copied: %v", err)
	}
	if want := int64(len("ses_a/1") + len("ses_b/1")); copiedBytes != want {
		t.Errorf("%d bytes were told, want %d", copiedBytes, want)
	}
}

// A server that sweeps meanwhile is no error.
func TestCopyLeavesOutWhatIsSwept(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	folder := filepath.Join(from, "ses_a")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2", "3"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := Copy(t.Context(), from, to, func(int64) { _ = os.RemoveAll(folder) }) // after the first one
	if err != nil {
		t.Fatal(err)
	}
	if copied, err := os.ReadDir(filepath.Join(to, "ses_a")); err != nil || len(copied) != 1 {
		t.Errorf("%d outputs were copied, %v, want 1", len(copied), err)
	}
}

func TestCopyEnds(t *testing.T) {
	from := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(from, "ses_a"), 0o700), os.WriteFile(filepath.Join(from, "ses_a/1"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if err := Copy(ctx, from, filepath.Join(t.TempDir(), "copy"), func(int64) {}); !errors.Is(err, stopped) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := Copy(t.Context(), filepath.Join(from, "none"), filepath.Join(t.TempDir(), "copy"), func(int64) {}); err != nil {
		t.Errorf("nothing was ever kept: %v", err)
	}
	if err := Copy(t.Context(), from, from, func(int64) {}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over what is there: %v", err)
	}
}
