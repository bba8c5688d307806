package manifest

import (
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// load loads site.toml, and over.toml when there is one, from a new current folder.
func load(t *testing.T, files map[string]string) *Manifest {
	t.Helper()
	folder(t, files)
	names := []string{"site.toml"}
	if _, ok := files["over.toml"]; ok {
		names = append(names, "over.toml")
	}
	m, err := Load(names...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLimitsWithoutAndWithAManifest(t *testing.T) {
	tests := []struct {
		name, text string
		glob, read int
	}{
		{"empty", "", 16384, 16384},
		{"byte order mark alone", "\ufeff", 16384, 16384},
		{"comment alone", "# nothing", 16384, 16384},
		{"worker alone", "[worker]", 16384, 16384},
		{"empty section", "[worker.tool_output]", 16384, 16384},
		{"empty per_tool", "[worker.tool_output.per_tool]", 16384, 16384},
		{"per_tool alone", "[worker.tool_output.per_tool]\nRead = 32768", 16384, 32768},
		{"byte order mark", "\ufeff[worker.tool_output.per_tool]\nRead = 32768", 16384, 32768},
		{"Windows line ends", "[worker.tool_output]\r\ndefault_max_bytes = 8192\r\n", 8192, 8192},
		{"default alone", "[worker.tool_output]\ndefault_max_bytes = 8192", 8192, 8192},
		{"smallest", "[worker.tool_output]\ndefault_max_bytes = 128", 128, 128},
		{"largest", "[worker.tool_output]\ndefault_max_bytes = 9223372036854775807", 131072, 131072},
		{"hexadecimal", "worker.tool_output = {per_tool = {Read = 0x1_00}}", 16384, 256},
		{"exact case", "[worker.tool_output.per_tool]\nread = 200", 16384, 16384},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := load(t, map[string]string{"site.toml": test.text})
			for _, limits := range []ToolOutput{m.Worker.ToolOutput, m.Projects["default"].Worker.ToolOutput} {
				if glob, read := limits.Limit("Glob"), limits.Limit("Read"); glob != test.glob || read != test.read {
					t.Errorf("limits of Glob, Read = %d, %d, want %d, %d", glob, read, test.glob, test.read)
				}
			}
		})
	}
}

func TestLoadWithoutFiles(t *testing.T) {
	dir := folder(t, nil)
	m, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Store.Dir = filepath.Join(dir, "loadline-data")
	want.Memory.ExtractModel, want.Memory.ConsolidationModel, want.Compaction.Model = want.Model, want.Model, want.Model
	want.Projects = map[string]Project{"default": {Root: dir, Permission: PermissionRead, Settings: want.Settings}}
	if diff := cmp.Diff(want, m, unplaced()); diff != "" {
		t.Errorf("Load() without files: %s", diff)
	}
	if files := m.Files(); len(files) != 0 {
		t.Errorf("Files() = %q, want none", files)
	}
}

func TestLayersMergeKeyByKey(t *testing.T) {
	m := load(t, archived(t, "testdata/layers.txtar"))
	if got := m.Worker; got.MaxSteps != 5 || got.Instructions != "from the file" || got.ToolTimeout != Duration(2*time.Minute) {
		t.Errorf("the server's worker is %+v", got)
	}
	wantLimits := ToolOutput{1000, 131072, 8388608, map[string]int{"Read": 2000, "Grep": 3333}}
	if diff := cmp.Diff(wantLimits, m.Projects["plain"].Worker.ToolOutput); diff != "" {
		t.Errorf("limits of a project without a layer: %s", diff)
	}
	docs := m.Projects["docs"]
	wantLimits = ToolOutput{500, 131072, 8388608, map[string]int{"Read": 2000, "Grep": 3333, "Glob": 700}}
	if diff := cmp.Diff(wantLimits, docs.Worker.ToolOutput); diff != "" {
		t.Errorf("limits of a project with a layer: %s", diff)
	}
	if got := docs.Worker; got.MaxSteps != 5 || got.Instructions != "from docs\n" || got.ToolTimeout != Duration(7*time.Second) {
		t.Errorf("the layer's worker is %+v", got)
	}
	if docs.Permission != PermissionWrite || m.Projects["plain"].Permission != PermissionRead {
		t.Errorf("permissions are %s and %s", docs.Permission, m.Projects["plain"].Permission)
	}
	if !docs.Memory.Enabled || m.Memory.Enabled || m.Projects["plain"].Memory.Enabled {
		t.Error("a layer's memory is not its own")
	}
	for tool, want := range map[string][2]bool{"Bash": {true, true}, "Write": {false, true}, "Grep": {true, true}, "Other": {true, true}} {
		if got := [2]bool{m.ToolEnabled(tool), docs.ToolEnabled(tool)}; got != want {
			t.Errorf("%s is enabled in server, project: %v, want %v", tool, got, want)
		}
	}
}

func TestDefaultProject(t *testing.T) {
	const one, two, named = "[projects.a]\nroot = '.'\n", "[projects.b]\nroot = '.'\n", "[projects.default]\nroot = '.'\n"
	for text, want := range map[string]string{"": "default", "[projects]": "default", one: "a", one + two: "", one + named: "default"} {
		if got := load(t, map[string]string{"site.toml": text}).DefaultProject(); got != want {
			t.Errorf("DefaultProject() of %q = %q, want %q", text, got, want)
		}
	}
}

func TestEmptySectionOfAToolChangesNothing(t *testing.T) {
	m := load(t, map[string]string{"site.toml": "[tools.Bash]\n[tools.Grep]\n"})
	if m.ToolEnabled("Bash") || !m.ToolEnabled("Grep") {
		t.Errorf("Bash, Grep are enabled: %v, %v, want false, true", m.ToolEnabled("Bash"), m.ToolEnabled("Grep"))
	}
}

func TestPathsAreRelativeToTheirFile(t *testing.T) {
	dir := folder(t, map[string]string{
		"etc/site.toml":       "store.dir = 'data'\nmodel = {provider = 'openai', name = 'm', api_key_file = 'key'}\n[projects.a]\nroot = '../src'\nmanifest = 'layers/a.toml'",
		"etc/layers/a.toml":   "[worker]\ninstructions_file = 'a.md'\n[model]\napi_key_file = '../other'\n",
		"etc/layers/a.md":     "hello",
		"src/readme.md":       "",
		"elsewhere/over.toml": "[memory.extract_model]\napi_key_file = '/run/key'",
	})
	m, err := Load("etc/site.toml", filepath.Join(dir, "elsewhere/over.toml"))
	if err != nil {
		t.Fatal(err)
	}
	a := m.Projects["a"]
	got := []string{m.Store.Dir, m.Model.APIKeyFile, a.Root, a.Manifest, a.Worker.InstructionsFile, a.Model.APIKeyFile, a.Memory.ExtractModel.APIKeyFile}
	var want []string
	for _, path := range []string{"etc/data", "etc/key", "src", "etc/layers/a.toml", "etc/layers/a.md", "etc/other"} {
		want = append(want, filepath.Join(dir, path))
	}
	want = append(want, "/run/key")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths: %s", diff)
	}
	wantFiles := []string{"/run/key"}
	for _, path := range []string{"elsewhere/over.toml", "etc/key", "etc/layers/a.toml", "etc/other", "etc/site.toml"} {
		wantFiles = append(wantFiles, filepath.Join(dir, path))
	}
	slices.Sort(wantFiles)
	if diff := cmp.Diff(wantFiles, m.Files()); diff != "" {
		t.Errorf("Files(): %s", diff)
	}
}

