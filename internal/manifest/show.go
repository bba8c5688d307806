package manifest

import (
	"fmt"
	"maps"

	"github.com/pelletier/go-toml/v2"
)

// maskedKey stands for the digest of a key.
const maskedKey = "sha256:…"

// Show is the effective manifest of a project as TOML, with the digests of keys
// masked. Loaded again it gives that project the same settings. With an empty name
// it is that of the server, before any layer, and lists all projects.
func (m *Manifest) Show(project string) ([]byte, error) {
	shown := *m
	shown.Server.Keys = maps.Clone(m.Server.Keys)
	for name := range shown.Server.Keys {
		shown.Server.Keys[name] = maskedKey
	}
	if project != "" {
		p, found := m.Projects[project]
		if !found {
			return nil, fmt.Errorf("there is no project %q", project)
		}
		shown.Settings = p.Settings
		shown.Projects = map[string]Project{project: p}
	}
	if shown.Worker.InstructionsFile != "" {
		shown.Worker.Instructions = "" // the file holds them
	}
	text, err := toml.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	return text, nil
}

// Value is what Show tells as a value for encoding/json, with the same key names.
func (m *Manifest) Value(project string) (map[string]any, error) {
	text, err := m.Show(project)
	if err != nil {
		return nil, err
	}
	var value map[string]any
	if err := toml.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("decode the manifest: %w", err)
	}
	return value, nil
}
