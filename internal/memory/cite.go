package memory

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loadline/internal/session"
)

// citation is how a document names a record that it rests on.
var citation = regexp.MustCompile(`\[\^([0-9]{1,18})\]`)

// cited is the numbers of the records that a text cites, ascending.
func cited(text string) []int64 {
	var numbers []int64
	for _, found := range citation.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseInt(found[1], 10, 64) // so many digits always fit
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// unstruck is a text without what is struck in it, "~~so~~", within one paragraph.
func unstruck(text string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		parts := strings.Split(paragraph, "~~")
		for i, part := range parts {
			if i%2 == 0 || i == len(parts)-1 { // the last mark of an odd number opens nothing
				b.WriteString(part)
			}
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

// refs are those of the known records that a text cites.
func refs(text string, known map[int64]session.RecordID) []session.RecordRef {
	all := []session.RecordRef{}
	for _, n := range cited(text) {
		if id, ok := known[n]; ok {
			all = append(all, session.RecordRef{N: n, ID: id})
		}
	}
	return all
}
