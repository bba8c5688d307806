package session

import (
	"bytes"
	"encoding/json"
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

// AppendJSONString appends s as a JSON string. Plain text, nearly all there is, is
// copied as it is. Bytes that are no UTF-8 become U+FFFD.
func AppendJSONString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	if !utf8.ValidString(s) {
		return appendEscaped(b, s)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	quoted, _ := EncodeJSON(s) // a string always encodes
	return append(b, quoted...)
}
