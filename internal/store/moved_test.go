package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline/internal/session"
)

// What is written to a file that nobody will find again is not acknowledged.
func TestMovedFileRefusesWrites(t *testing.T) {
	for name, move := range map[string]func(t *testing.T, dir string) (back func()){
		"renamed": func(t *testing.T, dir string) func() {
			if err := os.Rename(dir, dir+"-moved"); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.Rename(dir+"-moved", dir); err != nil {
					t.Fatal(err)
				}
			}
		},
		"deleted": func(t *testing.T, dir string) func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			c := newChat(t, openStore(t, dir))
			back := move(t, dir)
			rename := func() error {
				_, err := c.store.UpdateSession(t.Context(), c.lease.SessionID, new("title"), nil)
				return err
			}
			if err := rename(); !errors.Is(err, session.ErrStorage) || !strings.Contains(err.Error(), "moved or deleted") {
				t.Errorf("error %v", err)
			}
			if back == nil {
				return
			}
			back()
			if err := rename(); err != nil {
				t.Errorf("after it was put back: %v", err)
			}
		})
	}
}