func TestFlagsBeatEveryFile(t *testing.T) {
	site := map[string]string{
		"site.toml":  "[server]\nlisten = '0.0.0.0:1'\n[projects.docs]\nroot = '.'\nmanifest = 'layer.toml'\n[model]\nprovider = 'openai'\nname = 'a'\nbase_url = 'http://127.0.0.1:1/v1'\n",
		"layer.toml": "[model]\nname = 'b'\n",
	}
	dir := folder(t, site)
	m, err := Flags{Listen: "127.0.0.1:0", Data: "mine", Model: "openai/c/d"}.Load("site.toml")
	if err != nil {
		t.Fatal(err)
	}
	if m.Server.Listen != "127.0.0.1:0" || m.Store.Dir != filepath.Join(dir, "mine") {
		t.Errorf("listen, dir = %s, %s", m.Server.Listen, m.Store.Dir)
	}
	for _, model := range []Model{m.Model, m.Projects["docs"].Model, m.Memory.ExtractModel} {
		if model.Name != "c/d" || model.BaseURL != "http://127.0.0.1:1/v1" {
			t.Errorf("of the same provider the model is %+v", model)
		}
	}
	if m, err = (Flags{Listen: "[::1]:0", Model: "anthropic/x"}).Load("site.toml"); err != nil {
		t.Fatal(err)
	}
	if got := m.Projects["docs"].Model; got.Provider != "anthropic" || got.Name != "x" || got.BaseURL != "" || got.APIKeyEnv != "ANTHROPIC_API_KEY" {
		t.Errorf("of another provider the model is %+v", got)
	}
	if m, err = (Flags{Listen: "localhost:0", Model: "demo"}).Load("site.toml"); err != nil || m.Model.Provider != "demo" {
		t.Errorf("demo: %v, %v", m, err)
	}
	_, err = Flags{Listen: "x", Data: "a\nb", Model: "gpt/x"}.Load("site.toml")
	want := `--data: store.dir: must be one line of at most 1024 bytes
--listen: server.listen: must be host:port like 127.0.0.1:8080; port 0 picks a free one
--model: model.provider: must be "openai" or "anthropic" or "demo"`
	if err == nil || err.Error() != want {
		t.Errorf("wrong flags: %v, want %s", err, want)
	}
}

