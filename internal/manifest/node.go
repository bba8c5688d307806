package manifest

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// origin is a file, or a flag, that sets keys.
type origin struct {
	order int    // in which it was read
	name  string // as a person named it
	dir   string // what its relative paths are relative to
}

// kind is the type of a TOML value, as errors name it.
type kind string

const (
	kindTable   kind = "a table"
	kindArray   kind = "an array"
	kindString  kind = "a string"
	kindInteger kind = "an integer"
	kindHuge    kind = "an integer beyond 64 bits"
	kindBoolean kind = "a boolean"
	kindFloat   kind = "a float"
	kindTime    kind = "a date or time"
)

// node is a value of a manifest, with its place. Nodes never change once their
// file has been read: layers share them.
type node struct {
	from  *origin
	line  int // of its key; 0 for a flag
	kind  kind
	text  string           // kindString
	whole int64            // kindInteger
	yes   bool             // kindBoolean
	list  []*node          // kindArray
	table map[string]*node // kindTable
}

// at is the node below n that the dotted path leads to; nil when nothing is there.
func (n *node) at(path string) *node {
	for key := range strings.SplitSeq(path, ".") {
		if n == nil {
			return nil
		}
		n = n.table[key]
	}
	return n
}

// place is a flag or file:line.
func (n *node) place() string {
	if n.line == 0 {
		return n.from.name
	}
	return n.from.name + ":" + strconv.Itoa(n.line)
}

// reader turns the syntax of one file into nodes.
type reader struct {
	from   *origin
	parser unstable.Parser
	text   []byte
	offset int // the keys before it have been met
	line   int // the line at offset
	huge   bool
}

// read is the tree of a file that parses; it keeps the first of keys that are
// defined twice. What does not parse ends it.
func (r *reader) read() (*node, error) {
	root := r.newTable()
	current := root
	r.parser.Reset(r.text)
	for r.parser.NextExpression() {
		switch expr := r.parser.Expression(); expr.Kind {
		case unstable.Table:
			current, _ = r.descend(root, expr.Key())
		case unstable.ArrayTable:
			current, _ = r.descend(root, expr.Key())
			current.kind = kindArray
		case unstable.KeyValue:
			r.add(current, expr)
		}
	}
	return root, r.parser.Error()
}

func (r *reader) newTable() *node {
	return &node{from: r.from, line: r.line, kind: kindTable, table: map[string]*node{}}
}

// add puts a key and its value into a table.
func (r *reader) add(table *node, expr *unstable.Node) {
	leaf, isNew := r.descend(table, expr.Key())
	if isNew {
		r.setValue(leaf, expr.Value())
	}
}

// descend finds the node of a key below table, and makes what is missing on the way.
func (r *reader) descend(table *node, key unstable.Iterator) (last *node, isNew bool) {
	for key.Next() {
		part := key.Node()
		r.count(int(part.Raw.Offset))
		next, found := table.table[string(part.Data)]
		if !found {
			next = r.newTable()
			if table.table == nil { // a value, that was used as a table too
				table.table = map[string]*node{}
			}
			table.table[string(part.Data)] = next
		}
		table, isNew = next, !found
	}
	return table, isNew
}

// count moves on to the line of a key: keys are met in the order of the file.
func (r *reader) count(offset int) {
	if offset > r.offset {
		r.line += bytes.Count(r.text[r.offset:offset], []byte("\n"))
		r.offset = offset
	}
}

func (r *reader) setValue(n *node, value *unstable.Node) {
	n.kind, n.table = kindTime, nil
	switch value.Kind {
	case unstable.String:
		n.kind, n.text = kindString, string(value.Data)
	case unstable.Bool:
		n.kind, n.yes = kindBoolean, string(value.Data) == "true"
	case unstable.Integer:
		n.kind = kindInteger
		var err error
		if n.whole, err = strconv.ParseInt(string(value.Data), 0, 64); err != nil {
			n.kind, r.huge = kindHuge, true
		}
	case unstable.Float:
		n.kind = kindFloat
	case unstable.Array:
		n.kind = kindArray
		for it := value.Children(); it.Next(); {
			element := &node{from: r.from, line: n.line}
			r.setValue(element, it.Node())
			n.list = append(n.list, element)
		}
	case unstable.InlineTable:
		n.kind, n.table = kindTable, map[string]*node{}
		for it := value.Children(); it.Next(); {
			r.add(n, it.Node())
		}
	}
}

// merge lays one tree over another, key by key, and changes neither. The path is
// that of both.
func merge(low, high *node, path string) *node {
	if low == nil || low.kind != kindTable || high == nil || high.kind != kindTable {
		if high == nil {
			return low
		}
		return high
	}
	both := *high
	both.table = maps.Clone(low.table)
	for _, key := range replaced(path, high) {
		delete(both.table, key)
	}
	for key, value := range high.table {
		both.table[key] = merge(both.table[key], value, join(path, key))
	}
	return &both
}

// replaced lists the keys of a table that a higher layer does not inherit, because
// of what it sets: a key for one service must never go to another, and what one
// model takes says nothing of another.
func replaced(path string, high *node) []string {
	sets := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return high.table[key] != nil })
	}
	if path == "worker" && sets("instructions", "instructions_file") {
		return []string{"instructions", "instructions_file"}
	}
	if !isModel(path) {
		return nil
	}
	var keys []string
	switch {
	case sets("provider", "base_url"):
		keys = []string{"provider", "base_url", "api_key_env", "api_key_file", "api_version", "auth", "input_tokens_per_minute"}
	case sets("api_key_env", "api_key_file"):
		keys = []string{"api_key_env", "api_key_file", "input_tokens_per_minute"}
	}
	if sets("provider", "base_url", "name") {
		keys = append(keys, "context_window", "max_output_tokens")
	}
	return keys
}

func isModel(path string) bool { return path == "model" || slices.Contains(furtherModels(), path) }

// furtherModels are the sections of models that start from the main one.
func furtherModels() []string {
	return []string{"compaction.model", "memory.extract_model", "memory.consolidation_model"}
}

// join makes a dotted key; a part that TOML would quote is quoted.
func join(path, key string) string {
	bare := key != ""
	for _, r := range key {
		bare = bare && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	if !bare {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
