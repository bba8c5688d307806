package shell

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const (
	gapNote      = "… %d bytes left out …\n" // between head and tail
	gapNoteBytes = 44                        // at most, with 19 digits and a line break before it
	minTailBytes = 64 << 10
	growAtBytes  = 1 << 20 // of output from which room for all of the capture is made at once
)

// capture collects output up to maxBytes: its beginning, and in a ring its end. What
// falls between is counted. Nothing is lost of an output within the bound.
type capture struct {
	progress  *progress
	maxBytes  int
	headBytes int
	tailBytes int

	total  int64
	head   strings.Builder
	ring   []byte // grows to tailBytes, then wraps
	ringAt int    // the oldest byte of a full ring, which is written next
}

// newCapture makes a capture whose tail is long enough for a content of limitBytes.
func newCapture(maxBytes, limitBytes int, p *progress) *capture {
	tail := min(maxBytes/2, max(limitBytes, minTailBytes))
	return &capture{progress: p, maxBytes: maxBytes, headBytes: maxBytes - tail - gapNoteBytes, tailBytes: tail}
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	written := len(p)
	c.total += int64(written)
	c.progress.saw(p)
	if c.head.Len() > growAtBytes && c.head.Cap() < c.maxBytes {
		c.head.Grow(c.maxBytes - c.head.Len())
	}
	taken := min(c.headBytes-c.head.Len(), len(p))
	c.head.Write(p[:taken])
	p = p[taken:]
	p = p[max(0, len(p)-c.tailBytes):] // the ring would hold no more
	taken = min(c.tailBytes-len(c.ring), len(p))
	c.ring = append(c.ring, p[:taken]...)
	p = p[taken:]
	for len(p) > 0 {
		taken = copy(c.ring[c.ringAt:], p)
		c.ringAt = (c.ringAt + taken) % c.tailBytes
		p = p[taken:]
	}
	return written, nil
}

// output is what was collected: whole when it fits into limitBytes, else its head
// and tail. Nothing can be written after it.
func (c *capture) output(limitBytes int) session.Output {
	head, tail := c.head.String(), string(c.ring[c.ringAt:])+string(c.ring[:c.ringAt])
	lost := c.total - int64(len(head)+len(tail))
	if lost > 0 {
		fmt.Fprintf(&c.head, "\n"+gapNote, lost)
	}
	c.head.WriteString(tail)
	full := session.Clean(c.head.String())
	if lost > 0 {
		head, tail = session.Clean(head), session.Clean(tail)
	} else {
		head, tail = full, ""
	}
	produced := int64(len(head)+len(tail)) + lost
	switch {
	case produced == 0:
		return session.Output{}
	case lost == 0 && produced <= int64(limitBytes):
		return session.Output{Content: &full}
	}
	content := ends(head, tail, lost, limitBytes-tool.MarkerMaxBytes)
	return session.Output{Content: &content, Unseen: produced - int64(len(content)), Full: tool.Cut(full, c.maxBytes)}
}

// ends puts the ends of an output into room bytes, with a line between that counts
// what was left out. Between head and tail lost bytes are missing already; without
// a tail head is all of the output, and longer than room. The tail gets more of the room: it is where errors are.
func ends(head, tail string, lost int64, room int) string {
	if tail == "" {
		half := len(tool.Cut(head, len(head)/2))
		head, tail = head[:half], head[half:]
	}
	all := int64(len(head)+len(tail)) + lost
	room = max(0, room-gapNoteBytes)
	headRoom := max(room/3, room-len(tail))
	head = headLines(head, headRoom)
	tail = tailLines(tail, room-len(head))
	gap := fmt.Sprintf(gapNote, all-int64(len(head)+len(tail)))
	if !strings.HasSuffix(head, "\n") {
		gap = "\n" + gap
	}
	return head + gap + tail
}

// headLines is the beginning of s in at most room bytes, whole lines if that costs
// little.
func headLines(s string, room int) string {
	if len(s) <= room {
		return s
	}
	s = tool.Cut(s, room)
	if i := strings.LastIndexByte(s, '\n'); i >= len(s)*3/4 {
		s = s[:i+1]
	}
	return s
}

// tailLines is the end of s in at most room bytes, whole lines if that costs little.
func tailLines(s string, room int) string {
	if len(s) <= room {
		return s
	}
	from := len(s) - room
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	s = s[from:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/4 {
		s = s[i+1:]
	}
	return s
}
