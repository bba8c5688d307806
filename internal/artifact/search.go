package artifact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const (
	pieceBytes = 64 << 10 // of a line that is searched at once
	shownBytes = 400      // of a longer line that are shown around a match
	leadBytes  = 100      // of these before it
	maxNamed   = 100      // bytes of a pattern that a summary repeats
)

// searching is one search in an output.
type searching struct {
	matcher *regexp.Regexp
	room    int // bytes of entries

	entries strings.Builder
	shown   int   // how many they are
	line    int64 // number of the line that is searched
	next    int64 // where the first match is that does not fit; 0 when all do
}

// search lists the lines that match, from the byte at start on.
func (r *request) search(ctx context.Context, f *os.File, item session.Item, start int64, room int) (session.Output, error) {
	s := searching{matcher: r.matcher, room: room}
	err := s.run(ctx, f, start, item.ToolResult.KeptOutput.Bytes)
	if ctx.Err() != nil {
		return session.Output{}, context.Cause(ctx)
	}
	if err != nil {
		return session.Output{}, err
	}
	pattern := tool.Cut(r.Pattern, maxNamed)
	if s.shown == 0 {
		return session.Output{Summary: fmt.Sprintf("%s: no match for %q in bytes %d to %d of the output of %s", ToolName, pattern, start, item.ToolResult.KeptOutput.Bytes, named(item))}, nil
	}
	noun := "matches"
	if s.shown == 1 {
		noun = "match"
	}
	out := session.Output{
		Summary: fmt.Sprintf("%s: %d %s for %q in the output of %s", ToolName, s.shown, noun, pattern, named(item)),
		Content: session.Text(s.entries.String()),
	}
	if s.next > 0 {
		out.Summary += fmt.Sprintf("; there are more, go on with offset %d", s.next)
	}
	return out, nil
}

// run searches the bytes from start to end until no more entries fit.
func (s *searching) run(ctx context.Context, f io.ReaderAt, start, end int64) error {
	var err error
	if s.line, err = lines(ctx, io.NewSectionReader(f, 0, start)); err != nil {
		return err
	}
	s.line++
	pieces := bufio.NewReaderSize(io.NewSectionReader(f, start, end-start), pieceBytes)
	for at := start; s.next == 0 && ctx.Err() == nil; {
		piece, err := pieces.ReadSlice('\n')
		whole := bytes.HasSuffix(piece, []byte("\n"))
		if len(piece) > 0 {
			s.piece(bytes.TrimRight(piece, "\r\n"), at)
		}
		if whole {
			s.line++
		}
		at += int64(len(piece))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	return ctx.Err()
}

// lines counts the line breaks.
func lines(ctx context.Context, r io.Reader) (count int64, err error) {
	buf := make([]byte, pieceBytes)
	for ctx.Err() == nil {
		n, err := r.Read(buf)
		count += int64(bytes.Count(buf[:n], []byte("\n")))
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, ctx.Err()
}

// piece searches a line, or a piece of a long one, that begins at a byte.
func (s *searching) piece(text []byte, at int64) {
	from, to := 0, 0
	for _, match := range s.matcher.FindAllIndex(text, -1) {
		switch {
		case to > 0 && match[0] < to:
			continue // it is shown already
		case len(text) <= shownBytes:
			from, to = 0, len(text)
		default:
			from, to = around(text, match[0], to)
		}
		if !s.add(at+int64(from), text[from:to]) {
			return
		}
		if to == len(text) {
			return
		}
	}
}

// around chooses what to show of a long piece around a match, nothing before least.
func around(text []byte, match, least int) (from, to int) {
	from, to = max(least, match-leadBytes), min(len(text), match-leadBytes+shownBytes)
	for from < match && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && to > match && !utf8.RuneStart(text[to]) {
		to--
	}
	return from, to
}

// add lists a match, unless there is no room for it. The first one is cut instead.
func (s *searching) add(at int64, text []byte) bool {
	// The end of a piece may have split a rune.
	entry := fmt.Sprintf("%d:%d:%s\n", s.line, at, strings.ToValidUTF8(string(text), ""))
	if s.shown > 0 && s.entries.Len()+len(entry) > s.room {
		s.next = at
		return false
	}
	s.entries.WriteString(tool.Cut(entry, s.room))
	s.shown++
	return true
}
