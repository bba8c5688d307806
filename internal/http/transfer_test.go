package http

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"loadline/internal/session"
)

// transferring is what carries sessions in and out in a test.
type transferring struct {
	err     error
	breaks  bool // after the first bytes
	asked   []string
	repairs []session.Repair
}

func (f *transferring) Export(_ context.Context, id session.ID, w io.Writer) error {
	if f.err != nil && !f.breaks {
		return f.err
	}
	s, err := json.Marshal(session.Session{ID: id, Metadata: map[string]string{}, State: session.StateIdle, CreatedAt: 1, UpdatedAt: 1})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, `{"format":"loadline","version":1,"session":`+string(s)+`,"items":[`)
	if f.breaks {
		return f.err
	}
	return errors.Join(err, func() error { _, err := io.WriteString(w, "]}"); return err }())
}

func (f *transferring) Import(_ context.Context, document []byte, project, format, title string) (session.Imported, error) {
	f.asked = []string{string(document), project, format, title}
	s := session.Session{ID: testSession, Project: project, Title: title, Metadata: map[string]string{}, State: session.StateIdle, CreatedAt: 1, UpdatedAt: 1}
	return session.Imported{Session: s, Format: "openai", Items: 1, Repairs: f.repairs, RepairsTotal: len(f.repairs)}, f.err
}

func newTransferServer(t *testing.T, f *transferring) *Server {
	return newTestServer(t, &fake{}, func(c *Config) { c.Transfers, c.Settings.ImportMaxBytes = f, 2<<20 })
}

func TestImportAnswers(t *testing.T) {
	f := &transferring{repairs: []session.Repair{{Index: 3, Code: session.RepairBlankText, Detail: "x"}}}
	s := newTransferServer(t, f)
	long := `[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}]` // beyond body_max_bytes
	w := ask(t, s, "POST", "/v1/sessions/import?project=p&format=openai&title=A%20b", long)
	if w.Code != 201 || w.Header().Get("Location") != sessionPath(testSession) || !strings.Contains(w.Body.String(), `"index":3,"code":"blank_text"`) {
		t.Errorf("import answers %d %.300s", w.Code, w.Body)
	}
	if got := strings.Join(f.asked[1:], "|"); got != "p|openai|A b" || f.asked[0] != long {
		t.Errorf("import was asked with %q and %d bytes", got, len(f.asked[0]))
	}
	f.repairs = nil
	if w := ask(t, s, "POST", "/v1/sessions/import", `[]`); !strings.Contains(w.Body.String(), `"repairs":[]`) {
		t.Errorf("import without repairs answers %s", w.Body)
	}
}

func TestImportRefuses(t *testing.T) {
	for _, test := range []struct {
		name, target, body string
		err                error
		status             int
		code               string
	}{
		{"too large", "", strings.Repeat("x", 2<<20+1), nil, 413, "body_too_large"},
		{"long title", "?title=" + strings.Repeat("x", maxTitleBytes+1), "[]", nil, 400, "invalid_parameter"},
		{"unreadable", "", "x", &session.NotImportable{Detail: "it is no JSON"}, 422, "not_importable"},
		{"unknown project", "?project=x", "[]", session.ErrUnknownProject, 422, "unknown_project"},
		{"no project", "", "[]", session.ErrProjectRequired, 400, "project_required"},
		{"stopping", "", "[]", session.ErrStopping, 503, "stopping"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := ask(t, newTransferServer(t, &transferring{err: test.err}), "POST", "/v1/sessions/import"+test.target, test.body)
			if w.Code != test.status || !strings.Contains(w.Body.String(), `"code":"`+test.code+`"`) {
				t.Errorf("answer %d %s, want %d %s", w.Code, w.Body, test.status, test.code)
			}
		})
	}
}

func TestExportAnswers(t *testing.T) {
	target := sessionPath(testSession) + "/export"
	w := ask(t, newTransferServer(t, &transferring{}), "GET", target, "")
	if w.Code != 200 || w.Header().Get("Content-Disposition") != `attachment; filename="`+string(testSession)+`.json"` {
		t.Errorf("export answers %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := ask(t, newTransferServer(t, &transferring{err: session.ErrNotFound}), "GET", target, ""); w.Code != 404 {
		t.Errorf("export of nothing answers %d", w.Code)
	}
}

// TestExportBreaksOff: a client must not take a part for the whole.
func TestExportBreaksOff(t *testing.T) {
	defer func() {
		if reason := recover(); reason != http.ErrAbortHandler {
			t.Errorf("panic = %v, want http.ErrAbortHandler", reason)
		}
	}()
	askUnchecked(newTransferServer(t, &transferring{err: session.ErrStorage, breaks: true}), "GET", sessionPath(testSession)+"/export", "")
}
