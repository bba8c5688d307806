package store

import (
	_ "embed"
	"strings"
)

//go:embed queries.sql
var logQueries string

//go:embed memory.sql
var memoryQueries string

// queryText is all queries.
var queryText = logQueries + "\n" + memoryQueries

// parseQueries splits a file of queries, each below a line "-- name: x", into the
// text of each by its name.
func parseQueries(text string) map[string]string {
	queries := make(map[string]string)
	for _, section := range strings.Split(text, "-- name: ")[1:] {
		name, query, _ := strings.Cut(section, "\n")
		queries[name] = strings.TrimSpace(query)
	}
	for _, name := range []string{"turn_by_id", "turn_by_row", "turns", "open_turns"} {
		queries[name] = queries["turn"] + "\n" + queries[name]
	}
	for _, name := range []string{"dead_letter_by_id", "dead_letters"} {
		queries[name] = queries["dead_letter"] + "\n" + queries[name]
	}
	for _, name := range []string{"records"} {
		queries[name] = queries["record"] + "\n" + queries[name]
	}
	for _, name := range []string{"item", "items", "history", "events"} {
		queries[name] = queries["entry"] + "\n" + queries[name]
	}
	return queries
}
