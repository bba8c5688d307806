package manifest

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reference is docs/manifest.toml.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/manifest.toml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// examples are the commented examples of the reference, without their marks: runs
// of commented lines that start with a table.
func examples(text string) []string {
	table := regexp.MustCompile(`^# \[[^ ]*\]$`)
	key := regexp.MustCompile(`^# [A-Za-z_]+ = .*$`)
	var found []string
	open := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case table.MatchString(line) && !open:
			found = append(found, "")
			open = true
		case !table.MatchString(line) && !key.MatchString(line):
			open = false
		}
		if open {
			found[len(found)-1] += strings.TrimPrefix(line, "# ") + "\n"
		}
	}
	return found
}

func TestReferenceHoldsTheDefaults(t *testing.T) {
	text := reference(t)
	folder(t, map[string]string{"manifest.toml": text})
	got, err := Load("manifest.toml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, unplaced()); diff != "" {
		t.Errorf("the reference differs from the defaults: %s", diff)
	}
	tree := parsed(t, text)
	for path, value := range leaves(reflect.ValueOf(Default()).Elem(), "") {
		if !value.IsZero() && tree.at(path) == nil {
			t.Errorf("the reference does not set %s, which has the default %v", path, value)
		}
	}
}

func TestReferenceExamplesLoad(t *testing.T) {
	text := reference(t)
	found := examples(text)
	if len(found) < 8 {
		t.Fatalf("the reference has %d examples", len(found))
	}
	for _, example := range found {
		dir := folder(t, map[string]string{
			"manifest.toml": text, "instructions.md": "Be kind.", "docs.toml": "[memory]\nenabled = true\n",
		})
		example = strings.ReplaceAll(example, "/srv/docs", dir)
		if err := os.WriteFile("example.toml", []byte(example), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, files := range [][]string{{"example.toml"}, {"manifest.toml", "example.toml"}} {
			m, err := Load(files...)
			if err != nil {
				t.Errorf("Load(%q) with the example\n%s\n%v", files, example, err)
				continue
			}
			if bare, _ := Load(); cmp.Equal(bare, m, unplaced()) {
				t.Errorf("this example changes nothing:\n%s", example)
			}
		}
	}
}

// TestReferenceHasEveryKey compares the keys of the reference, examples included,
// with the fields of the manifest.
func TestReferenceHasEveryKey(t *testing.T) {
	written := map[string]bool{}
	for _, text := range append(examples(reference(t)), reference(t)) {
		collect(parsed(t, text), "", written)
	}
	known := map[string]bool{}
	for path := range leaves(reflect.ValueOf(Default()).Elem(), "") {
		known[path] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(written))); diff != "" {
		t.Errorf("keys of the manifest (-) and of the reference (+): %s", diff)
	}
}

func parsed(t *testing.T, text string) *node {
	t.Helper()
	l := loader{}
	tree := l.parse(l.origin("manifest.toml", "."), text)
	if tree == nil {
		t.Fatal(l.problems.err())
	}
	return tree
}

// leaves are the fields of a section by their dotted keys, with * for the names in
// a map, and one key for each model of memory.
func leaves(section reflect.Value, path string) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	for name, field := range fields(section, false) {
		path, value := join(path, name), field.value
		if value.Kind() == reflect.Map {
			path += ".*"
			value = reflect.New(value.Type().Elem()).Elem()
		}
		if value.Kind() == reflect.Struct && (path == "model" || !isModel(path)) {
			maps.Copy(found, leaves(value, path))
			continue
		}
		found[path] = value
	}
	return found
}

// collect notes the dotted keys of a tree in the form of leaves.
func collect(n *node, path string, keys map[string]bool) {
	if n.kind != kindTable || isModel(path) && path != "model" {
		keys[path] = true
		return
	}
	names := map[string]bool{"projects": true, "tools": true, "server.keys": true, "worker.tool_output.per_tool": true}
	for key, child := range n.table {
		if names[path] {
			collect(child, path+".*", keys)
		} else {
			collect(child, join(path, key), keys)
		}
	}
}

// unplaced leaves out where a manifest is from.
func unplaced() cmp.Option {
	return cmp.FilterPath(func(path cmp.Path) bool {
		field, ok := path.Last().(cmp.StructField)
		return ok && field.Name() == "sources"
	}, cmp.Ignore())
}

func TestExamplesAreCutOut(t *testing.T) {
	text := "# prose = not\n\n# Prose about\n# [a]\n# b = 1\n# [c.d]\n# e = 2\n\n# f = 3\n[g]\n# [h]\nx = 1\n"
	want := []string{"[a]\nb = 1\n[c.d]\ne = 2\n", "[h]\n"}
	if diff := cmp.Diff(want, examples(text)); diff != "" {
		t.Errorf("examples: %s", diff)
	}
}
