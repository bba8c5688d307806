package file

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const (
	maxContextLines    = 20
	maxExpressionBytes = 4096
)

//go:embed grep.md
var grepText string

func grepSpec() session.ToolSpec {
	return readSpecOf("Grep", grepText, `{"type":"object","properties":{`+
		`"pattern":{"type":"string","description":"Regular expression (RE2) to search for in each line."},`+
		`"path":{"type":"string","description":"Folder or file to search; default: the project folder."},`+
		`"glob":{"type":"string","description":"Search only files whose path below path matches, such as *.go or docs/**; a pattern without a slash is for the name in any folder."},`+
		`"ignore_case":{"type":"boolean","description":"Match upper and lower case alike; default false."},`+
		`"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show before and after each match; default 0."},`+
		`"mode":{"type":"string","enum":["content","files","count"],"description":"What to list; default content."},`+
		`"offset":{"type":"integer","minimum":1,"description":"Number of the first match (or file) to list; default 1."},`+
		`"limit":{"type":"integer","minimum":1,"description":"How many matches (or files) to list; default: all."}},`+
		`"required":["pattern"],"additionalProperties":false}`)
}

type grepArguments struct {
	Pattern    string
	Path       string
	Glob       string
	IgnoreCase bool `json:"ignore_case"`
	Context    int
	Mode       string
	Offset     int64
	Limit      int64
}

func (w *Workspace) grep(ctx context.Context, call tool.Call) (session.Output, error) {
	args := grepArguments{Path: ".", Glob: "*", Mode: modeContent, Offset: 1, Limit: math.MaxInt64}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	g, filter, err := w.newGrep(args)
	if err != nil {
		return session.Output{}, err
	}
	g.list = w.newListing(call)
	if err := g.search(ctx, w.view(), args.Path, filter); err != nil {
		return failed(ctx, "Grep", args.Path, err)
	}
	out := session.Output{}
	rest := g.list.rest(g.page.first, g.list.content(&out), g.page.seen)
	out.Summary = fmt.Sprintf("Grep %s: %s%s%s", shown(args.Pattern), g.found(), rest, skippedNote(g.skipped))
	return out, nil
}

// check finds arguments that are out of range.
func (a *grepArguments) check() error {
	switch {
	case a.Pattern == "":
		return badArguments(`"pattern" is required`)
	case len(a.Pattern) > maxExpressionBytes:
		return badArguments(`"pattern" has at most %d bytes`, maxExpressionBytes)
	case a.Context < 0 || a.Context > maxContextLines:
		return badArguments(`"context" is 0 to %d`, maxContextLines)
	case a.Mode != modeContent && a.Mode != modeFiles && a.Mode != modeCount:
		return badArguments(`"mode" is %s, %s or %s`, modeContent, modeFiles, modeCount)
	}
	return nil
}

// newGrep makes a search, and the pattern of the files to search.
func (w *Workspace) newGrep(args grepArguments) (*grepping, globPattern, error) {
	if err := args.check(); err != nil {
		return nil, globPattern{}, err
	}
	page, err := newPage(args.Offset, args.Limit)
	if err != nil {
		return nil, globPattern{}, err
	}
	if !strings.Contains(args.Glob, "/") {
		args.Glob = "**/" + args.Glob
	}
	filter, err := w.parseGlob(args.Glob)
	if err != nil {
		return nil, globPattern{}, err
	}
	if args.IgnoreCase {
		args.Pattern = "(?i)" + args.Pattern
	}
	matcher, err := regexp.Compile(args.Pattern)
	if err != nil {
		return nil, globPattern{}, badArguments("%v; the syntax is RE2", err)
	}
	return &grepping{
		mode: args.Mode, context: args.Context, page: page,
		matcher: matcher, needle: newNeedle(args.Pattern), text: newText(),
	}, filter, nil
}

// search goes through the file or folder at path.
func (g *grepping) search(ctx context.Context, v *view, path string, filter globPattern) error {
	s, err := v.resolve(path)
	if err != nil {
		return err
	}
	defer s.close()
	if s.name != "" {
		f, _, err := s.open()
		if err != nil {
			return err
		}
		defer f.Close()
		return g.file(ctx, s.path(), f)
	}
	base := strings.TrimPrefix(s.path()+"/", "./")
	walk := walk{
		view:    v,
		descend: func(path string) bool { return filter.leadsBelow(path[len(base):]) },
		visit: func(e entry) error {
			if !e.kind.IsRegular() || !filter.matches(e.path[len(base):], false) {
				return nil
			}
			return g.entry(ctx, v, e)
		},
	}
	err = walk.under(ctx, s)
	g.skipped += walk.skipped
	return err
}

// entry searches a file that a walk met. One that is no text, or gone, or hidden, is
// passed over; one that cannot be read is counted too.
func (g *grepping) entry(ctx context.Context, v *view, e entry) error {
	info, err := e.dir.Lstat(e.name)
	if err != nil || !info.Mode().IsRegular() || v.guard.hides(info) {
		return nil
	}
	f, _, err := v.openFile(e.dir, e.name, info)
	if err != nil {
		g.skipped++
		return nil
	}
	defer f.Close()
	err = g.file(ctx, e.path, f)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errBinary):
		return nil
	case err != nil:
		g.skipped++
	}
	return nil
}

// found says how much was found.
func (g *grepping) found() string {
	if g.mode == modeContent {
		return fmt.Sprintf("%s in %s", matches(g.matches), plural(g.files, "file"))
	}
	return plural(g.files, "file")
}

func matches(n int64) string {
	if n == 1 {
		return "1 match"
	}
	return tool.Grouped(n) + " matches"
}
