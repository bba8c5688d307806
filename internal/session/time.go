package session

import (
	"fmt"
	"strconv"
	"time"
)

// Time is a moment in Unix microseconds; 0 is no time. Its JSON form is RFC 3339
// in UTC with six fractional digits.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000000Z"

// Now is the current moment.
func Now() Time { return Time(time.Now().UnixMicro()) }

// Time converts to the standard library's type, in UTC.
func (t Time) Time() time.Time { return time.UnixMicro(int64(t)).UTC() }

// AppendFormat appends the wire form, without quotes.
func (t Time) AppendFormat(b []byte) []byte { return t.Time().AppendFormat(b, timeLayout) }

// String is the wire form.
func (t Time) String() string { return string(t.AppendFormat(nil)) }

// MarshalJSON writes the wire form.
func (t Time) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, t.String()), nil
}

// UnmarshalJSON reads the wire form.
func (t *Time) UnmarshalJSON(b []byte) error {
	s, err := strconv.Unquote(string(b))
	if err != nil {
		return fmt.Errorf("time %s: %w", b, err)
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return err
	}
	*t = Time(at.UnixMicro())
	return nil
}
