package file

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// maxEditBytes is the largest file that Edit changes.
const maxEditBytes = 16 << 20

//go:embed edit.md
var editText string

func editSpec() session.ToolSpec {
	return spec("Edit", editText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"File to change, relative to the project folder."},`+
		`"old":{"type":"string","description":"Text to replace, exactly as it is in the file."},`+
		`"new":{"type":"string","description":"Text to put in its place."},`+
		`"all":{"type":"boolean","description":"Replace each occurrence; default false: old must occur once."}},`+
		`"required":["path","old","new"],"additionalProperties":false}`)
}

// edit is one change of a text.
type edit struct {
	old, new string
	all      bool
}

func (w *Workspace) edit(ctx context.Context, call tool.Call) (session.Output, error) {
	var args struct {
		Path, Old string
		New       *string
		All       bool
	}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	switch {
	case args.Path == "" || args.New == nil:
		return session.Output{}, badArguments(`"path", "old" and "new" are required`)
	case args.Old == "":
		return session.Output{}, badArguments(`"old" must not be empty; a new file is made by Write`)
	case args.Old == *args.New:
		return session.Output{}, badArguments(`"old" and "new" are the same`)
	}
	count, sizeBytes, err := w.editFile(ctx, args.Path, edit{args.Old, *args.New, args.All})
	if err != nil {
		return failed(ctx, "Edit", args.Path, err)
	}
	return session.Output{Summary: fmt.Sprintf("Edit %s: %s, now %s",
		shown(args.Path), plural(int64(count), "replacement"), plural(int64(sizeBytes), "byte"))}, nil
}

// editFile changes the file at path, and returns the number of replacements and
// the size of the file after them.
func (w *Workspace) editFile(ctx context.Context, path string, e edit) (count, sizeBytes int, err error) {
	unlock, err := w.lock(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	v := w.view()
	s, err := v.resolve(path)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	f, info, err := s.open()
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	s.info = info
	content, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err != nil {
		return 0, 0, err
	}
	if len(content) > maxEditBytes {
		return 0, 0, fmt.Errorf("it has more than %s bytes, too many to edit", tool.Grouped(maxEditBytes))
	}
	content, count, err = e.apply(content)
	if err != nil {
		return 0, 0, err
	}
	return count, len(content), s.replace(ctx, content)
}

// apply changes a file's content, keeping its charset and line ends.
func (e edit) apply(content []byte) (changed []byte, count int, err error) {
	c, mark, err := sniff(content[:min(len(content), sniffBytes)])
	if err != nil {
		return nil, 0, err
	}
	body := content[mark:]
	if c != charsetUTF16LE && c != charsetUTF16BE {
		text, count, err := e.replace(string(body))
		return append(content[:mark:mark], text...), count, err
	}
	codec := utf16Of(c)
	decoded, err := codec.NewDecoder().Bytes(body)
	if err != nil {
		return nil, 0, err
	}
	if again, err := codec.NewEncoder().Bytes(decoded); err != nil || !bytes.Equal(again, body) {
		return nil, 0, fmt.Errorf("it is damaged %s text; an edit would lose some of it", c)
	}
	text, count, err := e.replace(string(decoded))
	if err != nil {
		return nil, 0, err
	}
	encoded, err := codec.NewEncoder().String(text)
	return append(content[:mark:mark], encoded...), count, err
}

// replace changes a text. Where all its lines end in CR LF, those of old and new do.
func (e edit) replace(text string) (string, int, error) {
	breaks := strings.Count(text, "\n")
	if breaks > 0 && strings.Count(text, "\r\n") == breaks {
		e.old, e.new = withCRLF(e.old), withCRLF(e.new)
	}
	count := strings.Count(text, e.old)
	switch {
	case count == 0:
		return "", 0, errors.New(`"old" is not in the file; read it again and copy the text exactly`)
	case len(text)+count*(len(e.new)-len(e.old)) > maxEditBytes:
		return "", 0, fmt.Errorf("it would have more than %s bytes after the edit", tool.Grouped(maxEditBytes))
	case e.all:
		return strings.ReplaceAll(text, e.old, e.new), count, nil
	case strings.Index(text, e.old) != strings.LastIndex(text, e.old):
		return "", 0, fmt.Errorf(`"old" is in the file %d times; give more of the text around it, or set "all"`, max(count, 2))
	}
	return strings.Replace(text, e.old, e.new, 1), 1, nil
}

func withCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}
