package http

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

const inProject = "/v1/projects/default"

// remembering is a fake with some of everything.
func remembering() *fake {
	f := &fake{}
	for version := int64(3); version > 0; version-- {
		f.versions = append(f.versions, session.Document{Project: "default", Name: session.DocumentPreferences, Version: version, TextBytes: int(version),
			Records: []session.RecordRef{{N: 12, ID: testRecord}}, Reason: session.VersionConsolidated, CreatedAt: 1})
	}
	for i := range 5 {
		r := session.Record{ID: session.RecordID(fmt.Sprintf("rec_%032x", i)), N: int64(i + 1), Project: "default", SessionID: testSession, Kind: session.RecordKinds()[i%2],
			Claim: "c", Why: "w", Evidence: []int64{1}, State: session.RecordOpen, CreatedAt: 1}
		if i > 2 {
			r.State, r.Reason, r.ClosedAt, r.StaleAfter = session.RecordClosed, session.CloseApplied, 2, 3
		}
		f.records = append(f.records, r)
		f.passes = append(f.passes, session.Pass{ID: session.PassID(fmt.Sprintf("pas_%032x", i)), SessionID: testSession, Trigger: session.TriggerThreshold,
			FromN: 1, ToN: 2, Items: 2, ChunkBytes: 9, Outcome: session.OutcomeStaged, Records: 1, Steps: 1, StartedAt: 1, DurationMS: 7})
		f.hits = append(f.hits, session.Hit{Record: &f.records[i], Excerpt: "c", Score: 0.5})
	}
	f.hits[0] = session.Hit{Document: &f.versions[0], Excerpt: "c", Score: 1}
	f.letters = []session.DeadLetter{
		{ID: testLetter, Project: "default", SessionID: testSession, FromN: 1, ToN: 1, Outcome: session.OutcomeInvalid, Failures: 5, CreatedAt: 1},
		{ID: testLetter[:len(testLetter)-1] + "f", Project: "other", SessionID: testSession, FromN: 1, ToN: 1, Outcome: session.OutcomeInvalid, Failures: 5, CreatedAt: 1},
	}
	return f
}

func decoded[T any](t *testing.T, w *httptest.ResponseRecorder, status int) (v T) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("answer %d %s, want %d", w.Code, w.Body, status)
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v
}

// walked are all entries of a list, in pages of two.
func walked[T any](t *testing.T, s *Server, path string, name func(T) string) (all []string) {
	t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for cursor := ""; ; {
		p := decoded[page[T]](t, ask(t, s, "GET", path+separator+"limit=2&cursor="+cursor, ""), 200)
		for _, entry := range p.Data {
			all = append(all, name(entry))
		}
		if cursor = p.NextCursor; cursor == "" || len(all) > 20 {
			return all
		}
	}
}

func TestMemoryIsListedInPages(t *testing.T) {
	record := func(r session.Record) string { return fmt.Sprint(r.N) }
	tests := []struct {
		path string
		walk func(t *testing.T, s *Server, path string) []string
		want string
	}{
		{inProject + "/records", func(t *testing.T, s *Server, path string) []string { return walked(t, s, path, record) }, "1 2 3 4 5"},
		{inProject + "/records?state=open", func(t *testing.T, s *Server, path string) []string { return walked(t, s, path, record) }, "1 2 3"},
		{inProject + "/records?kind=decision&state=closed", func(t *testing.T, s *Server, path string) []string { return walked(t, s, path, record) }, "4"},
		{inProject + "/documents/preferences/versions", func(t *testing.T, s *Server, path string) []string {
			return walked(t, s, path, func(d session.Document) string { return fmt.Sprint(d.Version, d.Text) })
		}, "3 2 1"},
		{inProject + "/dead-letters", func(t *testing.T, s *Server, path string) []string {
			return walked(t, s, path, func(l session.DeadLetter) string { return string(l.ID) })
		}, string(testLetter)},
		{sessionPath(testSession) + "/passes", func(t *testing.T, s *Server, path string) []string {
			return walked(t, s, path, func(p session.Pass) string { return string(p.ID)[35:] })
		}, "0 1 2 3 4"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			got := strings.Join(tt.walk(t, newTestServer(t, remembering()), tt.path), " ")
			if got = strings.ReplaceAll(got, "  ", " "); strings.TrimSpace(got) != tt.want {
				t.Errorf("entries %s, want %s", got, tt.want)
			}
		})
	}
}

