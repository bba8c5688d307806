package memory

import (
	"context"
	"math"
	"strings"

	"loadline/internal/session"
)

// notesPage is how many notes are read at once.
const notesPage = 256

// chunk is what one pass reads: whole items, one after the other.
type chunk struct {
	from, to  int64 // numbers of its first and last item
	noteBytes int64
	text      strings.Builder
	more      bool // items follow that there was no room for
	shortest  bool // it is one item, shown as short as can be
}

func (c *chunk) items() int64 { return c.to - c.from + 1 }

// bounds say where a chunk ends.
type bounds struct {
	maxBytes  int   // of its text, unless it is one item of minItemBytes
	itemBytes int   // of its one item; 0: maxBytes
	maxItems  int64 // 0: no bound
	lastN     int64 // 0: no bound
}

// boundsOf are those of a pass in a project, after what earlier passes came to.
func boundsOf(chunkBytes int, r session.Retrying) bounds {
	return bounds{maxBytes: chunkBytes, itemBytes: r.ItemBytes, maxItems: int64(r.MaxItems)}
}

func (b bounds) itemMax() int {
	if b.itemBytes > 0 && b.maxItems == 1 {
		return max(minItemBytes, min(b.itemBytes, b.maxBytes))
	}
	return max(minItemBytes, b.maxBytes)
}

// readChunk reads what comes after an item, as much as fits. It holds one page of
// notes in memory beside the chunk. Without any item to is 0.
func readChunk(ctx context.Context, h Histories, id session.ID, after int64, b bounds, mask func(string) string) (*chunk, error) {
	c := &chunk{from: after + 1, to: after}
	for {
		notes, err := h.Notes(ctx, id, c.to, notesPage)
		if err != nil {
			return nil, err
		}
		for i := range notes {
			if !c.take(&notes[i], b, mask) {
				return c, nil
			}
		}
		if len(notes) == 0 {
			return c, nil
		}
	}
}

// take adds a note, unless the chunk ends before it.
func (c *chunk) take(n *session.Note, b bounds, mask func(string) string) bool {
	if b.maxItems > 0 && c.items() >= b.maxItems || n.N > lastN(b) {
		c.more = true
		return false
	}
	text := render(n, mask, b.itemMax())
	if c.items() > 0 && c.text.Len()+len(text) > b.maxBytes {
		c.more = true
		return false
	}
	c.text.WriteString(text)
	c.to = n.N
	c.noteBytes += n.Bytes()
	c.shortest = c.items() == 1 && len(text) <= minItemBytes
	return true
}

func lastN(b bounds) int64 {
	if b.lastN == 0 {
		return math.MaxInt64
	}
	return b.lastN
}

// counted reports whether a failure of this kind over this chunk says something about
// the chunk, so that it may become a dead letter.
func (c *chunk) counted(o session.Outcome) bool {
	switch o {
	case session.OutcomeInvalid, session.OutcomeNoSubmission, session.OutcomeTurnLimit, session.OutcomeToolError:
		return true
	case session.OutcomeContextTooLong:
		return c.shortest
	}
	return false
}

// after is how the next pass is narrower when this one over c, itself narrowed by r,
// has ended so. Failures on a range's own account add up while it stays the same: what
// a session adds joins it as long as there is room, and is a new range. What is too
// long is halved, and then shown ever shorter.
func (c *chunk) after(r session.Retrying, o session.Outcome) session.Retrying {
	switch {
	case o.Succeeded():
		return session.Retrying{More: c.more}
	case c.counted(o):
		if r.ToN != c.to {
			r.ToN, r.Failures = c.to, 0
		}
		r.Failures++
	case o == session.OutcomeContextTooLong && c.items() > 1:
		return session.Retrying{More: r.More, MaxItems: int(c.items() / 2)}
	case o == session.OutcomeContextTooLong:
		r.MaxItems, r.ItemBytes = 1, max(minItemBytes, c.text.Len()/2)
	}
	return r
}
