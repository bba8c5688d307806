package manifest

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func shown(t *testing.T) *Manifest {
	t.Helper()
	return load(t, map[string]string{
		"site.toml": `
server.allowed_hosts = ["chat.example"]
server.keys.alice = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
[model]
provider = "anthropic"
name = "m"
base_url = "https://low.example"
api_key_file = "key"
[worker]
instructions_file = "site.md"
tool_output.per_tool."My Tool" = 200
[memory.extract_model]
provider = "openai"
[projects.docs]
root = "."
permission = "write"
manifest = "layer.toml"
[projects.other]
root = "."
`,
		"layer.toml": "[worker]\ninstructions = 'of \"docs\"'\nmax_steps = 3\n[model]\nname = 'n'\n",
		"site.md":    "of the site",
	})
}

func TestShowLoadsAgain(t *testing.T) {
	m := shown(t)
	for _, project := range []string{"", "docs", "other"} {
		text, err := m.Show(project)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "e3b0") || !strings.Contains(string(text), maskedKey) {
			t.Errorf("Show(%q) does not mask the key:\n%s", project, text)
		}
		unmasked := strings.ReplaceAll(string(text), maskedKey, m.Server.Keys["alice"])
		if err := os.WriteFile("shown.toml", []byte(unmasked), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := Load("shown.toml")
		if err != nil {
			t.Fatalf("Show(%q) does not load: %v\n%s", project, err, text)
		}
		want := *m
		if project != "" {
			want.Settings = m.Projects[project].Settings
			want.Projects = map[string]Project{project: m.Projects[project]}
		} else {
			want.Projects = again.Projects // their layers find the models of memory set
		}
		if diff := cmp.Diff(&want, again, unplaced()); diff != "" {
			t.Errorf("Show(%q) loads as something else: %s", project, diff)
		}
		if project == "" && len(again.Projects) != len(m.Projects) {
			t.Errorf("Show() lists %d projects, want %d", len(again.Projects), len(m.Projects))
		}
	}
	if m.Server.Keys["alice"] == maskedKey {
		t.Error("Show() masks the key in the manifest itself")
	}
	if _, err := m.Show("nowhere"); err == nil {
		t.Error("Show() of an unknown project is accepted")
	}
}

func TestValueHasTheKeysOfTheFile(t *testing.T) {
	value, err := shown(t).Value("docs")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"tool_timeout":"2m"`, `"max_steps":3`, `"per_tool":{"My Tool":200}`, `"alice":"sha256:…"`,
		`"allowed_hosts":["chat.example"]`, `"instructions":"of \"docs\""`, `"tools":{"Bash":{"enabled":false}}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("Value() lacks %s: %s", want, text)
		}
	}
}
