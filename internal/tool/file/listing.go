package file

import (
	"fmt"
	"strings"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// listing collects output that consists of entries: up to maxBytes it keeps the
// text, beyond that it counts.
type listing struct {
	maxBytes   int
	limitBytes int // of the call

	text     strings.Builder
	produced int64 // bytes written
	entries  int64 // ended
	fitBytes int   // of text: the entries that may be shown beside a marker
	fit      int64 // how many they are
}

func (w *Workspace) newListing(call tool.Call) *listing {
	return &listing{maxBytes: w.captureMaxBytes, limitBytes: call.LimitBytes}
}

// write adds a piece of an entry.
func (l *listing) write(piece string) {
	room := 0
	if int64(l.text.Len()) == l.produced {
		room = l.maxBytes - l.text.Len()
	}
	l.produced += int64(len(piece))
	l.text.WriteString(tool.Cut(piece, room))
}

// end ends an entry.
func (l *listing) end() {
	l.entries++
	if l.produced <= int64(min(l.limitBytes-tool.MarkerMaxBytes, l.maxBytes)) {
		l.fitBytes, l.fit = int(l.produced), l.entries
	}
}

// content sets the content of out: all of it when that fits, else the whole entries
// that do, or the beginning of the first one when none does; the rest is unseen. It
// returns the number of entries shown whole. Entries are counted when they end.
func (l *listing) content(out *session.Output) (shown int64) {
	collected := l.text.String()
	switch {
	case l.produced == 0:
		return l.entries
	case l.produced <= int64(l.limitBytes) && l.produced == int64(len(collected)):
		out.Content = &collected
		return l.entries
	}
	cut := l.fitBytes
	if cut == 0 {
		cut = len(tool.Cut(collected, l.limitBytes-tool.MarkerMaxBytes))
	}
	out.Content = session.Text(strings.Clone(collected[:cut]))
	out.Full = collected
	out.Unseen = l.produced - int64(cut)
	return l.fit
}

// full reports whether text is no longer kept.
func (l *listing) full() bool { return l.produced > int64(l.text.Len()) }

// rest tells how to get the entries that are not shown, when first is the number of
// the first one listed and total counts all there are; "" when nothing is left.
func (l *listing) rest(first, shown, total int64) string {
	next := first + shown
	switch {
	case shown == 0 && l.entries > 0:
		return fmt.Sprintf(", not even number %d fits whole", first)
	case total > 0 && first > total:
		return fmt.Sprintf(", none from offset %d on", first)
	case next > total:
		return ""
	}
	return fmt.Sprintf(", shown %s–%s; go on with offset %d", tool.Grouped(first), tool.Grouped(next-1), next)
}
