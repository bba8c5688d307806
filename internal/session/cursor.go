package session

import (
	"errors"
	"strconv"
	"strings"
)

// ErrCursor refuses a cursor that no stream can have given.
var ErrCursor = errors.New(`a cursor is "0", "seq", "seq.offset" or, as ?after= only, "now"`)

// Cursor is a place in a session's stream. The zero Cursor is its beginning.
type Cursor struct {
	Seq    int64 // the last durable event seen
	Offset int64 // bytes of the running step's live text seen after it; -1 when the id had none
	Live   bool  // "now": only what comes from here on, and the running text from its start
}

// ParseCursor reads an id that a stream has given, or "now". Empty text is the beginning.
func ParseCursor(s string) (Cursor, error) {
	switch s {
	case "":
		return Cursor{Offset: -1}, nil
	case "now":
		return Cursor{Offset: -1, Live: true}, nil
	}
	seqText, offsetText, hasOffset := strings.Cut(s, ".")
	seq, err := parseDecimal(seqText)
	if err != nil {
		return Cursor{}, ErrCursor
	}
	if !hasOffset {
		return Cursor{Seq: seq, Offset: -1}, nil
	}
	offset, err := parseDecimal(offsetText)
	if err != nil {
		return Cursor{}, ErrCursor
	}
	return Cursor{Seq: seq, Offset: offset}, nil
}

// parseDecimal takes a number as we write it: digits only, none in vain.
func parseDecimal(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, ErrCursor
	}
	return n, nil
}
