package http

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"loadline/internal/session"
)

func (s *Server) createSession(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, s.config.Settings.BodyMaxBytes)
	if err != nil {
		return err
	}
	f, err := newForm(body)
	if err != nil {
		return err
	}
	project, title, metadata := f.text("project"), f.title(), f.metadata()
	if project != nil && *project == "" {
		f.refuse("project", "must not be empty: leave it out for the default one")
	}
	if err := f.done(); err != nil {
		return err
	}
	if metadata == nil {
		metadata = map[string]string{}
	}
	made, err := s.config.Sessions.Create(r.Context(), orEmpty(project), orEmpty(title), metadata)
	if err != nil {
		return err
	}
	w.Header().Set("Location", sessionPath(made.ID))
	return writeJSON(w, http.StatusCreated, made)
}

func (s *Server) updateSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r, s.config.Settings.BodyMaxBytes)
	if err != nil {
		return err
	}
	f, err := newForm(body)
	if err != nil {
		return err
	}
	title, metadata := f.title(), f.metadata()
	if err := f.done(); err != nil {
		return err
	}
	changed, err := s.config.Sessions.Update(r.Context(), id, title, metadata)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, changed)
}

func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	if err := s.config.Sessions.Delete(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	found, err := s.config.SessionLog.Session(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, found)
}

// maxSearchBytes bounds what can be looked for in titles.
const maxSearchBytes = 1000

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	before, limit, err := pageQuery(r, session.ParseID)
	if err != nil {
		return err
	}
	title := r.URL.Query().Get("title")
	if len(title) > maxSearchBytes {
		return newProblem(codeInvalidParameter, fmt.Sprintf("title has %d bytes: at most %d can be searched for", len(title), maxSearchBytes))
	}
	p, err := readPage(before, limit, func(before session.ID, limit int) ([]session.Session, error) {
		return s.config.SessionLog.Sessions(r.Context(), title, before, limit)
	}, func(last session.Session) session.ID { return last.ID })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

// sessionID reads the id from the path.
func sessionID(r *http.Request) (session.ID, error) {
	return session.ParseID(chi.URLParam(r, "session_id"))
}

// existing reads the id from the path and makes sure that the session exists, for
// reads that would find nothing in an unknown one.
func (s *Server) existing(r *http.Request) (session.ID, error) {
	id, err := sessionID(r)
	if err != nil {
		return "", err
	}
	_, err = s.config.SessionLog.Session(r.Context(), id)
	return id, err
}

func sessionPath(id session.ID) string { return "/v1/sessions/" + string(id) }

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
