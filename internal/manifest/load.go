package manifest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// loader is one loading of manifests.
type loader struct {
	flags    Flags
	problems problems
	orders   int
	sources  []*node
	layers   map[string]*node // by absolute path; nil for one that cannot be read
}

// base is the tree of all files and flags; nil when one of them is not even TOML.
func (l *loader) base(files []string) *node {
	base := &node{from: l.origin("defaults", "."), kind: kindTable, table: map[string]*node{}}
	whole := true
	for _, name := range files {
		from := l.origin(name, filepath.Dir(name))
		text, err := readText(name, maxFileBytes)
		if err != nil {
			l.problems.addFile(from, ": "+err.Error())
			whole = false
			continue
		}
		tree := l.parse(from, text)
		whole = whole && tree != nil
		l.check(tree, Default(), false)
		base = merge(base, tree, "")
	}
	if !whole {
		return nil
	}
	if l.flags.Listen != "" {
		base = l.override(base, "--listen", "server", map[string]string{"listen": l.flags.Listen})
	}
	if l.flags.Data != "" {
		base = l.override(base, "--data", "store", map[string]string{"dir": l.flags.Data})
	}
	return base
}

func (l *loader) origin(name, dir string) *origin {
	l.orders++
	return &origin{order: l.orders, name: name, dir: dir}
}

// parse is the tree of a file; nil when it is not TOML.
func (l *loader) parse(from *origin, text string) *node {
	r := reader{from: from, text: []byte(text), line: 1}
	tree, syntaxErr := r.read()
	err := toml.Unmarshal([]byte(text), new(map[string]any)) // knows double keys too
	if err == nil || syntaxErr == nil && r.huge {            // which fill tells about
		l.sources = append(l.sources, tree)
		return tree
	}
	place := ""
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := wrong.Position()
		place = fmt.Sprintf(":%d:%d", row, column)
	}
	l.problems.addFile(from, place+": not valid TOML: "+strings.TrimPrefix(err.Error(), "toml: "))
	return nil
}

// check notes everything that is wrong with the keys of one file by themselves.
func (l *loader) check(tree *node, scratch any, layer bool) {
	if tree == nil {
		return
	}
	f := filler{&l.problems, layer}
	f.fill(reflect.ValueOf(scratch).Elem(), tree, "", "")
	l.checkPair(tree.at("worker"), "worker", "instructions", "instructions_file")
	for _, path := range append([]string{"model"}, furtherModels()...) {
		l.checkPair(tree.at(path), path, "api_key_env", "api_key_file")
	}
}

// checkPair notes when a file sets two keys of which one replaces the other.
func (l *loader) checkPair(section *node, path, a, b string) {
	if section == nil || section.table[a] == nil || section.table[b] == nil {
		return
	}
	first, second := section.table[a], section.table[b]
	if first.text != "" && second.text != "" {
		l.problems.add(second, join(path, b), "is set beside "+join(path, a)+": keep one of them")
	}
}

// override lays a flag over the tree of the files.
func (l *loader) override(base *node, flag, section string, keys map[string]string) *node {
	from := &origin{name: flag, dir: "."} // before all files
	table := func() *node { return &node{from: from, kind: kindTable, table: map[string]*node{}} }
	high, inner := table(), table()
	high.table[section] = inner
	for key, text := range keys {
		inner.table[key] = &node{from: from, kind: kindString, text: text}
	}
	l.check(high, Default(), false)
	return merge(base, high, "")
}

// quietly fills into with a tree whose files have been checked.
func (l *loader) quietly(into any, tree *node) {
	f := filler{problems: new(problems)}
	f.fill(reflect.ValueOf(into).Elem(), tree, "", "")
}

// settings are the effective ones of a tree, which holds all layers.
func (l *loader) settings(tree *node) Settings {
	tree = l.withModel(tree)
	s := Default().Settings
	l.quietly(&s, tree)
	main := tree.at("model")
	s.Model = l.model(main, "model")
	s.Memory.ExtractModel = l.furtherModel(main, tree, "memory.extract_model")
	s.Memory.ConsolidationModel = l.furtherModel(main, tree, "memory.consolidation_model")
	s.Compaction.Model = l.furtherModel(main, tree, "compaction.model")
	if s.Worker.InstructionsFile != "" {
		text, err := readText(s.Worker.InstructionsFile, maxFileBytes)
		if err != nil {
			l.problems.add(tree.at("worker.instructions_file"), "worker.instructions_file", s.Worker.InstructionsFile+" "+err.Error())
		}
		s.Worker.Instructions = text
	}
	return s
}

