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
)

// Copy copies the outputs that are kept in the folder from into the new folder to. A
// server may use from meanwhile: what is swept before its turn comes is left out, and
// so is what is not written whole yet. All is on disk when Copy returns; after an error
// a part of it may be left. progress is told how many bytes have been copied so far.
func Copy(ctx context.Context, from, to string, progress func(copied int64)) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	folders, err := names(from)
	if err != nil {
		return err
	}
	var copiedBytes int64
	for _, folder := range folders {
		err := copyFolder(ctx, filepath.Join(from, folder), filepath.Join(to, folder), func(bytes int64) {
			copiedBytes += bytes
			progress(copiedBytes)
		})
		if err != nil {
			return err
		}
	}
	return syncFolder(to)
}

// copyFolder copies the outputs of one session.
func copyFolder(ctx context.Context, from, to string, copied func(bytes int64)) error {
	files, err := names(from)
	if err != nil || len(files) == 0 {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if strings.HasSuffix(name, unfinished) {
			continue
		}
		bytes, err := copyFile(filepath.Join(from, name), filepath.Join(to, name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // swept meanwhile
		case err != nil:
			return fmt.Errorf("copy %s: %w", filepath.Join(from, name), err)
		default:
			copied(bytes)
		}
	}
	return syncFolder(to)
}

// copyFile keeps the time of the last change: outputs are swept by their age.
func copyFile(from, to string) (bytes int64, err error) {
	source, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return 0, err
	}
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	bytes, err = io.Copy(target, source)
	if err == nil {
		err = target.Sync()
	}
	return bytes, errors.Join(err, target.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
