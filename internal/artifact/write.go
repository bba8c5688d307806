package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	blockBytes = 4096    // what a file fills on disk is a multiple of it
	unfinished = ".part" // ends the name of a file that is being written
)

// blocks is what a file of so many bytes fills on disk.
func blocks(bytes int64) int64 { return (max(bytes, 1) + blockBytes - 1) / blockBytes * blockBytes }

// write puts an output on disk under a passing name, then gives it its own. That
// name is on disk with the commit of the result, which follows, where a file system
// has one journal; elsewhere a machine that dies may lose it, as if it were swept.
func (k *Keeper) write(path, whole string) error {
	onDisk := blocks(int64(len(whole)))
	f, err := k.begin(path, onDisk)
	if err != nil {
		return err
	}
	err = fill(f, whole)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reservedBytes -= onDisk
	if err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err == nil {
		k.keptBytes += onDisk
		return nil
	}
	if removed := os.Remove(path + unfinished); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// begin makes room for an output, and opens the file that it is written to. Only the
// server's user can read it.
func (k *Keeper) begin(path string, onDisk int64) (*os.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.makeRoom(onDisk) {
		return nil, errQuota
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		k.reservedBytes += onDisk
	}
	return f, err
}

// fill writes all of an output and closes its file.
func fill(f *os.File, whole string) error {
	_, err := f.WriteString(whole)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
