package http

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"loadline/internal/session"
)

// transferTimeout is how long a document may take to come in, and each page of one
// to go out.
const transferTimeout = 5 * time.Minute

// Transfers carries whole sessions in and out.
type Transfers interface {
	// Export writes a session to w, which it may do in many pieces. It fails with
	// session.ErrNotFound before it has written anything.
	Export(ctx context.Context, id session.ID, w io.Writer) error
	// Import makes a session out of a document. An empty project means the obvious
	// one, an empty format that of the document, an empty title that which it has.
	Import(ctx context.Context, document []byte, project, format, title string) (session.Imported, error)
}

func (s *Server) exportSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	out := &exported{ResponseWriter: w, id: id, controller: http.NewResponseController(w)}
	err = s.config.Transfers.Export(r.Context(), id, out)
	if err != nil && out.begun {
		s.config.Log.Warn().Err(err).Str("session", string(id)).Msg("export broken off")
		panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
	}
	return err
}

// exported is an answer whose head is written with its first byte. Each write has
// its own time.
type exported struct {
	http.ResponseWriter
	id         session.ID
	controller *http.ResponseController
	begun      bool
}

func (e *exported) Write(b []byte) (int, error) {
	if !e.begun {
		e.begun = true
		e.Header().Set("Content-Type", "application/json")
		e.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.json"`, e.id))
	}
	_ = e.controller.SetWriteDeadline(time.Now().Add(transferTimeout)) // else the usual time holds
	return e.ResponseWriter.Write(b)
}

func (s *Server) importSession(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r)
	if err != nil {
		return err
	}
	title := session.Clean(values.Get("title"))
	if len(title) > maxTitleBytes {
		return newProblem(codeInvalidParameter, fmt.Sprintf("title has %d bytes, at most %d are allowed", len(title), maxTitleBytes))
	}
	controller, deadline := http.NewResponseController(w), time.Now().Add(transferTimeout)
	_ = controller.SetReadDeadline(deadline) // else the usual times hold
	_ = controller.SetWriteDeadline(deadline)
	document, err := readBounded(w, r, s.config.Settings.ImportMaxBytes, "server.import_max_bytes")
	if err != nil {
		return err
	}
	made, err := s.config.Transfers.Import(r.Context(), document, values.Get("project"), values.Get("format"), title)
	if err != nil {
		return err
	}
	if made.Repairs == nil {
		made.Repairs = []session.Repair{}
	}
	w.Header().Set("Location", sessionPath(made.Session.ID))
	return writeJSON(w, http.StatusCreated, made)
}
