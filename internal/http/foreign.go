package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"loadline/internal/session"
)

// What a stream that breaks off ends with, in protocols whose clients take a cut one
// for a success.
const (
	streamBroken       = "stream_broken"
	streamBrokenDetail = "the stream broke off; the turn goes on: its result is in the history of the session"
)

// foreignMessage is a message as chat programs send it, of which the whole history
// comes with each request. Only the last one of the user is new to a session.
type foreignMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string, or a list of parts
}

// lastInput finds the text that the user has written last, and its place in messages.
// What follows it may be instructions alone: whoever sends a result of a tool or an
// answer of the model last wants something else than a new turn.
func (f *form) lastInput(messages []json.RawMessage) (text string, at int) {
	for at = len(messages) - 1; at >= 0; at-- {
		place := fmt.Sprintf("/messages/%d", at)
		var m foreignMessage
		if json.Unmarshal(messages[at], &m) != nil {
			f.refuseAt(place, "must be a message: an object with role and content")
			return "", at
		}
		switch m.Role {
		case "system", "developer":
		case "user":
			return f.partsText(place+"/content", m.Content), at
		default:
			f.refuseAt(place, "has the role %q: the last message must be one of the user; tools run on the server, which keeps the history", session.Clean(m.Role))
			return "", at
		}
	}
	f.refuseAt("/messages", "must hold a message of the user")
	return "", at
}

// partsText reads content that is a string or a list of parts of type text, which are
// joined as paragraphs.
func (f *form) partsText(place string, content json.RawMessage) string {
	var text string
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if content == nil || string(content) == "null" || json.Unmarshal(content, &text) != nil && json.Unmarshal(content, &parts) != nil {
		f.refuseAt(place, "must be a string, or a list of parts of type text")
		return ""
	}
	for i, part := range parts {
		if part.Type != "text" || part.Text == nil {
			f.refuseAt(fmt.Sprintf("%s/%d", place, i), "is of type %q: only parts of type text can be taken", session.Clean(part.Type))
			return ""
		}
		if i > 0 {
			text += "\n\n"
		}
		text += *part.Text
	}
	if text = session.Clean(text); blank(text) {
		f.refuseAt(place, "is blank: it must hold some text")
	}
	return text
}

// newForeignForm parses a body of which only some fields are read. A null is an absent
// field there.
func newForeignForm(body []byte) (*form, error) {
	f, err := newForm(body)
	if err != nil {
		return nil, err
	}
	for name, value := range f.fields {
		if string(value) == "null" {
			delete(f.fields, name)
		}
	}
	return f, nil
}

// messages takes the list that every chat program sends.
func (f *form) messages() []json.RawMessage {
	var messages []json.RawMessage
	if _, given := f.fields["messages"]; !given {
		f.refuse("messages", "is missing: it must be a list of messages")
	} else {
		f.take("messages", &messages, "a list of messages")
	}
	return messages
}

// doneForeign is done, but lets unknown fields pass.
func (f *form) doneForeign() error {
	clear(f.fields)
	return f.done()
}

// forwarded counts the bytes of each item's text that a stream has passed on.
type forwarded map[int64]int

// delta is what of d has not been passed on yet; it counts as passed on then.
func (f forwarded) delta(d *session.Delta) string {
	have := min(max(f[d.ItemN]-int(d.AtByte), 0), len(d.Text))
	f[d.ItemN] = max(f[d.ItemN], int(d.AtByte)+len(d.Text))
	return d.Text[have:]
}

// rest is what of item n, whose text is whole now, has not been passed on yet.
func (f forwarded) rest(n int64, text string) string {
	have := min(f[n], len(text))
	f[n] = len(text)
	return text[have:]
}

// resultText is what the model is sent of a result.
func resultText(r *session.ToolResult) string {
	if r.Content == nil || strings.TrimSpace(*r.Content) == "" {
		return r.Summary
	}
	return r.Summary + "\n\n" + *r.Content
}

// readForeign reads a body with a whole history. It may be as large as a document that
// is imported: a limit for single inputs would end long conversations.
func (s *Server) readForeign(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	deadline := time.Now().Add(transferTimeout)
	_ = http.NewResponseController(w).SetReadDeadline(deadline) // else the usual time holds
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
	return readBounded(w, r, s.config.Settings.ImportMaxBytes, "server.import_max_bytes")
}

// boundInput refuses an input that is larger than a whole body of a turn may be.
func (s *Server) boundInput(input string) error {
	if limit := s.config.Settings.BodyMaxBytes; int64(len(input)) > limit {
		return newProblem(codeBodyTooLarge, fmt.Sprintf("the last message has %d bytes, at most %d are allowed (server.body_max_bytes)", len(input), limit))
	}
	return nil
}
