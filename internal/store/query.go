package store

import (
	_ "embed"
	"strings"
)

//go:embed queries.sql
var logQueries string

//go:embed memory.sql
var memoryQueries string

//go:embed documents.sql
var documentQueries string

// queryText is all queries.
func queryText() string { return logQueries + "\n" + memoryQueries + "\n" + documentQueries }

// parseQueries splits a file of queries, each below a line "-- name: x", into the
// text of each by its name. Those that begin with WHERE go on from the last one that
// does not.
func parseQueries(text string) map[string]string {
	queries := make(map[string]string)
	head := ""
	for _, section := range strings.Split(text, "-- name: ")[1:] {
		name, query, _ := strings.Cut(section, "\n")
		query = strings.TrimSpace(query)
		if strings.HasPrefix(query, "WHERE") {
			query = head + "\n" + query
		} else {
			head = query
		}
		queries[name] = query
	}
	return queries
}
