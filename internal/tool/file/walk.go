package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	maxDepth         = 256     // folders in folders that a walk enters
	maxFolderEntries = 1 << 20 // in one folder
)

var errIgnored = errors.New("this is ignored by git (.gitignore), so it is not searched; Read still reads files in it")

// entry is a file, folder or link that a walk meets.
type entry struct {
	path string // relative to the project folder
	dir  *os.Root
	name string // in dir
	kind fs.FileMode
}

// walk goes through a folder and all that is below it in the order of the paths,
// without what is hidden, ignored by git, or git's own. Links are met, not followed.
type walk struct {
	view    *view
	descend func(path string) bool // whether to enter a folder
	visit   func(entry) error      // called for each entry; an error ends the walk
	skipped int                    // folders that could not be entered
}

// under walks through the folder at s. It fails when that folder is ignored.
func (w *walk) under(ctx context.Context, s *spot) error {
	rules := w.ignoreFile(nil, s.roots[0], ".git/info/exclude", "")
	for i := range s.roots {
		here := path.Join(s.names[:i]...)
		if i > 0 && (s.names[i-1] == ".git" || rules.ignores(here, true)) {
			return errIgnored
		}
		if i < len(s.names) {
			rules = w.ignoreFile(rules, s.roots[i], ".gitignore", here)
		}
	}
	return w.folder(ctx, s.dir(), path.Join(s.names...), rules, len(s.names))
}

// folder walks through the folder dir, named here, below which rules apply.
func (w *walk) folder(ctx context.Context, dir *os.Root, here string, rules *rules, depth int) error {
	entries, err := list(ctx, dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		rules = w.ignoreFile(rules, dir, ".gitignore", here)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := path.Join(here, e.Name())
		if e.Name() == ".git" || w.view.guard.hidesName(name) || rules.ignores(name, e.IsDir()) {
			continue
		}
		met := entry{path: name, dir: dir, name: e.Name(), kind: e.Type()}
		if !e.IsDir() {
			err = w.visit(met)
		} else {
			err = w.enter(ctx, met, rules, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter visits a folder and walks through it. A folder that cannot be opened is
// counted and passed over.
func (w *walk) enter(ctx context.Context, e entry, rules *rules, depth int) error {
	info, err := e.dir.Lstat(e.name)
	if err != nil || !info.IsDir() {
		return nil // gone since it was listed
	}
	if w.view.guard.hides(info) {
		return nil
	}
	if err := w.visit(e); err != nil || !w.descend(e.path) {
		return err
	}
	if depth > maxDepth {
		w.skipped++
		return nil
	}
	dir, err := openFolder(e.dir, e.name, info)
	if err != nil {
		w.skipped++
		return nil
	}
	defer dir.Close()
	return w.folder(ctx, dir, e.path, rules, depth)
}

// list returns the entries of a folder, a folder among them sorted as its path with
// a slash, so that a whole walk is in the order of the paths.
func list(ctx context.Context, dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []fs.DirEntry
	for err == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(all) > maxFolderEntries {
			return nil, fmt.Errorf("a folder has more than %d entries; search in a part of it", maxFolderEntries)
		}
		var some []fs.DirEntry
		some, err = f.ReadDir(4096)
		all = append(all, some...)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	return all, nil
}

func sortName(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// ignoreFile adds an ignore file to rules. One that is absent, hidden, or no
// regular file ignores nothing.
func (w *walk) ignoreFile(outer *rules, dir *os.Root, name, folder string) *rules {
	info, err := dir.Lstat(name)
	if err != nil {
		return outer
	}
	f, _, err := w.view.openFile(dir, name, info)
	if err != nil {
		return outer
	}
	defer f.Close()
	rules, err := outer.with(folder, f)
	if err != nil {
		return outer
	}
	return rules
}
