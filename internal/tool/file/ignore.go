package file

import (
	"io"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	maxIgnoreBytes = 1 << 20 // read of one ignore file
	maxIgnoreLines = 10_000  // patterns taken from one ignore file
)

// rules are the ignore files in force in a folder: its own, and outer, those of
// the folders around it, which count less. Nil ignores nothing.
type rules struct {
	outer    *rules
	folder   string // where the file lies, relative to the project folder; "" for that folder
	patterns []ignorePattern
}

// ignorePattern is one line of a .gitignore file. See gitignore(5).
type ignorePattern struct {
	glob        string // for doublestar
	whole       bool   // matched with the path below the ignore file, not with the last element only
	foldersOnly bool
	keep        bool // "!": what matches is not ignored
}

// with adds an ignore file that lies in folder.
func (r *rules) with(folder string, file io.Reader) (*rules, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreBytes))
	if err != nil {
		return nil, err
	}
	added := &rules{outer: r, folder: folder}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if pattern, ok := parseIgnore(line); ok && len(added.patterns) < maxIgnoreLines {
			added.patterns = append(added.patterns, pattern)
		}
	}
	return added, nil
}

func parseIgnore(line string) (p ignorePattern, ok bool) {
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line = trimSpaces(line)
	line, p.keep = strings.CutPrefix(line, "!")
	line, p.foldersOnly = strings.CutSuffix(line, "/")
	p.whole = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if strings.HasSuffix(line, "/**") {
		line += "/*" // all that is in the folder, not the folder
	}
	p.glob = escapeBraces(line)
	return p, line != "" && doublestar.ValidatePattern(p.glob)
}

// trimSpaces drops spaces at the end that no backslash protects.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	backslashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if len(trimmed) < len(line) && backslashes%2 == 1 {
		trimmed += " "
	}
	return trimmed
}

// escapeBraces makes braces stand for themselves, as they do in ignore files.
func escapeBraces(pattern string) string {
	if !strings.ContainsAny(pattern, "{}") {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			i++
		case c == '{' || c == '}':
			b.WriteByte('\\')
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// ignores reports whether the file or folder is ignored, given that none of the
// folders around it is. The last pattern that matches decides.
func (r *rules) ignores(name string, isFolder bool) bool {
	for ; r != nil; r = r.outer {
		below := strings.TrimPrefix(strings.TrimPrefix(name, r.folder), "/")
		for i := len(r.patterns) - 1; i >= 0; i-- {
			p := &r.patterns[i]
			if p.foldersOnly && !isFolder {
				continue
			}
			subject := below
			if !p.whole {
				subject = path.Base(below)
			}
			if doublestar.MatchUnvalidated(p.glob, subject) {
				return !p.keep
			}
		}
	}
	return false
}
