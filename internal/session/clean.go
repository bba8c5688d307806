package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Clean makes s text that can be stored, streamed and sent: each invalid byte and
// each NUL becomes U+FFFD, three bytes. It is done before anything is measured.
// Clean text comes back as it is, without a copy.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == utf8.RuneError && width == 1 {
			b.WriteRune(utf8.RuneError)
		} else {
			b.WriteString(s[i : i+width])
		}
		i += width
	}
	return b.String()
}

// CleanArguments reads what a model wrote as the arguments of a call. It returns a
// clean, compact JSON object, or nil when raw is none; blank text is {}. Escaped
// NULs become U+FFFD too.
func CleanArguments(raw string) json.RawMessage {
	raw = strings.TrimSpace(Clean(raw))
	if raw == "" {
		return json.RawMessage("{}")
	}
	if raw[0] != '{' {
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(raw)) != nil {
		return nil
	}
	return replaceEscapedNUL(compact.Bytes())
}

func replaceEscapedNUL(b []byte) []byte {
	escape := []byte(`\u0000`)
	if !bytes.Contains(b, escape) {
		return b
	}
	for i := 0; i < len(b)-1; i++ {
		if b[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(b[i:], escape) {
			copy(b[i:], `\ufffd`)
		}
		i++ // the escaped character is no backslash of its own
	}
	return b
}
