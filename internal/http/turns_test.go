package http

import (
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"loadline/internal/session"
)

func TestIdempotencyKeys(t *testing.T) {
	post := func(body string, header ...string) (*httptest.ResponseRecorder, *fake) {
		f := &fake{replayed: true}
		return ask(t, newTestServer(t, f), "POST", sessionPath(testSession)+"/turns", body, header...), f
	}
	for _, key := range []string{"", " ", "a b", "é", "a\tb", strings.Repeat("k", 256), "a\x7f"} {
		w, f := post(`{"input":"a"}`, "Idempotency-Key: "+key)
		wantProblem(t, w, codeInvalidParameter)
		if w.Code != 400 || len(f.submitted) > 0 {
			t.Errorf("key %q: status %d and %d turns, want 400 and none", key, w.Code, len(f.submitted))
		}
	}
	hash := func(body string) [32]byte {
		t.Helper()
		w, f := post(body, "Idempotency-Key: "+strings.Repeat("k", 255))
		if w.Code != 202 || w.Header().Get("Idempotency-Replayed") != "true" || f.submitted[0].key.Key != strings.Repeat("k", 255) {
			t.Fatalf("answer %d %s, key %v", w.Code, w.Body, f.submitted)
		}
		return f.submitted[0].key.BodyHash
	}
	plain := hash(`{"input":"a"}`)
	for _, same := range []string{`{ "input" : "\u0061" }`, `{"mode":"enqueue","input":"a"}`, `{"input":"b","input":"a"}`} {
		if hash(same) != plain {
			t.Errorf("%s counts as another body", same)
		}
	}
	for _, other := range []string{`{"input":"a "}`, `{"input":"a","mode":"reject"}`} {
		if hash(other) == plain {
			t.Errorf("%s counts as the same body", other)
		}
	}
}

// Whatever a body holds, it is refused with a problem or its text is clean.
func FuzzSubmission(f *testing.F) {
	for _, seed := range []string{`{"input":"a","mode":"reject"}`, `{"input":"\u0000\ud800"}`, `{"input":`, "{\"input\":\"\xff\"}", `{"input":"a","input":null}`, `[{}]`, `{"":1}`} {
		f.Add([]byte(seed))
	}
	s := newTestServer(f, &fake{})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		sub, err := s.readSubmission(httptest.NewRecorder(), r)
		if err != nil {
			if p := asProblem(err); p.Status != 400 || !utf8.ValidString(p.Detail) {
				t.Errorf("%q is refused with %v", body, err)
			}
			return
		}
		if blank(sub.Input) || session.Clean(sub.Input) != sub.Input {
			t.Errorf("%q gives the input %q", body, sub.Input)
		}
	})
}
