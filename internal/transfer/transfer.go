// Package transfer carries sessions in and out: the form that they are exported in,
// and importers that make a history which can go on out of what other programs have
// left, however broken it is. docs/transfer.md has the forms and the repairs.
package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
)

// Format is the form of a document.
type Format string

// The forms that can be read.
const (
	FormatLoadline  Format = "loadline"  // what is exported here
	FormatOpenAI    Format = "openai"    // messages of a chat completion, or the input of a response
	FormatAnthropic Format = "anthropic" // messages with blocks of content
)

// Bounds on a document, beside its bytes.
const (
	// maxItems is how many items a history may have that is imported.
	maxItems = 200_000
	// maxRepairs is how many repairs are told one by one.
	maxRepairs = 1000
)

// Import is what a document has brought.
type Import struct {
	Format   Format
	Title    string            // empty when the document has none
	Metadata map[string]string // never nil
	// Items are numbered from 1. They have neither session nor turn nor time.
	Items   []session.Item
	Repairs []session.Repair // the first 1000
	// RepairsTotal counts all.
	RepairsTotal int
}

func unreadable(format string, args ...any) error {
	return &session.NotImportable{Detail: session.Clean(fmt.Sprintf(format, args...))}
}

// Limit is the limit in bytes of the result of a call of a tool that was one of so
// many in its answer. It is at least 128.
type Limit func(tool string, calls int) int

// Read makes a history out of a document. An empty format is found out. What is
// wrong inside of the document is repaired and reported: every call has one result
// afterwards, in call order; no result is larger than its limit; no text is blank.
// It fails with *session.NotImportable when there is no list of messages, or nothing in it.
func Read(document []byte, format Format, limit Limit) (*Import, error) {
	d, err := open(document)
	if err != nil {
		return nil, err
	}
	if format == "" {
		format = d.detect()
	}
	b := &builder{out: &Import{Format: format, Metadata: map[string]string{}}, limit: limit}
	switch format {
	case FormatLoadline:
		err = b.readOwn(d)
	case FormatOpenAI:
		b.readOpenAI(d)
	case FormatAnthropic:
		b.readAnthropic(d)
	default:
		err = unreadable("format %q is unknown: it is loadline, openai or anthropic", format)
	}
	if err != nil {
		return nil, err
	}
	b.closeAnswer()
	if len(b.out.Items) == 0 {
		return nil, unreadable("the document has nothing that a history could hold")
	}
	return b.out, nil
}

// document is a list of messages and what came with it.
type document struct {
	head     map[string]json.RawMessage // nil of a bare list
	messages []json.RawMessage
}

// open finds the list.
func open(raw []byte) (document, error) {
	var d document
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))
	if !utf8.Valid(raw) {
		raw = []byte(session.Clean(string(raw)))
	}
	list := raw
	if bytes.HasPrefix(raw, []byte("{")) {
		if err := json.Unmarshal(raw, &d.head); err != nil {
			return d, unreadable("the document is no JSON: %v", err)
		}
		list = nil
		for _, name := range []string{"items", "messages", "input"} {
			if found := d.head[name]; list == nil && bytes.HasPrefix(found, []byte("[")) {
				list = found
			}
		}
		if list == nil {
			return d, unreadable("the object has no list called items, messages or input")
		}
	}
	if err := json.Unmarshal(list, &d.messages); err != nil {
		return d, unreadable("the document is no list of messages: %v", err)
	}
	if len(d.messages) > maxItems {
		return d, unreadable("the list has %d messages, at most %d can be imported", len(d.messages), maxItems)
	}
	return d, nil
}

// detect finds out the form: that of Anthropic has blocks of its own.
func (d document) detect() Format {
	if d.text("format") == string(FormatLoadline) {
		return FormatLoadline
	}
	if _, ok := d.head["system"]; ok {
		return FormatAnthropic
	}
	for _, raw := range d.messages {
		var m struct {
			N       int64 `json:"n"`
			Kind    string
			Content []struct{ Type string }
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if m.N > 0 && m.Kind != "" {
			return FormatLoadline
		}
		for _, block := range m.Content {
			switch block.Type {
			case "tool_use", "tool_result", "thinking", "redacted_thinking":
				return FormatAnthropic
			}
		}
	}
	return FormatOpenAI
}

// text is a string of the head; empty when it is none.
func (d document) text(name string) string {
	var s string
	if json.Unmarshal(d.head[name], &s) != nil {
		return ""
	}
	return session.Clean(s)
}

// isBlank reports whether a service would refuse s.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

var errNoText = errors.New("it is neither text nor a list of parts")
