// Package web is the page for people, and the contract as a page to read: the files
// that are built from the folder web, embedded, and served as they are.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed dist
var built embed.FS

const index = "index.html"

// contentType is that of a file by the end of its name. The system's own table is not
// asked: what a server sends does not depend on where it runs.
func contentType(name string) (string, error) {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8", nil
	case ".js":
		return "text/javascript; charset=utf-8", nil
	case ".css":
		return "text/css; charset=utf-8", nil
	}
	return "", fmt.Errorf("no content type is known for %s", name)
}

// Policy is the Content-Security-Policy of the page: everything comes from this
// server, and nothing inline runs.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one file, in both forms in which it is sent.
type file struct {
	plain       []byte
	gzipped     func() []byte // nil when it would not be smaller; made when it is first asked for
	contentType string
	etag        string // of the plain form, without quotes
	immutable   bool   // its name has a hash of its content
}

// Page serves the files of the page. It is safe for concurrent use.
type Page struct {
	files map[string]file // by path; "/" is the page itself, "/docs" the contract
}

// New reads the files. It fails when the page has not been built.
func New() (*Page, error) {
	p := &Page{files: map[string]file{}}
	dist, err := fs.Sub(built, "dist")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		kind, err := contentType(name)
		path, isPage := strings.CutSuffix("/"+strings.TrimSuffix(name, index), ".html")
		isPage = isPage || name == index
		p.files[path] = newFile(text, kind, !isPage)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	if !p.Has("/") {
		return nil, fmt.Errorf("the page has no %s: make web builds it", index)
	}
	return p, nil
}

func newFile(text []byte, contentType string, immutable bool) file {
	sum := sha256.Sum256(text)
	return file{
		plain: text, gzipped: sync.OnceValue(func() []byte { return compress(text) }),
		contentType: contentType, etag: hex.EncodeToString(sum[:8]), immutable: immutable,
	}
}

// compress returns nil when the compressed text would not be smaller.
func compress(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(text)                                  // a buffer takes all
	_ = w.Close()
	if b.Len() >= len(text) {
		return nil
	}
	return b.Bytes()
}

// Has reports whether there is a file at a path.
func (p *Page) Has(path string) bool {
	_, ok := p.files[path]
	return ok
}

// ServeHTTP sends the file at the request's path, compressed when the client takes
// that, or nothing but 304 when it has it. A path that Has denies is 404.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := p.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")
	body, etag := f.plain, `"`+f.etag+`"`
	if acceptsGzip(r) {
		if gzipped := f.gzipped(); gzipped != nil {
			body, etag = gzipped, `"`+f.etag+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", etag)
	h.Set("Cache-Control", "no-cache")
	if f.immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Security-Policy", Policy)
	if knows(r, etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// acceptsGzip reports whether gzip is named, and not refused with q=0.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, q, weighted := strings.Cut(strings.ReplaceAll(part, " ", ""), ";q=")
		if coding == "gzip" {
			weight, err := strconv.ParseFloat(q, 64)
			return !weighted || err == nil && weight > 0
		}
	}
	return false
}

// knows reports whether the client has the form with this tag.
func knows(r *http.Request, etag string) bool {
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == etag || known == "*" {
			return true
		}
	}
	return false
}