func TestDocumentsAreReadRestoredAndDeleted(t *testing.T) {
	f := remembering()
	s := newTestServer(t, f)
	list := decoded[page[session.Document]](t, ask(t, s, "GET", inProject+"/documents", ""), 200)
	if len(list.Data) != 1 || list.Data[0].Version != 3 || list.Data[0].Text != "" {
		t.Errorf("the list is %+v, want version 3 without its text", list.Data)
	}
	for query, want := range map[string]string{"": "aaa", "?version=2": "aa"} {
		if d := decoded[session.Document](t, ask(t, s, "GET", inProject+"/documents/preferences"+query, ""), 200); d.Text != want {
			t.Errorf("%q reads %q, want %q", query, d.Text, want)
		}
	}
	w := ask(t, s, "POST", inProject+"/documents/preferences/restore", `{"version":1}`)
	if d := decoded[session.Document](t, w, 201); d.RestoredFrom != 1 || w.Header().Get("Location") != inProject+"/documents/preferences?version=4" {
		t.Errorf("restored %+v at %s", d, w.Header().Get("Location"))
	}
	if w := ask(t, s, "DELETE", inProject+"/documents/preferences", ""); w.Code != 204 {
		t.Errorf("deletion answers %d", w.Code)
	}
	if want := []string{"restore preferences", "delete preferences"}; !slices.Equal(f.wishes, want) {
		t.Errorf("asked for %v, want %v", f.wishes, want)
	}
}

func TestSearchIsPlainText(t *testing.T) {
	f := remembering()
	s := newTestServer(t, f)
	for _, q := range []string{`"`, `a AND NOT (b* OR "c")`, "%_\\", "日本", "-", "NEAR(a b)", strings.Repeat("あ", session.MaxQueryRunes)} {
		w := ask(t, s, "GET", inProject+"/memory/search?limit=2&q="+url.QueryEscape(q), "")
		if got := decoded[page[session.Hit]](t, w, 200); len(got.Data) != 2 || got.NextCursor != "" {
			t.Errorf("a search for %.20q finds %d hits, and %q", q, len(got.Data), got.NextCursor)
		}
	}
}

func TestExtractionIsAskedFor(t *testing.T) {
	for _, start := range []session.ExtractStart{session.ExtractStarted, session.ExtractRunning, session.ExtractNothing, session.ExtractOff} {
		f := remembering()
		f.start = start
		s := newTestServer(t, f)
		for _, path := range []string{sessionPath(testSession) + "/extract", inProject + "/dead-letters/" + string(testLetter) + "/redrive"} {
			if got := decoded[extracted](t, ask(t, s, "POST", path, ""), 202); got.Start != start {
				t.Errorf("%s answers %q, want %q", path, got.Start, start)
			}
		}
		if diff := cmp.Diff([]string{"extract " + string(testSession), "redrive " + string(testLetter)}, f.wishes); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	}
}

