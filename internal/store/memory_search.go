package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
)

const (
	maxHits   = 50   // of one search
	maxRanked = 1000 // matches of one query, the newest, among which the best are found
)

// Places in the index of memory.
func recordPlace(row int64) int64   { return 2 * row }
func documentPlace(row int64) int64 { return 2*row + 1 }

func indexMemory(c *connection, place int64, project, text string) error {
	_, err := c.exec("index", place, vocabularyOf(project).indexed(text))
	return err
}

// SearchMemory searches the newest versions of a project's documents, and its records
// that are open or applied, for a text; the best hits come first, at most limit and
// at most 50. What holds all of the words comes alone; without such there is what
// holds some of them, or letters within a word. White space separates words, as does
// punctuation; in scripts without spaces any part of a text is found. Width, case and
// accents do not matter. It returns ErrQuery for a search of no or too many
// characters. A project without memory has no hits.
func (s *Store) SearchMemory(ctx context.Context, project, query string, limit int) ([]session.Hit, error) {
	query = strings.TrimSpace(session.Clean(query))
	if query == "" || utf8.RuneCountInString(query) > session.MaxQueryRunes {
		return nil, session.ErrQuery
	}
	limit = min(max(limit, 1), maxHits)
	runs, words := runsOf(query), vocabularyOf(project)
	for _, match := range []string{words.all(runs), words.any(runs)} {
		if match == "" {
			continue
		}
		hits, err := s.matches(ctx, project, match, limit)
		if err != nil || len(hits) > 0 {
			return excerpted(hits, query, runs), err
		}
	}
	hits, err := s.holding(ctx, project, query, limit)
	return excerpted(hits, query, runs), err
}

// matches runs a query of the index.
func (s *Store) matches(ctx context.Context, project, match string, limit int) ([]session.Hit, error) {
	type place struct {
		at   int64
		rank float64 // lower is better
	}
	var places []place
	err := s.reader.each(ctx, "hits", []any{match, limit, maxRanked}, func(rows *sql.Rows) (bool, error) {
		var p place
		err := rows.Scan(&p.at, &p.rank)
		places = append(places, p)
		return true, err
	})
	if err != nil {
		return nil, s.failed("search memory of project "+project, err)
	}
	hits := []session.Hit{}
	for _, p := range places {
		hit, err := s.hit(ctx, p.at)
		if errors.Is(err, session.ErrNotFound) || err == nil && !of(project, &hit) {
			continue // deleted since it was found, or of a project with the same vocabulary
		}
		if err != nil {
			return nil, s.failed("search memory of project "+project, err)
		}
		hit.Score = -p.rank
		hits = append(hits, hit)
	}
	return hits, nil
}

// of reports whether a hit belongs to a project.
func of(project string, h *session.Hit) bool {
	if h.Record != nil {
		return h.Record.Project == project
	}
	return h.Document.Project == project
}

// hit reads what a place in the index stands for.
func (s *Store) hit(ctx context.Context, place int64) (hit session.Hit, err error) {
	if place%2 == 0 {
		hit.Record = new(session.Record)
		err = s.reader.one(ctx, "record_hit", []any{place / 2}, func(rows *sql.Rows) (err error) {
			*hit.Record, err = scanRecord(rows)
			return err
		})
		return hit, err
	}
	hit.Document = new(session.Document)
	err = s.reader.one(ctx, "document_hit", []any{place / 2}, func(rows *sql.Rows) (err error) {
		*hit.Document, err = scanDocument(rows)
		return err
	})
	return hit, err
}

// holding looks for a text as it is, in everything.
func (s *Store) holding(ctx context.Context, project, query string, limit int) ([]session.Hit, error) {
	pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(query) + "%"
	hits := []session.Hit{}
	err := s.reader.each(ctx, "documents_with", []any{project, pattern, limit}, func(rows *sql.Rows) (bool, error) {
		d, err := scanDocument(rows)
		hits = append(hits, session.Hit{Document: &d})
		return true, err
	})
	if err == nil && len(hits) < limit {
		err = s.reader.each(ctx, "records_with", []any{project, pattern, limit - len(hits)}, func(rows *sql.Rows) (bool, error) {
			r, err := scanRecord(rows)
			hits = append(hits, session.Hit{Record: &r})
			return true, err
		})
	}
	if err != nil {
		return nil, s.failed("search memory of project "+project, err)
	}
	return hits, nil
}
