package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode"

	"loadline/internal/session"
)

// Bounds on what a client may attach to a session.
const (
	maxTitleBytes    = 16 << 10
	maxMetadataKeys  = 64
	maxMetadataBytes = 16 << 10 // keys and values together
	maxDrainBytes    = 8 << 20  // of a refused body, read so that the client sees the answer
)

// readBody reads a whole JSON body of at most limit bytes, which server.body_max_bytes
// says.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	return readBounded(w, r, limit, "server.body_max_bytes")
}

// readBounded reads a whole JSON body of at most limit bytes, which key says.
func readBounded(w http.ResponseWriter, r *http.Request, limit int64, key string) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	tooLarge := newProblem(codeBodyTooLarge, fmt.Sprintf("a body may have at most %d bytes (%s)", limit, key))
	if r.ContentLength > limit && r.Header.Get("Expect") != "" {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrainBytes)
		return nil, tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, newProblem(codeRequestTimeout, "")
	}
	return nil, newProblem(codeInvalidJSON, fmt.Sprintf("the body broke off after %d bytes: send it again", len(body)))
}

func checkMediaType(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return newProblem(codeUnsupportedMedia, fmt.Sprintf("send the body without Content-Encoding %q", encoding))
	}
	contentType := h.Get("Content-Type")
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return newProblem(codeUnsupportedMedia, fmt.Sprintf("Content-Type is %q: send application/json", contentType))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return newProblem(codeUnsupportedMedia, fmt.Sprintf("the charset is %q: send UTF-8", charset))
	}
	return nil
}

// form is a JSON object whose fields are taken out one by one; done reports all that
// was wrong at once.
type form struct {
	fields map[string]json.RawMessage
	errors []fieldError
}

// newForm parses body, which must be one JSON object. Of a repeated field the last
// one counts.
func newForm(body []byte) (*form, error) {
	var f form
	err := json.Unmarshal(body, &f.fields)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, newProblem(codeInvalidJSON, fmt.Sprintf("after byte %d of %d: %s", wrong.Offset, len(body), wrong))
	}
	if err != nil || f.fields == nil {
		return nil, newProblem(codeInvalidJSON, "the body must be a JSON object")
	}
	return &f, nil
}

func (f *form) refuse(field, format string, args ...any) {
	f.refuseAt("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(session.Clean(field)), format, args...)
}

// refuseAt is refuse for what a JSON Pointer names.
func (f *form) refuseAt(pointer, format string, args ...any) {
	f.errors = append(f.errors, fieldError{pointer, fmt.Sprintf(format, args...)})
}

// take removes the field and reports whether it is there and fits into.
func (f *form) take(field string, into any, want string) bool {
	raw, ok := f.fields[field]
	delete(f.fields, field)
	if !ok {
		return false
	}
	if string(raw) == "null" || json.Unmarshal(raw, into) != nil {
		f.refuse(field, "must be %s", want)
		return false
	}
	return true
}

// text takes a clean string; nil when it is absent.
func (f *form) text(field string) *string {
	var s string
	if !f.take(field, &s, "a string") {
		return nil
	}
	s = session.Clean(s)
	return &s
}

// title takes a bounded text.
func (f *form) title() *string {
	s := f.text("title")
	if s != nil && len(*s) > maxTitleBytes {
		f.refuse("title", "has %d bytes, at most %d are allowed", len(*s), maxTitleBytes)
	}
	return s
}

// metadata takes a bounded map of clean strings; nil when it is absent.
func (f *form) metadata() map[string]string {
	var values map[string]*string
	if !f.take("metadata", &values, "an object of strings") {
		return nil
	}
	cleaned, sizeBytes := make(map[string]string, len(values)), 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if value == nil || name == "" {
			f.refuse("metadata", "must be an object of strings, none of which is null or has an empty name")
			return nil
		}
		cleaned[session.Clean(name)] = session.Clean(*value)
	}
	for name, value := range cleaned {
		sizeBytes += len(name) + len(value)
	}
	if len(cleaned) > maxMetadataKeys || sizeBytes > maxMetadataBytes {
		f.refuse("metadata", "has %d names and %d bytes, at most %d and %d are allowed", len(cleaned), sizeBytes, maxMetadataKeys, maxMetadataBytes)
	}
	return cleaned
}

// done reports what was wrong, fields that nobody took included.
func (f *form) done() error {
	for _, field := range slices.Sorted(maps.Keys(f.fields)) {
		f.refuse(field, "is unknown")
	}
	if len(f.errors) == 0 {
		return nil
	}
	p := newProblem(codeInvalidField, f.errors[0].Pointer+" "+f.errors[0].Detail)
	p.Errors = f.errors
	return p
}

// fieldProblem refuses one field of a body.
func fieldProblem(pointer, detail string) *problem {
	p := newProblem(codeInvalidField, pointer+" "+detail)
	p.Errors = []fieldError{{pointer, detail}}
	return p
}

// blank reports whether s shows nothing.
func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}
