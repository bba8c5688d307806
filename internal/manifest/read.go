package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// maxFileBytes bounds a manifest, and a file of instructions.
const maxFileBytes = 1 << 20

// readText reads a file of UTF-8 text, of at most maxBytes, without its byte order
// mark. Its errors go on after the file's name, which they do not repeat.
func readText(path string, maxBytes int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", cannotRead(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return "", errors.New("is a folder, not a file")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return "", cannotRead(err)
	}
	if int64(len(text)) > maxBytes {
		return "", fmt.Errorf("is larger than %d bytes", maxBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return "", fmt.Errorf("is not UTF-8 in line %d: save it as UTF-8", invalidLine(text))
	}
	return string(text), nil
}

func cannotRead(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("does not exist")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("may not be read: permission denied")
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err // without the path again
	}
	return fmt.Errorf("cannot be read: %w", err)
}

// invalidLine is the number of the first line of text that is not UTF-8.
func invalidLine(text []byte) int {
	line := 1
	for len(text) > 0 {
		r, width := utf8.DecodeRune(text)
		if r == utf8.RuneError && width == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		text = text[width:]
	}
	return line
}
