package main

import (
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// progress replaces the line that says how far something long has come; an empty one
// takes it away.
type progress func(format string, args ...any)

// newProgress shows its line on a terminal, and nothing elsewhere.
func newProgress(w io.Writer) progress {
	if f, ok := w.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		return func(string, ...any) {}
	}
	const toStart = "\r\x1b[K" // of the line, which becomes empty
	return func(format string, args ...any) {
		fmt.Fprintf(w, toStart+format, args...)
	}
}
