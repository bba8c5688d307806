package file

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const (
	maxPatternBytes = 1024
	maxAlternatives = 128 // texts that the braces of a pattern stand for together
)

//go:embed glob.md
var globText string

func globSpec() session.ToolSpec {
	return readSpecOf("Glob", globText, `{"type":"object","properties":{`+
		`"pattern":{"type":"string","description":"Pattern for paths below path, such as **/*.go."},`+
		`"path":{"type":"string","description":"Folder to list; default: the project folder."},`+
		`"offset":{"type":"integer","minimum":1,"description":"Number of the first path to list; default 1."},`+
		`"limit":{"type":"integer","minimum":1,"description":"How many paths to list; default: all."}},`+
		`"required":["pattern"],"additionalProperties":false}`)
}

// page is the part of a result that a call asks for.
type page struct {
	first, end int64 // numbers of entries, end excluded
	seen       int64 // entries so far
}

func newPage(offset, limit int64) (page, error) {
	if offset < 1 || limit < 1 {
		return page{}, badArguments(`"offset" and "limit" are 1 or more`)
	}
	return page{first: offset, end: offset + min(limit, math.MaxInt64-offset)}, nil
}

// takes counts an entry and reports whether it is on the page.
func (p *page) takes() bool {
	p.seen++
	return p.seen >= p.first && p.seen < p.end
}

func (w *Workspace) glob(ctx context.Context, call tool.Call) (session.Output, error) {
	args := struct {
		Pattern, Path string
		Offset, Limit int64
	}{Path: ".", Offset: 1, Limit: math.MaxInt64}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	pattern, err := w.parseGlob(args.Pattern)
	if err != nil {
		return session.Output{}, err
	}
	if filepath.IsAbs(args.Pattern) {
		args.Path = "." // the pattern names the folder itself
	}
	page, err := newPage(args.Offset, args.Limit)
	if err != nil {
		return session.Output{}, err
	}
	list := w.newListing(call)
	skipped, err := w.view().globTo(ctx, args.Path, pattern, func(path string) {
		if page.takes() {
			list.write(path + "\n")
			list.end()
		}
	})
	if err != nil {
		return failed(ctx, "Glob", args.Path, err)
	}
	out := session.Output{}
	rest := list.rest(page.first, list.content(&out), page.seen)
	out.Summary = fmt.Sprintf("Glob %s: %s%s%s", shown(args.Pattern), plural(page.seen, "path"), rest, skippedNote(skipped))
	return out, nil
}

// globTo gives the paths below folder that match to found, in order.
func (v *view) globTo(ctx context.Context, folder string, pattern globPattern, found func(string)) (skipped int, err error) {
	s, err := v.resolve(folder)
	if err != nil {
		return 0, err
	}
	defer s.close()
	switch {
	case s.name != "" && s.info == nil:
		return 0, errAbsent
	case s.name != "":
		return 0, fmt.Errorf("this is a file, not a folder; read it with Read")
	}
	base := strings.TrimPrefix(s.path()+"/", "./")
	w := walk{
		view:    v,
		descend: func(path string) bool { return pattern.leadsBelow(path[len(base):]) },
		visit: func(e entry) error {
			if pattern.matches(e.path[len(base):], e.kind.IsDir()) && v.lists(e) {
				found(entryLine(e))
			}
			return nil
		},
	}
	err = w.under(ctx, s)
	return w.skipped, err
}

func entryLine(e entry) string {
	if e.kind.IsDir() {
		return quoted(e.path + "/")
	}
	return quoted(e.path)
}

// lists reports whether the entry is a folder, a file that may be seen, or a link
// that leads to one.
func (v *view) lists(e entry) bool {
	switch {
	case e.kind.IsDir():
		return true // checked by the walk
	case e.kind.IsRegular():
		if len(v.guard.infos) == 0 {
			return true
		}
		info, err := e.dir.Lstat(e.name)
		return err == nil && !v.guard.hides(info)
	case e.kind&fs.ModeSymlink != 0:
		s, err := v.resolve(e.path)
		if err != nil {
			return false
		}
		defer s.close()
		return s.info != nil && s.info.Mode().IsRegular() && !v.guard.hides(s.info)
	}
	return false
}

// globPattern is a pattern for paths.
type globPattern struct {
	glob        string
	below       string // glob without "/**" at its end: the folder whose content it names; else empty
	foldersOnly bool
	elements    []string // of glob; nil when braces may hold a slash
}

func (w *Workspace) parseGlob(text string) (globPattern, error) {
	glob := text
	switch {
	case text == "":
		return globPattern{}, badArguments(`"pattern" is required`)
	case len(text) > maxPatternBytes:
		return globPattern{}, badArguments("a glob pattern has at most %d bytes", maxPatternBytes)
	case filepath.IsAbs(text):
		rel, err := w.inside(text)
		if err != nil {
			return globPattern{}, badArguments("pattern %s: %v", shown(text), err)
		}
		glob = strings.TrimLeft(strings.TrimPrefix(rel, "."), "/")
	}
	glob = strings.TrimPrefix(glob, "./")
	p := globPattern{}
	p.glob, p.foldersOnly = strings.CutSuffix(glob, "/")
	if below, ok := strings.CutSuffix(p.glob, "/**"); ok {
		p.glob, p.below = p.glob+"/*", below
	}
	elements := strings.Split(p.glob, "/")
	switch {
	case slices.Contains(elements, ".."):
		return globPattern{}, badArguments(`a pattern has no ".."; name the folder in "path"`)
	case !doublestar.ValidatePattern(p.glob):
		return globPattern{}, badArguments("pattern %s has an open bracket or brace, or ends in a backslash", shown(text))
	case alternatives(p.glob) > maxAlternatives:
		return globPattern{}, badArguments("the braces of a pattern stand for at most %d texts; use several calls", maxAlternatives)
	}
	if !slices.ContainsFunc(elements, func(e string) bool { return !doublestar.ValidatePattern(e) }) {
		p.elements = elements
	}
	return p, nil
}

func (p globPattern) matches(path string, isFolder bool) bool {
	if isFolder && p.below != "" && doublestar.MatchUnvalidated(p.below, path) {
		return true
	}
	return (isFolder || !p.foldersOnly) && doublestar.MatchUnvalidated(p.glob, path)
}

// leadsBelow reports whether something in the folder at path may match.
func (p globPattern) leadsBelow(path string) bool {
	if p.elements == nil {
		return true
	}
	names := strings.Split(path, "/")
	for i, element := range p.elements {
		switch {
		case element == "**":
			return true
		case i == len(names):
			return true
		case !doublestar.MatchUnvalidated(element, names[i]):
			return false
		}
	}
	return false
}

// alternatives bounds the number of texts that the braces of a pattern stand for:
// matching takes that many attempts.
func alternatives(glob string) int {
	product, open := 1, []int{}
	for i := 0; i < len(glob) && product <= maxAlternatives; i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			open = append(open, 1)
		case ',':
			if len(open) > 0 {
				open[len(open)-1]++
			}
		case '}':
			if len(open) > 0 {
				product *= open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
	}
	return product
}

func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return tool.Grouped(n) + " " + noun
}

func skippedNote(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + tool.Grouped(int64(n)) + " could not be opened"
}
