package http

import (
	"math/rand/v2"
	"strings"
	"testing"

	"loadline/internal/session"
)

func TestForeignMessagesLastInput(t *testing.T) {
	for _, test := range []struct{ name, messages, want string }{
		{"text", `[{"role":"assistant","content":null},{"role":"user","content":"hi"}]`, "hi"},
		{"parts", `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`, "a\n\nb"},
		{"unclean", `[{"role":"user","content":"a\u0000"}]`, "a\ufffd"},
		{"instructions behind", `[{"role":"user","content":"hi"},{"role":"system","content":"be brief"},{"role":"developer","content":"b"}]`, "hi"},
		{"history that is strange", `[7,{"role":"oracle"},{"role":"user","content":"hi"}]`, "hi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := readRun([]byte(`{"threadId":"t","runId":"r","more":[1],"messages":` + test.messages + `}`))
			if err != nil || run.Input != test.want {
				t.Errorf("input %q, %v, want %q", run.Input, err, test.want)
			}
		})
	}
}

// However a text comes in pieces, also in some that are there already, and wherever it
// is whole, it is passed on once.
func TestForwardedPassesEachByteOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("0123456789", 5)
	for range 1000 {
		f, got, have := forwarded{}, "", 0
		for random.IntN(5) > 0 {
			from := random.IntN(have + 1)
			to := from + random.IntN(len(text)-from+1)
			got += f.delta(&session.Delta{ItemN: 2, AtByte: int64(from), Text: text[from:to]})
			have = max(have, to)
		}
		if got += f.rest(2, text); got != text || f.rest(2, text) != "" {
			t.Fatalf("passed on %q, want %q", got, text)
		}
	}
}

// wantRefused fails unless a body is refused in one line of text that names its place,
// with nothing submitted.
func wantRefused(t *testing.T, path, body, pointer string, want code) {
	t.Helper()
	f := &fake{}
	s := newTestServer(t, f, func(c *Config) { c.Settings.ImportMaxBytes = 2 << 20 })
	text := wantText(t, ask(t, s, "POST", path, body), want)
	if !strings.Contains(text, pointer+" ") {
		t.Errorf("refused with %q, want one at %s", text, pointer)
	}
	if len(f.submitted) > 0 {
		t.Errorf("submitted %+v", f.submitted)
	}
}
