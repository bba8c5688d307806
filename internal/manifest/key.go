package manifest

import (
	"reflect"
	"slices"
	"strings"
)

// field is a key of a section.
type field struct {
	value reflect.Value
	tag   reflect.StructTag
}

// fields lists the keys of a section by their exact names. A layer's section has
// no keys of the whole server.
func fields(section reflect.Value, layer bool) map[string]field {
	found := map[string]field{}
	for f, value := range section.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		switch {
		case name == "-" || !f.IsExported() || layer && f.Tag.Get("scope") == "server":
		case f.Anonymous:
			for name, inner := range fields(value, layer) {
				found[name] = inner
			}
		default:
			found[name] = field{value, f.Tag}
		}
	}
	return found
}

// unknown says that a section has no such key, and what may have been meant.
func (f *filler) unknown(section reflect.Value, key, path string) string {
	const message = "unknown key"
	if len(*f.problems) > 20*maxProblems { // this is no manifest: spare the search
		return message
	}
	if f.layer && path == "" {
		return message + ": a project's layer holds only [model], [worker], [tools], [memory] and [compaction]"
	}
	if _, ok := fields(section, false)[key]; ok {
		return message + " in a project's layer: it holds for the whole server, set it in the server's manifest"
	}
	if near := nearest(key, fields(section, f.layer)); near != "" {
		return message + ", did you mean " + join(path, near) + "?"
	}
	root := reflect.ValueOf(Default()).Elem()
	if f.layer {
		root = root.FieldByName("Settings")
	}
	if elsewhere := places(root, key, "", f.layer); len(elsewhere) > 0 {
		return message + ", did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	return message
}

// nearest is the known key that is spelt most like key: by at most three letters
// and less than half of them, or longer by whole words. Empty when none is.
func nearest(key string, known map[string]field) string {
	best, fewest := "", 4
	for name := range known {
		edits := distance(strings.ToLower(key), name)
		if strings.HasPrefix(name, key+"_") {
			edits = 1
		}
		if 2*edits < len(key) && (edits < fewest || edits == fewest && name < best) {
			best, fewest = name, edits
		}
	}
	return best
}

// distance counts the letters to insert, drop or change to make b of a. Keys that
// are too long to be a slip are as far as they are long.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// places lists the dotted keys below a section that end in key, whatever its case,
// sorted. The models of memory are left out: they have the keys of the main one.
func places(section reflect.Value, key, path string, layer bool) []string {
	var found []string
	for name, field := range fields(section, layer) {
		if strings.EqualFold(name, key) {
			found = append(found, join(path, name))
		}
		if field.value.Kind() == reflect.Struct && !isModel(join(path, name)) || join(path, name) == "model" {
			found = append(found, places(field.value, key, join(path, name), layer)...)
		}
	}
	slices.Sort(found)
	return found
}
