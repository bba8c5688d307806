package http

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"loadline/internal/session"
)

// Bounds of a page.
const (
	defaultPageLimit = 50
	maxPageLimit     = 200
)

// page is one part of a list. NextCursor is empty on the last one.
type page[T any] struct {
	Data       []T    `json:"data"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// readPage reads up to limit entries after a cursor, and looks whether more follow.
// A list may give fewer than it is asked for, so only an empty answer is its end.
func readPage[C, T any](after C, limit int, read func(after C, limit int) ([]T, error), last func(T) C) (page[T], error) {
	data, err := read(after, limit+1)
	if err != nil {
		return page[T]{}, err
	}
	if len(data) == 0 {
		return page[T]{Data: []T{}}, nil
	}
	if len(data) > limit {
		data = data[:limit]
		return page[T]{data, fmt.Sprint(last(data[limit-1]))}, nil
	}
	next := last(data[len(data)-1])
	more, err := read(next, 1)
	if err != nil {
		return page[T]{}, err
	}
	if len(more) == 0 {
		return page[T]{Data: data}, nil
	}
	return page[T]{data, fmt.Sprint(next)}, nil
}

// query parses the query parameters. Unknown ones are ignored.
func query(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, newProblem(codeInvalidParameter, "the query string is malformed: percent-encode its values")
	}
	return values, nil
}

// pageQuery reads limit and cursor; parse is given the cursor unless there is none.
func pageQuery[C any](r *http.Request, parse func(string) (C, error)) (after C, limit int, err error) {
	values, err := query(r)
	if err != nil {
		return after, 0, err
	}
	if limit, err = limitOf(values, defaultPageLimit, maxPageLimit); err != nil {
		return after, 0, err
	}
	cursor := values.Get("cursor")
	if cursor == "" {
		return after, limit, nil
	}
	if after, err = parse(cursor); err != nil {
		return after, 0, newProblem(codeInvalidCursor, fmt.Sprintf("cursor is %q: use the next_cursor of a page of this list", cursor))
	}
	return after, limit, nil
}

// limitOf reads limit, which is usual when it is absent.
func limitOf(values url.Values, usual, most int) (int, error) {
	text := values.Get("limit")
	if !values.Has("limit") {
		return usual, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > most {
		return 0, newProblem(codeInvalidParameter, fmt.Sprintf("limit is %q: it must be an integer from 1 to %d", text, most))
	}
	return limit, nil
}

// number parses a number as we write them: digits alone, none in vain.
func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		return 0, session.ErrNotFound
	}
	return n, nil
}