// withModel lays the flag for the model over a tree.
func (l *loader) withModel(tree *node) *node {
	if l.flags.Model == "" {
		return tree
	}
	provider, name, _ := strings.Cut(l.flags.Model, "/")
	keys := map[string]string{"provider": provider}
	if name != "" {
		keys["name"] = name
	}
	if old := tree.at("model.provider"); old != nil && old.text == provider {
		delete(keys, "provider")
	}
	return l.override(tree, "--model", "model", keys)
}

// furtherModel is the main model, changed by the section at path.
func (l *loader) furtherModel(main, tree *node, path string) Model {
	own := tree.at(path)
	if own == nil {
		return l.model(main, "model")
	}
	return l.model(merge(main, own, path), path)
}

// model is the effective model of a section in which all layers are merged.
func (l *loader) model(section *node, path string) Model {
	m := Default().Model
	if section == nil {
		return m
	}
	var wrong problems
	f := filler{problems: &wrong}
	f.fill(reflect.ValueOf(&m).Elem(), section, "", path)
	if len(wrong) > 0 { // known already, from the file itself
		return m
	}
	if key, err := m.check(); err != nil {
		place := section
		for _, key := range []string{"provider", key} {
			if n := section.table[key]; n != nil {
				place = n
			}
		}
		l.problems.add(place, join(path, key), err.Error())
	}
	if m.BaseURL == "" && m.APIKeyEnv == "" && m.APIKeyFile == "" {
		m.APIKeyEnv = defaultKeyEnv(m.Provider)
	}
	return m
}

// finishStore makes the data folder absolute.
func (l *loader) finishStore(m *Manifest, base *node) {
	dir, err := absolute(".", m.Store.Dir)
	if err != nil {
		l.problems.add(base, "store.dir", err.Error())
		return
	}
	m.Store.Dir = dir
}

// checkListen refuses to be open to others without keys.
func (l *loader) checkListen(m *Manifest, base *node) {
	keys := base.at("server.keys")
	if n := base.at("server.listen"); n != nil && (keys == nil || len(keys.table) == 0) && !loopback(m.Server.Listen) {
		l.problems.add(n, "server.listen", m.Server.Listen+" is open to other machines, and there are no keys: "+
			"add one to [server.keys], made by `server key new`, or listen on 127.0.0.1")
	}
}

// finishProjects checks the projects and gives each its settings.
func (l *loader) finishProjects(m *Manifest, base *node) {
	for _, name := range slices.Sorted(maps.Keys(m.Projects)) { // so that errors keep their order
		p := m.Projects[name]
		n, path := base.at("projects").table[name], join("projects", name)
		l.checkRoot(p, n, path)
		tree := base
		if p.Manifest != "" {
			tree = merge(base, l.layer(p.Manifest, n.table["manifest"], join(path, "manifest")), "")
		}
		p.Settings = l.settings(tree)
		m.Projects[name] = p
	}
	if len(m.Projects) > 0 {
		return
	}
	root, err := os.Getwd()
	if err != nil {
		l.problems.addFile(base.from, ": there is no [projects], and the current folder is not known: "+err.Error())
	}
	m.Projects = map[string]Project{defaultProject: {Root: root, Permission: PermissionRead, Settings: m.Settings}}
}

// checkRoot notes when the root of a project is not there. A root that is wrong by
// itself has been noted before.
func (l *loader) checkRoot(p Project, section *node, path string) {
	switch root := section.table["root"]; {
	case section.kind != kindTable:
	case root == nil:
		l.problems.add(section, join(path, "root"), "is missing: name the folder of the project")
	case p.Root != "":
		info, err := os.Stat(p.Root)
		if err != nil {
			l.problems.add(root, join(path, "root"), p.Root+" "+cannotRead(err).Error())
		} else if !info.IsDir() {
			l.problems.add(root, join(path, "root"), p.Root+" is not a folder")
		}
	}
}

// layer is the tree of a project's layer, read once; n is the key that names it.
func (l *loader) layer(path string, n *node, key string) *node {
	tree, known := l.layers[path]
	if known {
		return tree
	}
	name := n.text
	if !filepath.IsAbs(name) {
		name = filepath.Join(n.from.dir, name)
	}
	if text, err := readText(path, maxFileBytes); err != nil {
		l.problems.add(n, key, name+" "+err.Error())
	} else {
		settings := Default().Settings
		tree = l.parse(l.origin(name, filepath.Dir(name)), text)
		l.check(tree, &settings, true)
	}
	l.layers[path] = tree
	return tree
}
