package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
)

// The modes of Grep: what it lists.
const (
	modeContent = "content"
	modeFiles   = "files"
	modeCount   = "count"
)

const (
	maxLineBytes  = 400 // shown of a line
	maxLeadBytes  = 100 // of them before the match
	lineCutNote   = " … [long line cut]"
	groupSplitter = "--\n" // between matches whose context does not touch
)

// grepping is one call of Grep.
type grepping struct {
	mode    string
	context int // lines shown before and after a match
	matcher *regexp.Regexp
	needle  needle
	page    page
	text    *text
	list    *listing

	matches, files int64 // found so far
	skipped        int   // files and folders that could not be opened

	// of the current file
	path     string
	n        int64 // number of the current line
	lastHit  int64 // number of the last line that matched; 0 at first
	hits     int64
	before   []string // the last lines, at most context, each ready to print
	seen     int64    // number of the last line that was taken for context; 0 at first
	printed  int64    // number of the last line printed; -1 at first
	printing bool     // the current entry is on the page and not ended
}

// file searches one text file. It fails with errBinary when it is none.
func (g *grepping) file(ctx context.Context, path string, f io.Reader) error {
	if err := g.text.reset(f); err != nil {
		return err
	}
	g.path, g.n, g.lastHit, g.hits, g.seen, g.printed = quoted(path), 1, 0, 0, 0, -1
	g.before = g.before[:0]
	defer g.endFile()
	for {
		block, err := g.text.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case (g.context == 0 || !g.printing) && !g.needle.in(block):
			block = g.skip(block)
		}
		for len(block) > 0 {
			line, rest, whole := cutLine(block)
			g.line(line)
			if whole {
				g.n++
			}
			block = rest
		}
		if g.hits > 0 && g.mode == modeFiles {
			return nil
		}
	}
}

// skip passes over lines that do not match but for the last ones, which may be the
// context of a match after them.
func (g *grepping) skip(block []byte) (rest []byte) {
	from := len(block)
	for range g.context {
		if from > 0 {
			from = bytes.LastIndexByte(block[:from-1], '\n') + 1
		}
	}
	g.n += int64(bytes.Count(block[:from], []byte("\n")))
	return block[from:]
}

func (g *grepping) endFile() {
	g.endEntry()
	if g.hits == 0 {
		return
	}
	g.files++
	switch {
	case g.mode == modeContent || !g.page.takes():
		return
	case g.mode == modeFiles:
		g.list.write(g.path + "\n")
	case g.mode == modeCount:
		g.list.write(fmt.Sprintf("%s:%d\n", g.path, g.hits))
	}
	g.list.end()
}

// line looks at one line, or a piece of a very long one.
func (g *grepping) line(line []byte) {
	var at []int
	if g.n != g.lastHit && g.needle.in(line) {
		at = g.matcher.FindIndex(line)
	}
	switch {
	case at != nil:
		g.lastHit = g.n
		g.hits++
		if g.mode == modeContent {
			g.match(line, at[0])
		}
	case g.mode == modeContent && g.context > 0:
		g.around(line)
	}
}

// match begins an entry: the lines before the match that are not printed yet, and
// the match.
func (g *grepping) match(line []byte, at int) {
	g.endEntry()
	g.matches++
	if !g.page.takes() {
		return
	}
	if len(g.before) > 0 && g.seen == g.n { // the beginning of this long line
		g.before = g.before[:len(g.before)-1]
	}
	if g.context > 0 && g.list.entries > 0 && g.printed != g.n-int64(len(g.before))-1 {
		g.list.write(groupSplitter)
	}
	g.list.write(strings.Join(g.before, ""))
	g.list.write(fmt.Sprintf("%s:%d:%s\n", g.path, g.n, excerpt(line, at)))
	g.printing, g.printed, g.before = true, g.n, g.before[:0]
}

// around takes a line that does not match: context of the match before it, or
// perhaps of the next one. Only the first piece of a long line counts.
func (g *grepping) around(line []byte) {
	if g.n == g.lastHit || g.n == g.seen {
		return
	}
	g.seen = g.n
	ready := fmt.Sprintf("%s-%d-%s\n", g.path, g.n, excerpt(line, 0))
	if g.printing && g.n <= g.lastHit+int64(g.context) {
		g.list.write(ready)
		g.printed = g.n
		return
	}
	g.endEntry()
	if len(g.before) == g.context {
		g.before = slices.Delete(g.before, 0, 1)
	}
	g.before = append(g.before, ready)
}

// endEntry ends the entry that match began.
func (g *grepping) endEntry() {
	if g.printing {
		g.printing = false
		g.list.end()
	}
}

// excerpt is a line made fit to print: whole, or the part around the byte at.
func excerpt(line []byte, at int) string {
	if len(line) <= maxLineBytes {
		return session.Clean(string(line))
	}
	from := max(0, min(at-maxLeadBytes, len(line)-maxLineBytes))
	part := line[from : from+maxLineBytes]
	for i := 0; from > 0 && i < utf8.UTFMax && !utf8.RuneStart(part[0]); i++ {
		part = part[1:]
	}
	return session.Clean(string(part[:wholeRunes(part)])) + lineCutNote
}
