// Package file holds the tools that work on the files of a project: Read, Glob and
// Grep, and Write and Edit where the project may be written.
//
// All of them stay inside the project's folder: neither "..", an absolute path, a
// symbolic link nor a swap between check and use leads out of it, because every
// name is opened one element at a time beneath an open folder and checked once it
// is open. Only regular files are read.
package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// Workspace is the folder of a project. It is safe for concurrent use.
type Workspace struct {
	root            *os.Root
	names           []string // absolute names of the folder: as given, and without links
	hidden          []string // absolute paths, each also without links
	captureMaxBytes int
	writing         chan struct{} // holds a token while a file is being changed
}

// Open opens the folder root, which must exist. The hidden paths, folders with all
// that is in them, cannot be seen or changed by any tool, whatever name or link
// leads to them; they need not exist yet. A tool collects at most captureMaxBytes
// of output. The caller closes the Workspace when no tool runs any more.
func Open(root string, hidden []string, captureMaxBytes int) (*Workspace, error) {
	names, err := bothNames(root)
	if err != nil {
		return nil, fmt.Errorf("project folder: %w", err)
	}
	w := &Workspace{names: names, captureMaxBytes: captureMaxBytes, writing: make(chan struct{}, 1)}
	for _, path := range hidden {
		both, err := bothNames(path)
		if err != nil {
			return nil, fmt.Errorf("hidden path: %w", err)
		}
		w.hidden = append(w.hidden, both...)
	}
	for _, path := range w.hidden {
		for _, name := range names {
			if within(name, path) {
				return nil, fmt.Errorf("project folder %s lies in %s, which no tool may see: choose another project or data folder", root, path)
			}
		}
	}
	if w.root, err = os.OpenRoot(root); err != nil {
		return nil, fmt.Errorf("project folder: %w", err)
	}
	return w, nil
}

// Close lets go of the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// ReadTools are the tools that change nothing: Read, Glob and Grep.
func (w *Workspace) ReadTools() []tool.Tool {
	return []tool.Tool{
		&fileTool{spec: readSpec(), run: w.read},
		&fileTool{spec: globSpec(), run: w.glob},
		&fileTool{spec: grepSpec(), run: w.grep},
	}
}

// WriteTools are the tools that change files: Write and Edit.
func (w *Workspace) WriteTools() []tool.Tool {
	return []tool.Tool{
		&fileTool{spec: writeSpec(), run: w.write},
		&fileTool{spec: editSpec(), run: w.edit},
	}
}

// lock waits until no other call changes a file, so that two edits of one file in
// the same step both take effect. The caller calls unlock if err is nil.
func (w *Workspace) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case w.writing <- struct{}{}:
		return func() { <-w.writing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type fileTool struct {
	spec session.ToolSpec
	run  func(context.Context, tool.Call) (session.Output, error)
}

func (t *fileTool) Spec() session.ToolSpec { return t.spec }

func (t *fileTool) Run(ctx context.Context, call tool.Call) (session.Output, error) {
	return t.run(ctx, call)
}

// readSpecOf is the spec of a tool that changes nothing.
func readSpecOf(name, description, parameters string) session.ToolSpec {
	s := spec(name, description, parameters)
	s.Effect = session.EffectRead
	return s
}

func spec(name, description, parameters string) session.ToolSpec {
	return session.ToolSpec{Name: name, Description: strings.TrimSpace(description), Parameters: json.RawMessage(parameters)}
}

// failed is the output of a call that could not do what it was asked on path. The
// end of ctx is no such thing: it is returned as the error that it is.
func failed(ctx context.Context, name, path string, err error) (session.Output, error) {
	if ctx.Err() != nil {
		return session.Output{}, context.Cause(ctx)
	}
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		err = wrong.Err // the path is named below, as the model knows it
	}
	return session.Output{
		Summary: name + " " + shown(path) + ": failed",
		Content: session.Text(shown(path) + ": " + err.Error()),
		Failed:  true,
	}, nil
}

func badArguments(format string, args ...any) error {
	return fmt.Errorf("%w: %s", tool.ErrArguments, fmt.Sprintf(format, args...))
}

// bothNames makes path absolute, as it is and with its links resolved as far as
// it exists.
func bothNames(path string) ([]string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	existing, rest := abs, ""
	for {
		unlinked, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return []string{abs, filepath.Join(unlinked, rest)}, nil
		}
		if existing == filepath.Dir(existing) {
			return []string{abs}, nil
		}
		existing, rest = filepath.Dir(existing), filepath.Join(filepath.Base(existing), rest)
	}
}

// within reports whether the clean path is folder or lies in it.
func within(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, folder)
	return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator)))
}
