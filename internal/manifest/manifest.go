// Package manifest reads the TOML files that configure a server: their sections,
// defaults, layers, strict loading and validation. docs/manifest.toml explains
// every key. A manifest never changes after loading, so any goroutine may read it.
package manifest

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
)

// Manifest is what holds in a server: the defaults, and over them the files in
// their order, key by key.
type Manifest struct {
	Server    Server    `toml:"server"`
	Store     Store     `toml:"store"`
	Artifacts Artifacts `toml:"artifacts"`
	// Settings hold where no project's layer says otherwise.
	Settings
	// Projects by name. After Load there is at least one.
	Projects map[string]Project `toml:"projects,omitempty" keys:"name"`

	sources []*node // the trees of the files, layers included, in reading order
}

// Flags are the settings of the command line. They beat every file, projects'
// layers too. Empty ones are not set.
type Flags struct {
	Listen string // like server.listen
	Data   string // like store.dir, relative to the current folder
	// Model is PROVIDER/NAME. Of the provider that the manifest names it only
	// changes the model; another one starts without base_url and keys.
	Model string
}

// Load reads the files in order over the defaults, each key by key over those
// before it, and the layers of projects over them all. Without [projects] there is
// one project, default: the current folder, read-only. Its error has one line for
// everything that is wrong in the files, with file, line and dotted key.
func Load(files ...string) (*Manifest, error) { return Flags{}.Load(files...) }

// Load is like the function Load, with the flags laid over the files.
func (f Flags) Load(files ...string) (*Manifest, error) {
	l := loader{flags: f, layers: map[string]*node{}}
	base := l.base(files)
	if base == nil {
		return nil, l.problems.err()
	}
	m := Default()
	l.quietly(m, base)
	m.Settings = l.settings(base)
	l.finishStore(m, base)
	l.checkListen(m, base)
	l.finishProjects(m, base)
	if err := l.problems.err(); err != nil {
		return nil, err
	}
	m.sources = l.sources
	return m, nil
}

// Files lists the manifests in force, layers included, and the files that hold API
// keys: what no tool may show. The paths are absolute and sorted.
func (m *Manifest) Files() []string {
	files := map[string]bool{}
	for _, source := range m.sources {
		if path, err := filepath.Abs(source.from.name); err == nil {
			files[path] = true
		}
	}
	all := []Settings{m.Settings}
	for _, project := range m.Projects {
		all = append(all, project.Settings)
	}
	for _, s := range all {
		for _, model := range []Model{s.Model, s.Memory.ExtractModel, s.Memory.ConsolidationModel, s.Compaction.Model} {
			if model.APIKeyFile != "" {
				files[model.APIKeyFile] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// Warning is a key that names a tool which the server does not have.
type Warning struct {
	Tool string
	Key  string // dotted
	File string
	Line int
}

// UnknownTools lists the keys that name none of the registered tools, enabled or
// not, exact case, in the order of files and lines. They have no effect and are no
// error: a tool may come and go with the server that provides it.
func (m *Manifest) UnknownTools(registered []string) []Warning {
	var warnings []Warning
	for _, source := range m.sources {
		first := len(warnings)
		for _, path := range []string{"worker.tool_output.per_tool", "tools"} {
			section := source.at(path)
			if section == nil {
				continue
			}
			for tool, n := range section.table {
				if !slices.Contains(registered, tool) {
					warnings = append(warnings, Warning{tool, join(path, tool), n.from.name, n.line})
				}
			}
		}
		slices.SortFunc(warnings[first:], func(a, b Warning) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
		})
	}
	return warnings
}
