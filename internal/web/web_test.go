package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// What a browser may be sent of the page, and of the contract with its style.
const (
	maxGzippedBytes     = 150 << 10
	maxGzippedDocsBytes = 50 << 10
)

func openPage(t *testing.T) *Page {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// get asks for a path with headers "Name: value".
func get(p *Page, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestPageIsSmall(t *testing.T) {
	page, docs := 0, 0
	for path, f := range openPage(t).files {
		sent := len(f.plain)
		if gzipped := f.gzipped(); gzipped != nil {
			sent = len(gzipped)
		}
		t.Logf("%s: %d bytes, %d compressed", path, len(f.plain), sent)
		if path == "/docs" || strings.HasPrefix(path, "/assets/docs-") {
			docs += sent
		} else {
			page += sent
		}
	}
	if page > maxGzippedBytes || docs > maxGzippedDocsBytes {
		t.Errorf("compressed the page has %d bytes, the contract %d; want at most %d and %d", page, docs, maxGzippedBytes, maxGzippedDocsBytes)
	}
}

func TestPagesHoldNothingInline(t *testing.T) {
	wantNothingInline(t, "/")
	wantNothingInline(t, "/docs")
	if text := get(openPage(t), "/docs").Body.String(); strings.Contains(text, "<script") {
		t.Error("the contract has a script")
	}
}

func wantNothingInline(t *testing.T, page string) {
	text := get(openPage(t), page).Body.String()
	for name, form := range map[string]string{
		"a script":           `<script(?:[^>]*)>[^<]`,
		"a style":            `<style|\sstyle=`,
		"an event handler":   `\son[a-z]+=`,
		"another origin":     `<(?:link|script|img)[^>]* (?:src|href)="(?:https?:)?//`,
		"a script elsewhere": `src="[^/]`,
	} {
		if found := regexp.MustCompile(form).FindString(text); found != "" {
			t.Errorf("%s has %s: %q", page, name, found)
		}
	}
	for _, path := range regexp.MustCompile(`<(?:link|script|img)[^>]* (?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(text, -1) {
		if w := get(openPage(t), path[1]); w.Code != 200 {
			t.Errorf("%s names %s, which is %d", page, path[1], w.Code)
		}
	}
}

func TestFilesAreCachedByWhatTheyAre(t *testing.T) {
	p := openPage(t)
	for path := range p.files {
		first := get(p, path, "Accept-Encoding: gzip")
		h := first.Header()
		if cached := strings.Contains(h.Get("Cache-Control"), "immutable"); cached == (path == "/" || path == "/docs") {
			t.Errorf("%s: Cache-Control %q", path, h.Get("Cache-Control"))
		}
		if h.Get("Content-Type") == "" || h.Get("Content-Security-Policy") != Policy {
			t.Errorf("%s: headers %v", path, h)
		}
		again := get(p, path, "Accept-Encoding: gzip", "If-None-Match: W/"+h.Get("ETag"))
		if again.Code != 304 || again.Body.Len() > 0 || again.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s with its ETag: status %d, %d bytes, headers %v", path, again.Code, again.Body.Len(), again.Header())
		}
		if other := get(p, path, `If-None-Match: "other"`); other.Code != 200 || other.Body.Len() == 0 {
			t.Errorf("%s with another ETag: status %d, %d bytes", path, other.Code, other.Body.Len())
		}
	}
}

func TestCompressedFormIsTheSame(t *testing.T) {
	p := openPage(t)
	for path, f := range p.files {
		for _, test := range []struct {
			accepts    string
			compressed bool
		}{{"gzip", true}, {"br, gzip;q=0.5", true}, {"gzip;q=0", false}, {"", false}, {"br", false}, {"xgzip", false}} {
			w := get(p, path, "Accept-Encoding: "+test.accepts)
			body := w.Body.Bytes()
			if compressed := w.Header().Get("Content-Encoding") == "gzip"; compressed != (test.compressed && f.gzipped != nil) {
				t.Errorf("%s for %q: compressed %v", path, test.accepts, compressed)
			} else if compressed {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(body, f.plain) {
				t.Errorf("%s for %q: other bytes than the file has", path, test.accepts)
			}
		}
	}
}

func TestUnknownFileIsNotFound(t *testing.T) {
	p := openPage(t)
	for _, path := range []string{"/assets/", "/assets/none.js", "/index.html", "/docs.html", "/docs/", "/assets/../index.html", "/dist"} {
		if w := get(p, path); w.Code != 404 || p.Has(path) {
			t.Errorf("%s: status %d, Has %v", path, w.Code, p.Has(path))
		}
	}
}
