package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"loadline/internal/session"
)

// Memory is what is stored of the memory of projects.
type Memory interface {
	documents
	documentChanges
	records
	passes
}

// documents reads versions of documents. In lists they have no text.
type documents interface {
	Documents(ctx context.Context, project string) ([]session.Document, error)
	// Document is one version; 0 is the newest.
	Document(ctx context.Context, project string, name session.DocumentName, version int64) (session.Document, error)
	// DocumentVersions lists those before a version, the newest first; 0 is all.
	DocumentVersions(ctx context.Context, project string, name session.DocumentName, before int64, limit int) ([]session.Document, error)
}

type documentChanges interface {
	// RestoreDocument returns the new version.
	RestoreDocument(ctx context.Context, project string, name session.DocumentName, version int64) (session.Document, error)
	DeleteDocument(ctx context.Context, project string, name session.DocumentName) error
}

type records interface {
	// Records lists those after a record, the oldest first. An empty state or kind is any.
	Records(ctx context.Context, project string, state session.RecordState, kind session.RecordKind, after session.RecordID, limit int) ([]session.Record, error)
	// SearchMemory fails with session.ErrQuery when the query has no or too many characters.
	SearchMemory(ctx context.Context, project, query string, limit int) ([]session.Hit, error)
}

// passes lists what comes after an entry, the oldest first.
type passes interface {
	Passes(ctx context.Context, id session.ID, after session.PassID, limit int) ([]session.Pass, error)
	DeadLetter(ctx context.Context, id session.DeadLetterID) (session.DeadLetter, error)
	DeadLetters(ctx context.Context, project string, after session.DeadLetterID, limit int) ([]session.DeadLetter, error)
}

// Extraction reads histories for memory on request. It never waits for the outcome.
type Extraction interface {
	Extract(ctx context.Context, id session.ID) (session.ExtractStart, error)
	Redrive(ctx context.Context, id session.DeadLetterID) (session.ExtractStart, error)
}

func (s *Server) memoryRoutes() []route {
	const (
		one       = "/v1/sessions/{session_id}"
		project   = "/v1/projects/{project}"
		documents = project + "/documents"
		document  = documents + "/{name}"
		letters   = project + "/dead-letters"
	)
	return []route{
		{"GET", one + "/passes", s.listPasses, false},
		{"POST", one + "/extract", s.extractNow, false},
		{"GET", documents, s.listDocuments, false},
		{"GET", document, s.getDocument, false},
		{"DELETE", document, s.deleteDocument, false},
		{"GET", document + "/versions", s.listDocumentVersions, false},
		{"POST", document + "/restore", s.restoreDocument, false},
		{"GET", project + "/memory/search", s.searchMemory, false},
		{"GET", project + "/records", s.listRecords, false},
		{"GET", letters, s.listDeadLetters, false},
		{"POST", letters + "/{dead_letter_id}/redrive", s.redriveDeadLetter, false},
	}
}

// project reads the name of a project from the path.
func (s *Server) project(r *http.Request) (string, error) {
	name, err := url.PathUnescape(chi.URLParam(r, "project"))
	if err != nil || !s.config.Projects.Has(name) {
		return "", newProblem(codeNotFound, fmt.Sprintf("the manifest has no project %.100q", name))
	}
	return name, nil
}

// missing says what is not there, when that is what the error means.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, session.ErrNotFound) {
		return newProblem(codeNotFound, fmt.Sprintf(format, args...))
	}
	return err
}

// extracted is the answer to the wish to extract.
type extracted struct {
	Start session.ExtractStart `json:"start"`
}

func (s *Server) extractNow(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	start, err := s.config.Extraction.Extract(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, extracted{start})
}

func (s *Server) listPasses(w http.ResponseWriter, r *http.Request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	after, limit, err := pageQuery(r, session.ParsePassID)
	if err != nil {
		return err
	}
	p, err := readPage(after, limit, func(after session.PassID, limit int) ([]session.Pass, error) {
		return s.config.Memory.Passes(r.Context(), id, after, limit)
	}, func(last session.Pass) session.PassID { return last.ID })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request) error {
	project, err := s.project(r)
	if err != nil {
		return err
	}
	after, limit, err := pageQuery(r, session.ParseDeadLetterID)
	if err != nil {
		return err
	}
	p, err := readPage(after, limit, func(after session.DeadLetterID, limit int) ([]session.DeadLetter, error) {
		return s.config.Memory.DeadLetters(r.Context(), project, after, limit)
	}, func(last session.DeadLetter) session.DeadLetterID { return last.ID })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

func (s *Server) redriveDeadLetter(w http.ResponseWriter, r *http.Request) error {
	project, err := s.project(r)
	if err != nil {
		return err
	}
	start, err := s.redrive(r.Context(), project, chi.URLParam(r, "dead_letter_id"))
	if err != nil {
		return missing(err, "project %s has no such dead letter: its id is malformed or unknown, or all of it has been read again", project)
	}
	return writeJSON(w, http.StatusAccepted, extracted{start})
}

func (s *Server) redrive(ctx context.Context, project, id string) (session.ExtractStart, error) {
	letterID, err := session.ParseDeadLetterID(id)
	if err != nil {
		return "", err
	}
	letter, err := s.config.Memory.DeadLetter(ctx, letterID)
	if err == nil && letter.Project != project {
		err = session.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return s.config.Extraction.Redrive(ctx, letterID)
}
