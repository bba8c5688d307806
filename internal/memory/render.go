package memory

import (
	"unicode/utf8"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// minItemBytes is how short the rendering of one item can be made. An item whose
// rendering is not longer is shown whole.
const minItemBytes = 512

// line is a note as the model is shown it: a JSON object on a line of its own, so that
// no text can end its quotation.
type line struct {
	N      int64  `json:"n"`
	From   string `json:"from"`
	Tool   string `json:"tool,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	Text   string `json:"text,omitempty"`
	Bytes  int    `json:"bytes,omitempty"` // of the text, when only its ends are shown
	Head   string `json:"head,omitempty"`
	Tail   string `json:"tail,omitempty"`
}

// render is the line of a note, its line break included, with secrets masked. One
// longer than maxBytes, which is at least minItemBytes, shows the head and the tail of
// its text, and its size. A note with nothing to read is empty.
func render(n *session.Note, mask func(string) string, maxBytes int) string {
	if n.Bytes() == 0 {
		return ""
	}
	l := line{N: n.N, From: source(n.Kind), Tool: mask(n.Tool), Failed: n.Failed, Text: mask(n.Text)}
	whole := l.encode()
	if len(whole) <= maxBytes {
		return whole
	}
	text := l.Text
	l.Text, l.Bytes = "", len(text)
	for room := maxBytes; ; room = room * 3 / 4 {
		l.Head, l.Tail = ends(text, room)
		if short := l.encode(); len(short) <= maxBytes || room == 0 {
			return short
		}
	}
}

func (l *line) encode() string {
	b, _ := session.EncodeJSON(l) // texts and numbers always encode
	return string(b) + "\n"
}

func source(k session.ItemKind) string {
	switch k {
	case session.KindUserMessage:
		return "user"
	case session.KindAssistantMessage:
		return "assistant"
	case session.KindToolCall:
		return "call"
	case session.KindToolResult:
		return "result"
	}
	return "server"
}

// ends are the first two thirds and the last third of what is kept of text.
func ends(text string, keepBytes int) (head, tail string) {
	head = tool.Cut(text, keepBytes*2/3)
	start := max(len(head), len(text)-keepBytes/3)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return head, text[start:]
}
