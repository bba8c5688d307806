package http

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"unicode/utf8"

	"loadline/internal/session"
)

// Bounds of a search.
const (
	defaultHits = 10
	maxHits     = 50
)

func (s *Server) listRecords(w http.ResponseWriter, r *http.Request) error {
	project, err := s.project(r)
	if err != nil {
		return err
	}
	after, limit, err := pageQuery(r, session.ParseRecordID)
	if err != nil {
		return err
	}
	values, err := query(r)
	if err != nil {
		return err
	}
	state, err := choice(values, "state", []session.RecordState{session.RecordOpen, session.RecordClosed})
	if err != nil {
		return err
	}
	kind, err := choice(values, "kind", session.RecordKinds())
	if err != nil {
		return err
	}
	p, err := readPage(after, limit, func(after session.RecordID, limit int) ([]session.Record, error) {
		return s.config.Memory.Records(r.Context(), project, state, kind, after, limit)
	}, func(last session.Record) session.RecordID { return last.ID })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

// choice reads a parameter that must be one of a few; "" when it is absent.
func choice[T ~string](values url.Values, name string, allowed []T) (T, error) {
	if !values.Has(name) {
		return "", nil
	}
	chosen := T(values.Get(name))
	if !slices.Contains(allowed, chosen) {
		return "", newProblem(codeInvalidParameter, fmt.Sprintf("%s is %.100q: it must be one of %v", name, chosen, allowed))
	}
	return chosen, nil
}

func (s *Server) searchMemory(w http.ResponseWriter, r *http.Request) error {
	project, err := s.project(r)
	if err != nil {
		return err
	}
	values, err := query(r)
	if err != nil {
		return err
	}
	limit, err := limitOf(values, defaultHits, maxHits)
	if err != nil {
		return err
	}
	q := values.Get("q")
	hits, err := s.config.Memory.SearchMemory(r.Context(), project, q, limit)
	if errors.Is(err, session.ErrQuery) {
		return newProblem(codeInvalidParameter, fmt.Sprintf("q has %d characters: %s", utf8.RuneCountInString(q), session.ErrQuery))
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page[session.Hit]{Data: append([]session.Hit{}, hits...)})
}
