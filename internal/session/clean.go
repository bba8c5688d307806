package session

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
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

// maxArgumentDepth bounds the nesting of arguments: parsers of other languages give
// up at a thousand.
const maxArgumentDepth = 100

// CleanArguments reads what a model wrote as the arguments of a call. It returns a
// clean, compact JSON object, or nil when raw is none or is nested more than 100
// deep; blank text is {}. Escapes that stand for no character, a NUL or half of a
// surrogate pair, become U+FFFD too.
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
	return cleanEscapes(compact.Bytes())
}

// cleanEscapes replaces escapes that stand for no character, in place, in valid
// compact JSON. It returns nil when that is nested too deeply.
func cleanEscapes(b []byte) []byte {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i += cleanEscape(b[i:]) - 1
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxArgumentDepth {
				return nil
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return b
}

// cleanEscape replaces the escape that b begins with, unless it is good, and returns
// its length.
func cleanEscape(b []byte) int {
	unit, ok := escapedUnit(b)
	if !ok {
		return 2
	}
	if second, ok := escapedUnit(b[6:]); ok && utf16.DecodeRune(unit, second) != utf8.RuneError {
		return 12
	}
	if unit == 0 || utf16.IsSurrogate(unit) {
		copy(b, `\ufffd`)
	}
	return 6
}

// escapedUnit reads an escape of four hexadecimal digits.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(unit), err == nil
}
