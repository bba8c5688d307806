package http

import (
	"math"
	"net/http"

	"github.com/go-chi/chi/v5"

	"loadline/internal/session"
)

func (s *Server) listItems(w http.ResponseWriter, r *http.Request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	after, limit, err := pageQuery(r, number)
	if err != nil {
		return err
	}
	p, err := readPage(after, limit, func(after int64, limit int) ([]session.Item, error) {
		return s.config.History.Items(r.Context(), id, after, limit)
	}, func(last session.Item) int64 { return last.N })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

func (s *Server) getItem(w http.ResponseWriter, r *http.Request) error {
	item, err := s.item(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, item)
}

// item is the one that the path names.
func (s *Server) item(r *http.Request) (session.Item, error) {
	id, err := sessionID(r)
	if err != nil {
		return session.Item{}, err
	}
	n, err := number(chi.URLParam(r, "n"))
	if err != nil {
		return session.Item{}, err
	}
	return s.config.History.Item(r.Context(), id, n)
}

// getEvents follows the session, or lists its durable events.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) error {
	if prefers(r, "application/json", eventStream) {
		return s.listEvents(w, r)
	}
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	from, err := streamCursor(r)
	if err != nil {
		return err
	}
	events, err := s.config.Streams.Subscribe(r.Context(), id, from)
	if err != nil {
		return err
	}
	s.stream.follow(w, r, events, native{})
	return nil
}

// streamCursor reads where a stream begins: Last-Event-ID, which a browser sends when
// it reconnects, goes before ?after=, which it keeps in the address for ever.
func streamCursor(r *http.Request) (session.Cursor, error) {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		cursor, err := session.ParseCursor(id)
		if err == nil && cursor.Live {
			err = session.ErrCursor
		}
		return cursor, err
	}
	values, err := query(r)
	if err != nil {
		return session.Cursor{}, err
	}
	return session.ParseCursor(values.Get("after"))
}

func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Has("after") {
		return newProblem(codeInvalidParameter, "after belongs to the stream: a page takes cursor")
	}
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	after, limit, err := pageQuery(r, number)
	if err != nil {
		return err
	}
	p, err := readPage(after, limit, func(after int64, limit int) ([]session.Event, error) {
		return s.config.History.Events(r.Context(), id, after, math.MaxInt64, limit)
	}, func(last session.Event) int64 { return last.Seq })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}
