// Package storetest lets tests begin with an empty store without making its tables
// each time, which takes ten times as long as anything else about it, and under the
// race detector a fifth of a second.
package storetest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

const fileName = "loadline.db"

// Blank returns a function that puts an empty database into a folder, unless something
// is in it or it does not exist. The database is made once, by open, which opens a
// store in a new folder and closes it. Both are safe for concurrent use.
func Blank(open func(folder string) error) (fill func(tb testing.TB, folder string)) {
	blank := sync.OnceValues(func() ([]byte, error) {
		folder, err := os.MkdirTemp("", "loadline-blank-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		if err := open(folder); err != nil {
			return nil, err
		}
		return os.ReadFile(filepath.Join(folder, fileName))
	})
	return func(tb testing.TB, folder string) {
		tb.Helper()
		if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
			return
		}
		file, err := blank()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, fileName), file, 0o600)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}