func TestListenBeyondLoopbackNeedsKeys(t *testing.T) {
	const keys = "\n[server.keys]\na = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'\n"
	for listen, open := range map[string]bool{
		"127.0.0.1:0": false, "127.9.9.9:1": false, "localhost:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		":80": true, "0.0.0.0:80": true, "[::]:80": true, "192.0.2.1:80": true, "example.org:80": true, "127.0.0.1.example.org:80": true,
	} {
		folder(t, map[string]string{"site.toml": "server.listen = '" + listen + "'", "over.toml": keys})
		if _, err := Load("site.toml"); (err != nil) != open {
			t.Errorf("listen %s without keys: %v", listen, err)
		}
		if _, err := Load("site.toml", "over.toml"); err != nil {
			t.Errorf("listen %s with keys: %v", listen, err)
		}
	}
}

func TestUnknownToolsAreWarnings(t *testing.T) {
	m := load(t, map[string]string{
		"site.toml": `
worker.tool_output.per_tool.NoSuchTool = 200
worker.tool_output.per_tool.Read = 200
[tools.Bash]
enabled = true
[tools.read]
enabled = true
[projects.a]
root = "."
manifest = "layer.toml"
[projects.b]
root = "."
manifest = "layer.toml"
`,
		"layer.toml": "[worker.tool_output.per_tool]\n\"My Tool\" = 300\n",
	})
	want := []Warning{
		{"NoSuchTool", "worker.tool_output.per_tool.NoSuchTool", "site.toml", 2},
		{"read", "tools.read", "site.toml", 6},
		{"My Tool", `worker.tool_output.per_tool."My Tool"`, "layer.toml", 2},
	}
	if diff := cmp.Diff(want, m.UnknownTools([]string{"Bash", "Grep", "Read"})); diff != "" {
		t.Errorf("UnknownTools(): %s", diff)
	}
}

func TestUnreadableFilesAreClearErrors(t *testing.T) {
	for want, err := range map[string]error{
		"does not exist":                     &fs.PathError{Op: "open", Path: "p", Err: syscall.ENOENT},
		"may not be read: permission denied": &fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES},
		"cannot be read: input/output error": &fs.PathError{Op: "read", Path: "p", Err: syscall.EIO},
	} {
		if got := cannotRead(err).Error(); got != want {
			t.Errorf("cannotRead(%v) = %q, want %q", err, got, want)
		}
	}
	_, err := Load("/proc/self/mem") // opens, but cannot be read, whoever asks
	if want := "/proc/self/mem: cannot be read: input/output error"; err == nil || err.Error() != want {
		t.Errorf("Load() of it = %v, want %s", err, want)
	}
}
