package http

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"loadline/internal/session"
)

func (s *Server) listDocuments(w http.ResponseWriter, r *http.Request) error {
	project, err := s.project(r)
	if err != nil {
		return err
	}
	all, err := s.config.Memory.Documents(r.Context(), project)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page[session.Document]{Data: append([]session.Document{}, all...)})
}

func (s *Server) getDocument(w http.ResponseWriter, r *http.Request) error {
	project, name, err := s.document(r)
	if err != nil {
		return err
	}
	values, err := query(r)
	if err != nil {
		return err
	}
	version := int64(0)
	if text := values.Get("version"); values.Has("version") {
		if version, err = number(text); err != nil || version == 0 {
			return newProblem(codeInvalidParameter, fmt.Sprintf("version is %.100q: it must be an integer from 1 on", text))
		}
	}
	found, err := s.config.Memory.Document(r.Context(), project, name, version)
	if err != nil {
		return missingVersion(err, project, name, version)
	}
	return writeJSON(w, http.StatusOK, found)
}

func (s *Server) listDocumentVersions(w http.ResponseWriter, r *http.Request) error {
	project, name, err := s.document(r)
	if err != nil {
		return err
	}
	before, limit, err := pageQuery(r, versionCursor)
	if err != nil {
		return err
	}
	p, err := readPage(before, limit, func(before int64, limit int) ([]session.Document, error) {
		return s.config.Memory.DocumentVersions(r.Context(), project, name, before, limit)
	}, func(last session.Document) int64 { return last.Version })
	if err != nil {
		return missingVersion(err, project, name, 0)
	}
	return writeJSON(w, http.StatusOK, p)
}

// versionCursor is the version that a page ended with.
func versionCursor(text string) (int64, error) {
	n, err := number(text)
	if n == 0 && err == nil {
		err = session.ErrNotFound
	}
	return n, err
}

func (s *Server) restoreDocument(w http.ResponseWriter, r *http.Request) error {
	project, name, err := s.document(r)
	if err != nil {
		return err
	}
	version, err := s.readRestore(w, r)
	if err != nil {
		return err
	}
	restored, err := s.config.Memory.RestoreDocument(r.Context(), project, name, version)
	if err != nil {
		return missingVersion(err, project, name, version)
	}
	w.Header().Set("Location", fmt.Sprintf("/v1/projects/%s/documents/%s?version=%d", project, name, restored.Version))
	return writeJSON(w, http.StatusCreated, restored)
}

func (s *Server) readRestore(w http.ResponseWriter, r *http.Request) (int64, error) {
	body, err := readBody(w, r, s.config.Settings.BodyMaxBytes)
	if err != nil {
		return 0, err
	}
	f, err := newForm(body)
	if err != nil {
		return 0, err
	}
	const want = "an integer from 1 on"
	version := int64(0)
	if _, given := f.fields["version"]; !given {
		f.refuse("version", "is missing: it must be %s", want)
	} else if f.take("version", &version, want) && version < 1 {
		f.refuse("version", "must be %s", want)
	}
	return version, f.done()
}

func (s *Server) deleteDocument(w http.ResponseWriter, r *http.Request) error {
	project, name, err := s.document(r)
	if err != nil {
		return err
	}
	if err := s.config.Memory.DeleteDocument(r.Context(), project, name); err != nil {
		return missingVersion(err, project, name, 0)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// document reads a project and the name of a document from the path.
func (s *Server) document(r *http.Request) (string, session.DocumentName, error) {
	project, err := s.project(r)
	if err != nil {
		return "", "", err
	}
	text := chi.URLParam(r, "name")
	name, err := session.ParseDocumentName(text)
	return project, name, missing(err, "no document is named %.100q: the names are %v", text, session.DocumentNames())
}

// missingVersion says which version of a document is not there; 0 is the newest, and
// means that there is none at all.
func missingVersion(err error, project string, name session.DocumentName, version int64) error {
	which := "document " + string(name)
	if version != 0 {
		which = "version " + strconv.FormatInt(version, 10) + " of " + which
	}
	return missing(err, "project %s has no %s", project, which)
}
