package file

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// needle is a text that each match of an expression contains. Looking for it first
// is many times faster than matching, above all when case is ignored.
type needle struct {
	text  []byte // empty when nothing is known
	fold  bool   // text is lower-case ASCII and stands for both cases
	lower []byte // scratch
}

// newNeedle finds the longest needle of an expression.
func newNeedle(expression string) needle {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return needle{}
	}
	return needleOf(parsed.Simplify())
}

func needleOf(re *syntax.Regexp) needle {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNeedle(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture, syntax.OpPlus:
		return needleOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needleOf(re.Sub[0])
		}
	case syntax.OpConcat:
		var best needle
		for _, sub := range re.Sub {
			if n := needleOf(sub); len(n.text) > len(best.text) {
				best = n
			}
		}
		return best
	}
	return needle{}
}

// literalNeedle takes the longest run of runes whose bytes are known: U+FFFD also
// matches any invalid byte, and k, s and what is not ASCII have cases beyond ASCII.
func literalNeedle(runes []rune, fold bool) needle {
	var best, run []byte
	for _, r := range runes {
		if fold && 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		if r == utf8.RuneError || fold && (r >= utf8.RuneSelf || r == 'k' || r == 's') {
			run = nil
			continue
		}
		run = utf8.AppendRune(run, r)
		if len(run) > len(best) {
			best = run
		}
	}
	return needle{text: best, fold: fold}
}

// in reports whether block contains the needle.
func (n *needle) in(block []byte) bool {
	if !n.fold {
		return bytes.Contains(block, n.text)
	}
	n.lower = append(n.lower[:0], block...)
	for i, c := range n.lower {
		if 'A' <= c && c <= 'Z' {
			n.lower[i] = c + 'a' - 'A'
		}
	}
	return bytes.Contains(n.lower, n.text)
}
