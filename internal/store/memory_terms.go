package store

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The index of memory holds terms that are made here, because no tokenizer of the
// database is right for text without spaces. Words of scripts with spaces are one
// term each. A run of the others, such as Japanese, is each two neighbouring
// characters of it, and at the end the last one alone: so that any part of it, two
// characters or more, is a phrase of terms, and one character begins a term.

// unspaced reports whether a character is of a script that is written without
// spaces, or of Hangul, whose words carry their particles.
func unspaced(c rune) bool {
	const longSound = 'ー' // is of no one script, but of words in Katakana
	return c == longSound || c >= 0x80 && unicode.In(c,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Hangul, unicode.Yi,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// run is neighbouring characters of one sort, folded.
type run struct {
	unspaced   bool
	characters []string // each with the marks on it
}

// vocabulary is what the terms of a project begin with: so that a search costs what
// is in its own project, and ranks by what is rare there.
type vocabulary string

func vocabularyOf(project string) vocabulary {
	sum := sha256.Sum256([]byte(project))
	return vocabulary(hex.EncodeToString(sum[:4]))
}

// indexed is the terms of a text, as the index is given them.
func (v vocabulary) indexed(text string) string {
	var b strings.Builder
	for _, r := range runsOf(text) {
		for _, term := range r.terms() {
			b.WriteString(string(v) + term)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// terms is what the index has for a run.
func (r run) terms() []string {
	if !r.unspaced {
		return []string{strings.Join(r.characters, "")}
	}
	return append(r.pairs(), r.characters[len(r.characters)-1])
}

// pairs is each two neighbouring characters.
func (r run) pairs() []string {
	var pairs []string
	for i := 1; i < len(r.characters); i++ {
		pairs = append(pairs, r.characters[i-1]+r.characters[i])
	}
	return pairs
}

// runsOf splits a text into its runs.
func runsOf(text string) []run {
	var runs []run
	open := false // the last run goes on
	for _, c := range fold(text) {
		switch {
		case unicode.IsMark(c):
			if open {
				last := runs[len(runs)-1].characters
				last[len(last)-1] += string(c)
			}
			continue
		case !unicode.IsLetter(c) && !unicode.IsNumber(c):
			open = false
			continue
		}
		if !open || runs[len(runs)-1].unspaced != unspaced(c) {
			runs = append(runs, run{unspaced: unspaced(c)})
			open = true
		}
		last := &runs[len(runs)-1]
		last.characters = append(last.characters, string(c))
	}
	return runs
}

// fold makes texts equal that a reader takes for the same: of any width, case and
// accents.
func fold(text string) string {
	var b strings.Builder
	ascii := true
	for _, c := range text {
		if c < 0x80 {
			b.WriteRune(unicode.ToLower(c))
			continue
		}
		ascii = false
		b.WriteString(foldRune(c))
	}
	if ascii {
		return b.String()
	}
	return norm.NFC.String(b.String())
}

// foldRune folds one character by itself.
func foldRune(c rune) string {
	if c < 0x80 {
		return string(unicode.ToLower(c))
	}
	apart := strings.Map(func(c rune) rune {
		if c >= 0x0300 && c <= 0x036f { // accents
			return -1
		}
		return unicode.ToLower(c)
	}, norm.NFKD.String(string(c)))
	return norm.NFC.String(apart)
}

const (
	maxRuns  = 64 // of one search that are looked for
	maxTerms = 64 // any of which is looked for
	minWord  = 3  // characters of a word that may be the beginning of a longer one
)

// all is the query of the index for texts that hold every run of a search;
// empty when the search has none. Nothing in it is the searcher's but letters and
// digits between quotes.
func (v vocabulary) all(runs []run) string {
	var parts []string
	for _, r := range runs[:min(len(runs), maxRuns)] {
		if r.unspaced && len(r.characters) > 1 {
			parts = append(parts, v.phrase(r.pairs()...))
		} else {
			parts = append(parts, v.beginning(r))
		}
	}
	return strings.Join(parts, " AND ")
}

// any is the query for texts that hold any part of a search. Short words are in
// nearly every text: they count only when there are no others.
func (v vocabulary) any(runs []run) string {
	var parts, short []string
	for _, r := range runs[:min(len(runs), maxRuns)] {
		switch {
		case r.unspaced && len(r.characters) > 1:
			for _, pair := range r.pairs() {
				parts = append(parts, v.phrase(pair))
			}
		case r.unspaced || len(r.characters) > minWord:
			parts = append(parts, v.beginning(r))
		default:
			short = append(short, v.beginning(r))
		}
	}
	if len(parts) == 0 {
		parts = short
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	return strings.Join(parts[:min(len(parts), maxTerms)], " OR ")
}

// beginning matches a run of one term, and terms that begin with it unless it is a
// very short word.
func (v vocabulary) beginning(r run) string {
	term := v.phrase(strings.Join(r.characters, ""))
	if r.unspaced || len(r.characters) >= minWord {
		return term + " *"
	}
	return term
}

// phrase matches terms that follow each other.
func (v vocabulary) phrase(terms ...string) string {
	return `"` + string(v) + strings.Join(terms, " "+string(v)) + `"`
}
