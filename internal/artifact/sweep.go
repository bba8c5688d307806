package artifact

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"loadline/internal/session"
)

const (
	sweepEvery = time.Hour
	// abandonedAfter is the age of a file that nobody writes any more.
	abandonedAfter = 10 * time.Minute
)

// dropUncommitted removes the files that a killed process wrote but whose results it
// did not commit: in sessions with a turn that has not ended, those of which the
// history says nothing.
func (k *Keeper) dropUncommitted(ctx context.Context) error {
	ids, err := k.Log.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		names, err := names(k.folder(id))
		if err != nil { // a server without kept outputs is better than none
			k.Logger.Warn().Err(err).Str("session", string(id)).Msg("kept outputs cannot be compared with the history")
		}
		for _, name := range names {
			committed, err := k.committed(ctx, id, name)
			if err != nil {
				return err
			}
			if !committed {
				k.remove(filepath.Join(k.folder(id), name))
			}
		}
	}
	return nil
}

// committed reports whether a result of the history says that this file is kept.
func (k *Keeper) committed(ctx context.Context, id session.ID, name string) (bool, error) {
	n, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return false, nil
	}
	item, err := k.Log.Item(ctx, id, n)
	if errors.Is(err, session.ErrNotFound) {
		return false, nil
	}
	return err == nil && item.ToolResult != nil && item.ToolResult.KeptOutput != nil && item.ToolResult.KeptOutput.Error == "", err
}

// names lists what is in a folder; nothing when there is no such folder.
func names(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// keepSweeping sweeps now and every hour, until ctx ends.
func (k *Keeper) keepSweeping(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		k.sweep(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweep removes the outputs of deleted sessions, those that are too old, and the
// oldest beyond the quota.
func (k *Keeper) sweep(ctx context.Context) {
	folders, err := names(k.Dir)
	if err != nil {
		k.Logger.Warn().Err(err).Msg("kept outputs cannot be swept")
		return
	}
	for _, name := range folders {
		_, err := k.Log.Session(ctx, session.ID(name))
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, session.ErrNotFound) {
			k.Delete(session.ID(name))
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shrink(k.QuotaBytes - k.reservedBytes)
}

// makeRoom sweeps when so many bytes more would be beyond the quota, then somewhat
// below it, and reports whether there is room now. The mu is held.
func (k *Keeper) makeRoom(onDisk int64) bool {
	if onDisk > k.QuotaBytes-k.reservedBytes {
		return false
	}
	if k.keptBytes+k.reservedBytes+onDisk > k.QuotaBytes {
		k.shrink(k.QuotaBytes - k.QuotaBytes/10 - k.reservedBytes - onDisk)
	}
	return k.keptBytes+k.reservedBytes+onDisk <= k.QuotaBytes
}

// file is a file in the folder of a session.
type file struct {
	path   string
	onDisk int64
	at     time.Time // of its last change
}

// shrink removes outputs that are too old, then the oldest until no more than
// targetBytes are left, and counts what is left. The mu is held.
func (k *Keeper) shrink(targetBytes int64) {
	files := k.files()
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path))
	})
	k.keptBytes = 0
	for _, f := range files {
		k.keptBytes += f.onDisk
	}
	now := time.Now()
	for _, f := range files {
		if now.Sub(f.at) <= k.MaxAge && k.keptBytes <= targetBytes {
			break
		}
		if k.remove(f.path) {
			k.keptBytes -= f.onDisk
		}
	}
}

// files lists the outputs of all sessions. On the way it removes what an abandoned
// write left.
func (k *Keeper) files() []file {
	var files []file
	folders, _ := names(k.Dir) // what cannot be read cannot be swept either
	for _, folder := range folders {
		folder = filepath.Join(k.Dir, folder)
		inside, _ := names(folder)
		for _, name := range inside {
			path := filepath.Join(folder, name)
			info, err := os.Lstat(path)
			switch {
			case err != nil || !info.Mode().IsRegular(): // gone meanwhile, or none of ours
			case !strings.HasSuffix(name, unfinished):
				files = append(files, file{path, blocks(info.Size()), info.ModTime()})
			case time.Since(info.ModTime()) > abandonedAfter:
				k.remove(path)
			}
		}
	}
	return files
}

// remove removes a file, and the folder of its session when that was the last one.
func (k *Keeper) remove(path string) bool {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Logger.Warn().Err(err).Msg("kept output is not swept yet")
		return false
	}
	_ = os.Remove(filepath.Dir(path)) // unless others are in it
	return true
}
