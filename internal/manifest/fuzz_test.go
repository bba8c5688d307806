package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzLoad: no text makes Load panic; it refuses all that is not TOML, and names
// the file in each line of its error; what it takes shows as something that loads
// as the same.
func FuzzLoad(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		t.Chdir(t.TempDir())
		write := func(name, text string) {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("m.toml", text)
		m, err := Load("m.toml")
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "m.toml:") && !strings.HasPrefix(line, "and ") && !strings.Contains(line, ".toml") {
					t.Errorf("the error does not name its file: %s", line)
				}
			}
			return
		}
		if err := toml.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), new(map[string]any)); err != nil {
			t.Fatalf("loads, though it is no TOML: %v", err)
		}
		shown, err := m.Show("")
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Server.Keys) > 0 {
			return // masked
		}
		write("shown.toml", string(shown))
		again, err := Load("shown.toml")
		if err != nil {
			t.Fatalf("what it shows does not load: %v\n%s", err, shown)
		}
		if diff := cmp.Diff(m, again, unplaced()); diff != "" {
			t.Errorf("what it shows loads as something else: %s", diff)
		}
	})
}

func addSeeds(f *testing.F) {
	f.Helper()
	goldens, err := filepath.Glob("testdata/wrong/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, golden := range goldens {
		archive, err := txtar.ParseFile(golden)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data))
	}
	for _, seed := range []string{
		"", "\ufeff", "a.b = 1\na = 2", "a = 1\na.b = 2", "[[a]]\n[a.b]", "a = [{b = 1}]", "[a]\n[a]", "worker = {max_steps = 3}",
		"tools = {Read = {enabled = true}}", "server.keys = {}", "model.name.x = 1", "'' = 1", "worker.\"max_steps\" = 1_0",
		"projects.a.root = '.'\nprojects.a.manifest = 'm.toml'", "worker.instructions = '''\na\n'''", "x = [[[[1]]]]", "[worker]\n[worker.tool_output]\n[worker]",
	} {
		f.Add(seed)
	}
}
