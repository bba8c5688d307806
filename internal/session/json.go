package session

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// EncodeJSON is the one JSON encoder of the wire form: without HTML escaping,
// which would make six bytes of a "<", and without a line break at the end.
func EncodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// AppendJSONString appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func AppendJSONString(b []byte, s string) []byte {
	return append(AppendJSONText(append(b, '"'), s), '"')
}

// AppendJSONText appends s as it stands inside a JSON string, without quotes. Plain
// text, nearly all there is, is copied as it is.
func AppendJSONText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	if !utf8.ValidString(s) {
		return appendEscaped(b, s)
	}
	return append(b, s...)
}

// appendEscaped copies the runs between the bytes that must be escaped.
func appendEscaped(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		default:
			const digits = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		start = i + 1
	}
	return append(b, s[start:]...)
}
