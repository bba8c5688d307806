package store

import (
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
)

const (
	excerptBytes = 240 // about
	excerptLead  = 80  // of them before what was found
)

// excerpted gives hits their excerpts and takes the texts of documents away.
func excerpted(hits []session.Hit, query string, runs []run) []session.Hit {
	wanted := []string{fold(query)}
	for _, r := range runs {
		wanted = append(wanted, strings.Join(r.characters, ""))
	}
	for _, r := range runs {
		if r.unspaced {
			wanted = append(wanted, r.pairs()...)
		}
	}
	for i := range hits {
		h := &hits[i]
		if h.Record != nil {
			h.Excerpt = excerpt(h.Record.Claim+"\n"+h.Record.Why, wanted)
			continue
		}
		h.Excerpt = excerpt(h.Document.Text, wanted)
		h.Document.Text = ""
	}
	return hits
}

// excerpt is the part of a text around the first of the wanted texts that it holds,
// else its beginning. An ellipsis stands for what is left out.
func excerpt(text string, wanted []string) string {
	if len(text) <= excerptBytes {
		return text
	}
	start := max(0, find(text, wanted)-excerptLead)
	end := min(len(text), start+excerptBytes)
	start = max(0, min(start, end-excerptBytes))
	for start > 0 && !utf8.RuneStart(text[start]) {
		start++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	part := text[start:end]
	if start > 0 {
		part = "…" + part
	}
	if end < len(text) {
		part += "…"
	}
	return part
}

// find is where in the text the first of the wanted, folded texts is that it holds;
// 0 when it holds none.
func find(text string, wanted []string) int {
	var folded strings.Builder
	var places []int // in text, of each byte of folded
	for at, c := range text {
		n, _ := folded.WriteString(foldRune(c))
		for range n {
			places = append(places, at)
		}
	}
	for _, w := range wanted {
		if i := strings.Index(folded.String(), w); i >= 0 && i < len(places) {
			return places[i]
		}
	}
	return 0
}
