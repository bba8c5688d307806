package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"loadline/internal/session"
)

const lockName = "loadline.lock"

// makeFolder makes dir, for its owner only, unless it is there, and returns its
// absolute name.
func makeFolder(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data folder %q: %w", dir, err)
	}
	if err := os.MkdirAll(absolute, 0o700); err != nil {
		return "", fmt.Errorf("make the data folder: %w: %w; set store.dir to a folder that can be written", session.ErrStorage, err)
	}
	return absolute, nil
}

// lockFolder takes the folder for this process until the file it returns is closed,
// also by the end of the process. Whoever holds it is named in the error.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w: %w; make it writable or set store.dir to another one", session.ErrStorage, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 20)) // for the message only
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data folder %s: %w: %w", dir, session.ErrStorage, err)
		}
		return nil, fmt.Errorf("%w: another server (process %s) uses the data folder %s; stop it or set store.dir to another folder",
			session.ErrStorage, strings.TrimSpace(string(holder)), dir)
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the data folder %s: %w: %w", dir, session.ErrStorage, err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// unlock gives the folder back. The file stays: to remove it would let two
// processes hold locks on two files of the same name.
func unlock(f *os.File) {
	if f != nil {
		f.Close()
	}
}
