package manifest

import (
	"errors"
	"strings"
	"time"
)

// maxDuration bounds each time of a manifest, so that sums of them never overflow.
const maxDuration = 30 * 24 * time.Hour

// Duration is a time.Duration that manifests and their JSON form write as text,
// like "5s" or "1m30s". It is never negative and at most 720h.
type Duration time.Duration

// UnmarshalText reads the form that time.ParseDuration takes.
func (d *Duration) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New(`must be a duration like "5s" or "1m30s"`)
	}
	if read < 0 || read > maxDuration {
		return errors.New("must be from 0s to 720h")
	}
	*d = Duration(read)
	return nil
}

// MarshalText writes the shortest form: "2m", not "2m0s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
