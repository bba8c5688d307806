package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// The first four are A28; without any manifest the limits are those of an empty one,
// which is a test of internal/manifest. Bad manifests, A29, are tests of cmd/server.
func TestA28LargestAllowedResult(t *testing.T) {
	for _, c := range []struct {
		name, manifest string
		glob, read     int // the largest result, in bytes
	}{
		{"empty", "", 16384, 16384},
		{"an empty section", "[worker]\n", 16384, 16384},
		{"an empty inner section", "[worker.tool_output]\n", 16384, 16384},
		{"per_tool alone", "[worker.tool_output.per_tool]\nRead = 32768\n", 16384, 32768},
		{"a default alone", "[worker.tool_output]\ndefault_max_bytes = 8192\n", 8192, 8192},
		{"both", "[worker.tool_output]\ndefault_max_bytes = 8192\nper_tool = {Read = 200}\n", 8192, 200},
		{"another case is another tool", "[worker.tool_output.per_tool]\nread = 200\nGLOB = 200\n", 16384, 16384},
		{"the smallest", "[worker.tool_output]\ndefault_max_bytes = 128\n", 128, 128},
		{"the budget of a step", "[worker.tool_output]\nstep_max_bytes = 16000\nper_tool = {Read = 32768}\n", 8000, 8000},
		{"the budget of a step, for less than its share", "[worker.tool_output]\nstep_max_bytes = 128\n", 128, 128},
		{"more than they print", "[worker.tool_output]\ndefault_max_bytes = 1000000\nstep_max_bytes = 9223372036854775807\n", 1_000_000, 1_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			glob, read := strings.Repeat("g", 20_000), strings.Repeat("r", 40_000)
			w := start(t, setup{
				manifest: c.manifest,
				tools:    []tool.Tool{prints("Glob", glob), prints("Read", read)},
				script:   []llmtest.Step{calls("Glob", "Read"), says("ok")},
			})
			id := w.newSession()
			if turn := w.say(id, "go"); turn.State != session.TurnCompleted {
				t.Errorf("the turn: %s %v", turn.State, turn.Error)
			}
			got := results(w.items(id))
			cutAsItShould(t, got[0], glob, c.glob)
			cutAsItShould(t, got[1], read, c.read)
			w.stillFine(id)
		})
	}
}

// Today's limits hold for new results; what is stored stays as it is.
func TestA28LimitsChangeForNewResultsOnly(t *testing.T) {
	text := strings.Repeat("x", 20_000)
	w := start(t, setup{tools: []tool.Tool{prints("Glob", text)}, script: []llmtest.Step{calls("Glob"), says("ok")}})
	id := w.newSession()
	w.say(id, "go")
	for i, limit := range []int{1000, 32_768, 128} {
		w.manifest = loadManifest(t, w.manifest.Store.Dir, fmt.Sprintf("[worker.tool_output]\ndefault_max_bytes = %d\n", limit))
		w.restart()
		w.model.Add(calls("Glob"), says("ok"))
		w.say(id, "again")
		got := results(w.items(id))
		cutAsItShould(t, got[0], text, 16384)
		cutAsItShould(t, got[i+1], text, limit)
	}
	w.stillFine(id)
}

// loadManifest loads the text of a manifest over one that names the data folder.
func loadManifest(t *testing.T, dataDir, text string) *manifest.Manifest {
	t.Helper()
	file := filepath.Join(t.TempDir(), "loadline.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Flags{Data: dataDir}.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
