package main

import (
	"bytes"
	"strings"
	"testing"
)

// The accident kills the small client and not Loadline, and the output says so.
func TestAccidentIsReplayed(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	parts := strings.Split(out.String(), "\n\n")
	if len(parts) != 4 {
		t.Fatalf("the output has %d parts:\n%s", len(parts), out.String())
	}
	for i, want := range []string{"listing has 125050 bytes", "The session is dead", "The session lives.", "all go into the history"} {
		if !strings.Contains(parts[i], want) {
			t.Errorf("part %d does not say %q:\n%s", i, want, parts[i])
		}
	}
	if refused := strings.Count(parts[1], "HTTP 429: Request too large"); refused != retries*len(inputs()) {
		t.Errorf("the small client was refused %d times", refused)
	}
	if completed := strings.Count(parts[3], "tokens"); completed != len(inputs())+1 || !strings.Contains(parts[3], "The session lives.") {
		t.Errorf("with the whole listing in its history Loadline took %d requests:\n%s", completed, parts[3])
	}
}