func TestBadRequestsToMemoryChangeNothing(t *testing.T) {
	const restore = inProject + "/documents/preferences/restore"
	search := func(q string) string { return inProject + "/memory/search?q=" + url.QueryEscape(q) }
	tests := []struct {
		name, method, path, body string
		code                     code
		detail                   string // part of it
	}{
		{"unknown project", "GET", "/v1/projects/none/documents", "", codeNotFound, `no project "none"`},
		{"encoded project", "GET", "/v1/projects/a%2Fb/records", "", codeNotFound, `no project "a/b"`},
		{"unknown document", "GET", inProject + "/documents/secrets", "", codeNotFound, `no document is named "secrets": the names are [`},
		{"wrong case", "DELETE", inProject + "/documents/Preferences", "", codeNotFound, "no document is named"},
		{"unwritten document", "GET", inProject + "/documents/lessons", "", codeNotFound, "project default has no document lessons"},
		{"versions of an unwritten document", "GET", inProject + "/documents/lessons/versions", "", codeNotFound, "no document lessons"},
		{"deletion of an unwritten document", "DELETE", inProject + "/documents/lessons", "", codeNotFound, "no document lessons"},
		{"unknown version", "GET", inProject + "/documents/preferences?version=99", "", codeNotFound, "no version 99 of document preferences"},
		{"version 0", "GET", inProject + "/documents/preferences?version=0", "", codeInvalidParameter, "version"},
		{"empty version", "GET", inProject + "/documents/preferences?version=", "", codeInvalidParameter, "version"},
		{"version in words", "GET", inProject + "/documents/preferences?version=one", "", codeInvalidParameter, "version"},
		{"huge version", "GET", inProject + "/documents/preferences?version=99999999999999999999", "", codeInvalidParameter, "version"},
		{"cursor 0", "GET", inProject + "/documents/preferences/versions?cursor=0", "", codeInvalidCursor, "next_cursor"},
		{"restore an unknown version", "POST", restore, `{"version":99}`, codeNotFound, "no version 99"},
		{"restore nothing", "POST", restore, `{}`, codeInvalidField, "/version is missing"},
		{"restore version 0", "POST", restore, `{"version":0}`, codeInvalidField, "/version must be an integer from 1 on"},
		{"restore half a version", "POST", restore, `{"version":1.5}`, codeInvalidField, "/version must be an integer"},
		{"restore a text", "POST", restore, `{"version":"1"}`, codeInvalidField, "/version must be an integer"},
		{"restore null", "POST", restore, `{"version":null}`, codeInvalidField, "/version must be an integer"},
		{"restore with more", "POST", restore, `{"version":1,"text":"x"}`, codeInvalidField, "/text is unknown"},
		{"restore a list", "POST", restore, `[1]`, codeInvalidJSON, "object"},
		{"search without q", "GET", inProject + "/memory/search", "", codeInvalidParameter, "q has 0 characters: a search has 1 to 1000"},
		{"blank search", "GET", search(" \t　"), "", codeInvalidParameter, "q has 3 characters"},
		{"long search", "GET", search(strings.Repeat("a", 100_000)), "", codeInvalidParameter, "q has 100000 characters"},
		{"too many hits", "GET", search("a") + "&limit=51", "", codeInvalidParameter, "1 to 50"},
		{"unknown state", "GET", inProject + "/records?state=gone", "", codeInvalidParameter, "one of [open closed]"},
		{"empty kind", "GET", inProject + "/records?kind=", "", codeInvalidParameter, "one of [preference"},
		{"cursor of another list", "GET", inProject + "/records?cursor=12", "", codeInvalidCursor, "next_cursor"},
		{"cursor of passes", "GET", sessionPath(testSession) + "/passes?cursor=x", "", codeInvalidCursor, "next_cursor"},
		{"redrive of nothing", "POST", inProject + "/dead-letters/ded_00000000000000000000000000000000/redrive", "", codeNotFound, "no such dead letter"},
		{"redrive of no id", "POST", inProject + "/dead-letters/1/redrive", "", codeNotFound, "no such dead letter"},
		{"redrive in another project", "POST", inProject + "/dead-letters/" + string(testLetter[:len(testLetter)-1]) + "f/redrive", "", codeNotFound, "no such dead letter"},
		{"extract from no session", "POST", "/v1/sessions/1/extract", "", codeNotFound, "id"},
		{"passes of an unknown session", "GET", "/v1/sessions/ses_00000000000000000000000000000000/passes", "", codeNotFound, "id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := remembering()
			p := wantProblem(t, ask(t, newTestServer(t, f), tt.method, tt.path, tt.body), tt.code)
			if !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("the detail is %q, want %q in it", p.Detail, tt.detail)
			}
			for _, wish := range f.wishes {
				if strings.HasPrefix(wish, "redrive") || strings.HasPrefix(wish, "extract") {
					t.Errorf("asked for %s", wish)
				}
			}
		})
	}
}

func TestReadinessHasRemarks(t *testing.T) {
	s := newTestServer(t, &fake{}, func(c *Config) { c.Remarks = func() []string { return []string{"look at memory"} } })
	if got := decoded[readiness](t, ask(t, s, "GET", "/readyz", ""), 200); !slices.Equal(got.Remarks, []string{"look at memory"}) {
		t.Errorf("remarks %v", got.Remarks)
	}
	if w := ask(t, newTestServer(t, &fake{}), "GET", "/readyz", ""); strings.Contains(w.Body.String(), "remarks") {
		t.Errorf("without remarks it answers %s", w.Body)
	}
}
