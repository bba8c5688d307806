package file

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// maxCountedBytes is how far Read counts on in a file after the last line that it
// shows, to tell how long the file is.
const maxCountedBytes = 256 << 20

//go:embed read.md
var readText string

func readSpec() session.ToolSpec {
	return readSpecOf("Read", readText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"File to read, relative to the project folder."},`+
		`"offset":{"type":"integer","minimum":1,"description":"Number of the first line to read; default 1."},`+
		`"limit":{"type":"integer","minimum":1,"description":"How many lines to read; default: all."}},`+
		`"required":["path"],"additionalProperties":false}`)
}

func (w *Workspace) read(ctx context.Context, call tool.Call) (session.Output, error) {
	args := struct {
		Path   string
		Offset int64
		Limit  int64
	}{Offset: 1, Limit: math.MaxInt64}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	switch {
	case args.Path == "":
		return session.Output{}, badArguments(`"path" is required`)
	case args.Offset < 1 || args.Limit < 1:
		return session.Output{}, badArguments(`"offset" and "limit" are 1 or more`)
	}
	r := reading{
		list: w.newListing(call), line: 1,
		from: args.Offset, to: args.Offset + min(args.Limit, math.MaxInt64-args.Offset),
	}
	if err := r.file(ctx, w.view(), args.Path); err != nil {
		return failed(ctx, "Read", args.Path, err)
	}
	out := session.Output{}
	out.Summary = "Read " + shown(args.Path) + ": " + r.summary(r.list.content(&out), &out)
	return out, nil
}

// reading is one call of Read.
type reading struct {
	list     *listing
	from, to int64 // lines asked for, to excluded

	charset charset
	line    int64 // number of the next line, or of the one that is open
	open    bool  // a line has begun and not ended
	partial bool  // the rest of the file was not counted
}

// file reads the lines asked for, and counts the others.
func (r *reading) file(ctx context.Context, v *view, path string) error {
	s, err := v.resolve(path)
	if err != nil {
		return err
	}
	defer s.close()
	f, info, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	t := newText()
	if err := t.reset(f); err != nil {
		return fmt.Errorf("%w (%s bytes)", err, tool.Grouped(info.Size()))
	}
	r.charset = t.charset
	if err := r.lines(ctx, t, info.Size()); err != nil {
		return err
	}
	if total := r.line - 1; r.from > max(total, 1) && !r.partial {
		return fmt.Errorf("it has %s lines; offset %d is beyond its end", tool.Grouped(total), r.from)
	}
	return nil
}

func (r *reading) lines(ctx context.Context, t *text, sizeBytes int64) error {
	var readBytes, countedBytes int64
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		block, err := t.next()
		if errors.Is(err, io.EOF) {
			r.finish()
			return nil
		}
		if err != nil {
			return err
		}
		readBytes += int64(len(block))
		if r.line >= r.to || r.list.full() {
			countedBytes += int64(len(block))
		}
		r.block(block)
		if countedBytes > maxCountedBytes {
			r.partial = true
			if r.line < r.to {
				r.list.produced += max(0, sizeBytes-readBytes)
			}
			return nil
		}
	}
}

func (r *reading) block(b []byte) {
	if breaks := int64(bytes.Count(b, []byte("\n"))); r.line >= r.to || r.line+breaks < r.from {
		r.line += breaks
		r.open = b[len(b)-1] != '\n'
		return
	}
	for len(b) > 0 {
		line, rest, whole := cutLine(b)
		if r.line >= r.from && r.line < r.to {
			r.take(line, whole)
		}
		r.open = !whole
		if whole {
			r.line++
		}
		b = rest
	}
}

func (r *reading) take(line []byte, whole bool) {
	if !r.open {
		r.list.write(strconv.FormatInt(r.line, 10) + "\t")
	}
	if r.list.full() {
		r.list.produced += int64(len(line))
	} else {
		r.list.write(session.Clean(string(line)))
	}
	if whole {
		r.list.write("\n")
		r.list.end()
	}
}

// finish ends a last line that has no line break.
func (r *reading) finish() {
	if !r.open {
		return
	}
	if r.line >= r.from && r.line < r.to {
		r.list.end()
	}
	r.line++
	r.open = false
}

func (r *reading) summary(shown int64, out *session.Output) string {
	of := "of " + tool.Grouped(r.line-1)
	if r.partial {
		of = "of more than " + tool.Grouped(r.line-1)
	}
	decoded := ""
	if r.charset != charsetUTF8 && r.charset != charsetUTF8BOM {
		decoded = ", decoded from " + string(r.charset)
	}
	last := r.from + shown - 1
	switch {
	case r.line == 1 && !r.partial:
		return "empty file"
	case shown == 0:
		return fmt.Sprintf("line %d %s is too long to show whole; search in it with Grep%s", r.from, of, decoded)
	}
	text := fmt.Sprintf("lines %s–%s %s, %s%s", tool.Grouped(r.from), tool.Grouped(last), of, plural(int64(len(*out.Content)), "byte"), decoded)
	if last < r.line-1 {
		text += fmt.Sprintf("; go on with offset %d", last+1)
	}
	return text
}
