package file

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"github.com/google/uuid"

	"loadline/internal/session"
	"loadline/internal/tool"
)

//go:embed write.md
var writeText string

func writeSpec() session.ToolSpec {
	return spec("Write", writeText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"File to write, relative to the project folder."},`+
		`"content":{"type":"string","description":"All that the file shall hold."}},`+
		`"required":["path","content"],"additionalProperties":false}`)
}

func (w *Workspace) write(ctx context.Context, call tool.Call) (session.Output, error) {
	var args struct {
		Path    string
		Content *string
	}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	if args.Path == "" || args.Content == nil {
		return session.Output{}, badArguments(`"path" and "content" are required`)
	}
	created, err := w.writeWhole(ctx, args.Path, []byte(*args.Content))
	if err != nil {
		return failed(ctx, "Write", args.Path, err)
	}
	did := "replaced"
	if created {
		did = "created"
	}
	return session.Output{Summary: fmt.Sprintf("Write %s: %s, %s", shown(args.Path), did, plural(int64(len(*args.Content)), "byte"))}, nil
}

// writeWhole writes the file at path and reports whether it is new.
func (w *Workspace) writeWhole(ctx context.Context, path string, content []byte) (created bool, err error) {
	unlock, err := w.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	v := w.view()
	v.write = true
	s, err := v.resolve(path)
	if err != nil {
		return false, err
	}
	defer s.close()
	if s.name == "" {
		return false, errFolder
	}
	if s.info != nil {
		if err := checkRegular(s.info); err != nil {
			return false, err
		}
	}
	return s.info == nil, s.replace(ctx, content)
}

// replace puts a new file into the place of the one at the spot, all at once and
// safe from a power cut. Permissions are kept. It fails when another file has come
// into the place since the spot was resolved, or the file there has changed.
func (s *spot) replace(ctx context.Context, content []byte) (err error) {
	if s.info != nil && s.view.guard.hides(s.info) {
		return errHidden
	}
	temporary := ".loadline-" + uuid.NewString() + ".tmp"
	f, err := s.dir().OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.dir().Remove(temporary) // the error that led here is the one to tell
		}
	}()
	if err := s.fill(f, content); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.unchanged(); err != nil {
		return err
	}
	if err := s.dir().Rename(temporary, s.name); err != nil {
		return err
	}
	return syncFolder(s.dir())
}

// fill writes content to f, makes it durable and closes f.
func (s *spot) fill(f *os.File, content []byte) error {
	_, err := f.Write(content)
	if err == nil && s.info != nil {
		err = f.Chmod(s.info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (s *spot) unchanged() error {
	now, err := s.dir().Lstat(s.name)
	switch {
	case s.info == nil && err != nil:
		return nil
	case s.info == nil || err != nil:
		return errChanged
	case !os.SameFile(s.info, now) || !s.info.ModTime().Equal(now.ModTime()) || s.info.Size() != now.Size():
		return errChanged
	}
	return nil
}

// syncFolder makes a rename in a folder durable.
func syncFolder(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
