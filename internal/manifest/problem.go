package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// maxProblems bounds how many errors are told at once.
const maxProblems = 50

// problem is one thing wrong with a manifest.
type problem struct {
	order, line int // of its file, in its file
	text        string
}

// problems collects everything that is wrong, so that a person mends it in one go.
type problems []problem

// add tells what is wrong at a node; the path is its dotted key.
func (p *problems) add(n *node, path, message string) {
	*p = append(*p, problem{n.from.order, n.line, n.place() + ": " + path + ": " + message})
}

// addFile tells what is wrong with a file as a whole.
func (p *problems) addFile(from *origin, message string) {
	*p = append(*p, problem{from.order, 0, from.name + message})
}

// err is nil when nothing is wrong, else one line for each problem, each once, in
// the order of files and lines.
func (p problems) err() error {
	slices.SortFunc(p, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	p = slices.Compact(p)
	var errs []error
	for i, problem := range p {
		if i == maxProblems {
			errs = append(errs, fmt.Errorf("and %d more errors", len(p)-i))
			break
		}
		errs = append(errs, errors.New(problem.text))
	}
	return errors.Join(errs...)
}
