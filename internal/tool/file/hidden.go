package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// guard knows the hidden paths as they are during one call.
type guard struct {
	names []string // of hidden paths, absolute
	real  string   // absolute name of the project folder, without links
	infos []fs.FileInfo
	trees []string       // hidden folders
	inner map[inode]bool // files in trees that have a second name; nil until needed
}

type inode struct{ device, number uint64 }

func (w *Workspace) newGuard() *guard {
	g := &guard{names: w.hidden, real: w.names[len(w.names)-1]}
	for _, path := range w.hidden {
		info, err := os.Stat(path)
		if err != nil {
			continue // it does not exist yet; its name is hidden all the same
		}
		g.infos = append(g.infos, info)
		if info.IsDir() {
			g.trees = append(g.trees, path)
		}
	}
	return g
}

// hidesName reports whether the path, relative to the project folder and without
// links in it, is hidden.
func (g *guard) hidesName(path string) bool {
	abs := filepath.Join(g.real, path)
	for _, name := range g.names {
		if within(abs, name) {
			return true
		}
	}
	return false
}

// hides reports whether a file or folder is hidden, whatever its name. The info is
// that of the open file where it matters, so nothing can be swapped afterwards.
func (g *guard) hides(info fs.FileInfo) bool {
	for _, hidden := range g.infos {
		if os.SameFile(hidden, info) {
			return true
		}
	}
	id, links := identify(info)
	if info.IsDir() || links < 2 || len(g.trees) == 0 {
		return false
	}
	if g.inner == nil {
		g.inner = linkedFiles(g.trees)
	}
	return g.inner[id]
}

// linkedFiles finds the files in the folders that have more than one name.
func linkedFiles(folders []string) map[inode]bool {
	found := map[inode]bool{}
	for _, folder := range folders {
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil // gone meanwhile: what is gone needs no hiding
			}
			info, err := entry.Info()
			if err != nil || info.IsDir() {
				return nil
			}
			if id, links := identify(info); links > 1 {
				found[id] = true
			}
			return nil
		})
	}
	return found
}

func identify(info fs.FileInfo) (id inode, links uint64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, 1
	}
	return inode{uint64(stat.Dev), uint64(stat.Ino)}, uint64(stat.Nlink)
}
