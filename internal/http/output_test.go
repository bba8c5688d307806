package http

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"loadline/internal/session"
)

const outputPath = "/v1/sessions/" + string(testSession) + "/items/%d/output"

// keptItems are a message, a result that was not cut, one that was kept, one that was
// not, and one that was removed.
func keptItems(output string) []session.Item {
	items := []session.Item{{N: 1, SessionID: testSession, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "hello"}}}
	for _, kept := range []*session.KeptOutput{nil, {Bytes: int64(len(output))}, {Error: "quota"}, {Bytes: 1}} {
		items = append(items, session.Item{N: int64(len(items) + 1), SessionID: testSession, Kind: session.KindToolResult, ToolResult: &session.ToolResult{KeptOutput: kept}})
	}
	return items
}

func TestOutputIsSentWholeAndInRanges(t *testing.T) {
	output := strings.Repeat("0123456789", 10) + "日本"
	s := newTestServer(t, &fake{items: keptItems(output), output: output})
	const etag = `"3-106"`
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		want    string
		ranged  string // Content-Range
	}{
		{"whole", nil, 200, output, ""},
		{"range", []string{"Range: bytes=10-14"}, 206, "01234", "bytes 10-14/106"},
		{"open end", []string{"Range: bytes=100-"}, 206, "日本", "bytes 100-105/106"},
		{"last bytes", []string{"Range: bytes=-3"}, 206, "本", "bytes 103-105/106"},
		{"end beyond", []string{"Range: bytes=100-999"}, 206, "日本", "bytes 100-105/106"},
		{"unknown unit", []string{"Range: lines=1-2"}, 200, output, ""},
		{"malformed", []string{"Range: bytes=x"}, 416, "", "bytes */106"},
		{"beyond", []string{"Range: bytes=106-"}, 416, "", "bytes */106"},
		{"of the same", []string{"Range: bytes=0-3", "If-Range: " + etag}, 206, "0123", "bytes 0-3/106"},
		{"of another", []string{"Range: bytes=0-3", `If-Range: "3-107"`}, 200, output, ""},
		{"known", []string{"If-None-Match: " + etag}, 304, "", ""},
		{"not known", []string{`If-None-Match: "2-106"`}, 200, output, ""},
		{"asked for", []string{"If-Match: " + etag}, 200, output, ""},
		{"another is asked for", []string{`If-Match: "2-106"`}, 412, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(t, s, "GET", fmt.Sprintf(outputPath, 3), "", c.headers...)
			h := w.Header()
			if w.Code != c.status || h.Get("Content-Range") != c.ranged {
				t.Fatalf("answer %d, Content-Range %q, %q", w.Code, h.Get("Content-Range"), w.Body)
			}
			if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", h)
			}
			switch {
			case c.status == 416:
				wantProblem(t, w, codeRangeNotSatisfiable)
				return
			case c.status == 412:
				wantProblem(t, w, codePreconditionFailed)
				return
			}
			if w.Body.String() != c.want || h.Get("ETag") != etag {
				t.Errorf("%q with ETag %s", w.Body, h.Get("ETag"))
			}
			if c.status != 304 && (h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("Content-Disposition") != `attachment; filename="output-3.txt"` || h.Get("Content-Length") != fmt.Sprint(len(c.want))) {
				t.Errorf("headers %v", h)
			}
		})
	}
	w := ask(t, s, "GET", fmt.Sprintf(outputPath, 3), "", "Range: bytes=0-3,100-102")
	if w.Code != 206 || !strings.HasPrefix(w.Header().Get("Content-Type"), "multipart/byteranges") || !strings.Contains(w.Body.String(), "日") {
		t.Errorf("two ranges: %d %v %q", w.Code, w.Header(), w.Body)
	}
	w = ask(t, s, "HEAD", fmt.Sprintf(outputPath, 3), "")
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "106" || w.Header().Get("ETag") != etag {
		t.Errorf("HEAD: %d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestOutputThatIsNotThere(t *testing.T) {
	s := newTestServer(t, &fake{items: keptItems("text"), output: "text"})
	for n, part := range map[int]string{1: "no tool result", 2: "was not cut", 4: "kept_output of the result says why", 6: "nothing has this id"} {
		if p := wantProblem(t, ask(t, s, "GET", fmt.Sprintf(outputPath, n), ""), codeNotFound); !strings.Contains(p.Detail, part) {
			t.Errorf("item %d: %q, want %q", n, p.Detail, part)
		}
	}
	wantProblem(t, ask(t, s, "GET", fmt.Sprintf(outputPath, 5), ""), codeOutputGone)
	wantProblem(t, ask(t, s, "GET", "/v1/sessions/ses_1/items/3/output", ""), codeNotFound)
	if w := ask(t, s, "POST", fmt.Sprintf(outputPath, 3), "{}"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("POST: %d, Allow %s", w.Code, w.Header().Get("Allow"))
	}
}
