package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"loadline/internal/tool"
)

const (
	maxPathBytes  = 4096
	maxLinks      = 40  // symbolic links followed for one path
	maxShownBytes = 200 // of a path in a summary
)

var (
	errAbsent  = errors.New("no such file or folder; see what there is with Glob")
	errOutside = errors.New("this leads outside the project folder; give a path inside it, relative to it")
	errHidden  = errors.New("this belongs to the server and cannot be changed by tools")
	errLinks   = errors.New("too many symbolic links, or links in a loop")
	errSwapped = errors.New("changed while it was being opened; try again")
	errChanged = errors.New("somebody else changed it meanwhile; read it again")
	errFolder  = errors.New("this is a folder, not a file; list it with Glob")
)

// view is the workspace as one call sees it.
type view struct {
	w     *Workspace
	guard *guard
	write bool // missing folders of a path are made, and a hidden path is refused by name
}

func (w *Workspace) view() *view { return &view{w: w, guard: w.newGuard()} }

// refusal is the answer to a path that is hidden.
func (v *view) refusal() error {
	if v.write {
		return errHidden
	}
	return errAbsent
}

// spot is where a path leads: an open folder, and a name in it that is no link.
type spot struct {
	view  *view
	roots []*os.Root // the folders on the way, open; the first is the workspace's own
	names []string   // of roots[1:]
	name  string     // the last element; empty when the spot is the folder itself
	info  fs.FileInfo
}

func (s *spot) close() {
	for len(s.names) > 0 {
		s.up()
	}
}

func (s *spot) up() {
	_ = s.dir().Close() // a folder opened to look things up: nothing can be lost
	s.roots = s.roots[:len(s.roots)-1]
	s.names = s.names[:len(s.names)-1]
}

func (s *spot) dir() *os.Root { return s.roots[len(s.roots)-1] }

// path is where the spot really is, relative to the project folder; "." is that folder.
func (s *spot) path() string {
	return path.Join(path.Join(s.names...), s.name, ".")
}

// inside makes path relative to the project folder. Only its form is checked.
func (w *Workspace) inside(path string) (string, error) {
	switch {
	case len(path) > maxPathBytes:
		return "", fmt.Errorf("a path has at most %d bytes", maxPathBytes)
	case strings.IndexByte(path, 0) >= 0:
		return "", errors.New("a path has no NUL in it")
	case !filepath.IsAbs(path):
		return path, nil
	}
	for _, name := range w.names {
		if within(path, name) {
			return "./" + path[len(name):], nil
		}
	}
	return "", errOutside
}

// resolve follows path through links to where it really leads, holding each folder
// open on the way. The caller closes the spot if err is nil.
func (v *view) resolve(path string) (*spot, error) {
	rel, err := v.w.inside(path)
	if err != nil {
		return nil, err
	}
	s := &spot{view: v, roots: []*os.Root{v.w.root}}
	rest, links := strings.Split(rel, "/"), 0
	for len(rest) > 0 {
		var link string
		if link, err = s.step(rest[0], len(rest) == 1); err != nil {
			s.close()
			return nil, err
		}
		rest = rest[1:]
		if link == "" {
			continue
		}
		if rest, err = s.follow(link, rest); err == nil && links == maxLinks {
			err = errLinks
		}
		if err != nil {
			s.close()
			return nil, err
		}
		links++
	}
	return s, nil
}

// step goes on by one element of a path. It returns the target when that is a link.
func (s *spot) step(name string, last bool) (link string, err error) {
	switch name {
	case "", ".":
		return "", nil
	case "..":
		if len(s.names) == 0 {
			return "", errOutside
		}
		s.up()
		return "", nil
	}
	if s.view.guard.hidesName(path.Join(s.path(), name)) {
		return "", s.view.refusal()
	}
	info, err := s.dir().Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && s.view.write && !last {
		if err = s.dir().Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = s.dir().Lstat(name)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && last:
		s.name = name
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		return "", errAbsent
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink != 0:
		return s.dir().Readlink(name)
	case info.IsDir():
		return "", s.enter(name, info)
	case !last:
		return "", fmt.Errorf("%s is no folder", shown(path.Join(s.path(), name)))
	}
	s.name, s.info = name, info
	return "", nil
}

// follow puts the target of a link before the rest of the path.
func (s *spot) follow(target string, rest []string) ([]string, error) {
	if filepath.IsAbs(target) {
		s.close()
	}
	rel, err := s.view.w.inside(target)
	if err != nil {
		return nil, err
	}
	return append(strings.Split(rel, "/"), rest...), nil
}

// enter opens the folder name, of which info was seen before.
func (s *spot) enter(name string, info fs.FileInfo) error {
	dir, err := openFolder(s.dir(), name, info)
	if err != nil {
		return err
	}
	if s.view.guard.hides(info) {
		_ = dir.Close()
		return s.view.refusal()
	}
	s.roots = append(s.roots, dir)
	s.names = append(s.names, name)
	return nil
}

// openFolder opens a folder and makes sure that it is the one that info describes
// and no link put into its place.
func openFolder(parent *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errSwapped
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// open opens the regular file at the spot for reading.
func (s *spot) open() (*os.File, fs.FileInfo, error) {
	switch {
	case s.name == "":
		return nil, nil, errFolder
	case s.info == nil:
		return nil, nil, errAbsent
	}
	return s.view.openFile(s.dir(), s.name, s.info)
}

// openFile opens a file that info describes. It never waits, and opens nothing but
// regular files.
func (v *view) openFile(dir *os.Root, name string, info fs.FileInfo) (*os.File, fs.FileInfo, error) {
	if err := checkRegular(info); err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		err = checkRegular(opened)
	}
	switch {
	case err != nil:
	case !os.SameFile(info, opened):
		err = errSwapped
	case v.guard.hides(opened):
		err = v.refusal()
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, opened, nil
}

func checkRegular(info fs.FileInfo) error {
	kind := "special file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errFolder
	case mode&fs.ModeNamedPipe != 0:
		kind = "named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	case mode&fs.ModeDevice != 0:
		kind = "device"
	}
	return fmt.Errorf("this is a %s; only regular files can be used", kind)
}

// quoted makes a path fit for a line of output: it is quoted where it holds what
// would break the line or cannot be seen.
func quoted(path string) string {
	if utf8.ValidString(path) && !strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return path
	}
	return strconv.Quote(path)
}

// shown is path quoted, and cut where it is too long for a summary.
func shown(path string) string {
	path = quoted(path)
	if len(path) <= maxShownBytes {
		return path
	}
	return tool.Cut(path, maxShownBytes) + "…"
}
