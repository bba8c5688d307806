package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lowModel = `
[model]
provider = "anthropic"
name = "low"
base_url = "https://low.example"
api_key_env = "LOW_KEY"
api_version = "2023-06-01"
auth = "bearer"
context_window = 8192
max_output_tokens = 1000
input_tokens_per_minute = 30000
max_attempts = 7
`

// modelLayers are keys over lowModel, and what they change in it.
var modelLayers = []struct {
	name, keys string
	change     func(*Model)
}{
	{"nothing", "", func(*Model) {}},
	{"the name", "name = 'high'", func(m *Model) { m.Name, m.ContextWindow, m.MaxOutputTokens = "high", 0, 0 }},
	{"an ordinary key", "max_attempts = 2", func(m *Model) { m.MaxAttempts = 2 }},
	{"its own window", "name = 'high'\ncontext_window = 4096", func(m *Model) { m.Name, m.ContextWindow, m.MaxOutputTokens = "high", 4096, 0 }},
	{"another variable", "api_key_env = 'B'", func(m *Model) { m.APIKeyEnv, m.InputTokensPerMinute = "B", 0 }},
	{"a file", "api_key_file = '/b'", func(m *Model) { m.APIKeyEnv, m.APIKeyFile, m.InputTokensPerMinute = "", "/b", 0 }},
	{"the same provider", "provider = 'anthropic'", func(m *Model) {
		*m = Model{Provider: "anthropic", Name: "low", APIKeyEnv: "ANTHROPIC_API_KEY"}
	}},
	{"another provider", "provider = 'openai'", func(m *Model) {
		*m = Model{Provider: "openai", Name: "low", APIKeyEnv: "OPENAI_API_KEY"}
	}},
	{"provider and URL", "provider = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'", func(m *Model) {
		*m = Model{Provider: "openai", Name: "low", BaseURL: "http://127.0.0.1:1/v1"}
	}},
	{"demo", "provider = 'demo'", func(m *Model) { *m = Model{Provider: "demo", Name: "low"} }},
}

func TestModelsNeverTakeAKeyToAnotherService(t *testing.T) {
	low := Default().Model
	low.Provider, low.Name, low.BaseURL, low.APIKeyEnv = "anthropic", "low", "https://low.example", "LOW_KEY"
	low.APIVersion, low.Auth, low.MaxAttempts = "2023-06-01", "bearer", 7
	low.ContextWindow, low.MaxOutputTokens, low.InputTokensPerMinute = 8192, 1000, 30_000
	for _, test := range modelLayers {
		want := low
		test.change(&want)
		if want.MaxAttempts == 0 {
			want.MaxAttempts = 7
		}
		want.RetryMaxWait, want.IdleTimeout = low.RetryMaxWait, low.IdleTimeout
		t.Run(test.name, func(t *testing.T) {
			m := load(t, map[string]string{"site.toml": lowModel, "over.toml": "[model]\n" + test.keys})
			if diff := cmp.Diff(want, m.Model); diff != "" {
				t.Errorf("over it in a file: %s", diff)
			}
			m = load(t, map[string]string{
				"site.toml":  lowModel + "[projects.a]\nroot = '.'\nmanifest = 'layer.toml'",
				"layer.toml": "[model]\n" + test.keys,
			})
			if diff := cmp.Diff(want, m.Projects["a"].Model); diff != "" {
				t.Errorf("over it in a project: %s", diff)
			}
			if diff := cmp.Diff(low, m.Model); diff != "" {
				t.Errorf("the server's model beside the project: %s", diff)
			}
			m = load(t, map[string]string{"site.toml": lowModel + "[memory.extract_model]\n" + test.keys})
			if diff := cmp.Diff(want, m.Memory.ExtractModel); diff != "" {
				t.Errorf("over it for extracts: %s", diff)
			}
			if diff := cmp.Diff(low, m.Memory.ConsolidationModel); diff != "" {
				t.Errorf("the model for consolidations: %s", diff)
			}
			m = load(t, map[string]string{"site.toml": lowModel + "[compaction.model]\n" + test.keys})
			if diff := cmp.Diff(want, m.Compaction.Model); diff != "" {
				t.Errorf("over it for compactions: %s", diff)
			}
		})
	}
}

// TestBaseURLAloneTakesNoProvider also refuses: a URL with the provider of another
// service would get its key.
func TestBaseURLAloneTakesNoProvider(t *testing.T) {
	folder(t, map[string]string{"site.toml": lowModel, "over.toml": "[model]\nbase_url = 'http://127.0.0.1:1'"})
	_, err := Load("site.toml", "over.toml")
	want := "over.toml:2: model.base_url: has no use with provider demo: set provider beside it"
	if err == nil || err.Error() != want {
		t.Errorf("Load() = %v, want %s", err, want)
	}
}

type keyTest struct {
	name      string
	model     Model
	key, fail string
}

func TestAPIKey(t *testing.T) {
	for _, test := range keyTests(t) {
		t.Run(test.name, func(t *testing.T) {
			key, err := test.model.APIKey()
			if key != test.key {
				t.Errorf("APIKey() = %q, want %q", key, test.key)
			}
			if got := errorText(err); got != test.fail || strings.Contains(got, "sk-secret") {
				t.Errorf("error of APIKey() = %q, want %q", got, test.fail)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func keyTests(t *testing.T) []keyTest {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Setenv("GOOD_KEY", " sk-secret-1\n")
	t.Setenv("BLANK_KEY", " \n")
	t.Setenv("TWO_KEYS", "sk-secret-1\nsk-secret-2")
	missing := filepath.Join(dir, "missing")
	return []keyTest{
		{"demo", Model{Provider: "demo", APIKeyEnv: "UNSET_KEY"}, "", ""},
		{"local server", Model{Provider: "openai", BaseURL: "http://127.0.0.1:1"}, "", ""},
		{"variable", Model{Provider: "openai", APIKeyEnv: "GOOD_KEY"}, "sk-secret-1", ""},
		{"unset", Model{Provider: "openai", APIKeyEnv: "UNSET_KEY"}, "",
			"no API key for openai: environment variable UNSET_KEY is not set or empty"},
		{"blank", Model{Provider: "openai", APIKeyEnv: "BLANK_KEY"}, "",
			"no API key for openai: environment variable BLANK_KEY is not set or empty"},
		{"two lines", Model{Provider: "openai", APIKeyEnv: "TWO_KEYS"}, "",
			"API key for openai: environment variable TWO_KEYS holds more than one line, or control characters"},
		{"file", Model{Provider: "anthropic", APIKeyFile: write("good", "\ufeffsk-secret-3\r\n")}, "sk-secret-3", ""},
		{"empty file", Model{Provider: "anthropic", APIKeyFile: write("empty", "")}, "",
			"no API key for anthropic: file " + filepath.Join(dir, "empty") + " is not set or empty"},
		{"no file", Model{Provider: "anthropic", APIKeyFile: missing}, "",
			"API key for anthropic: file " + missing + " does not exist"},
		{"large file", Model{Provider: "anthropic", APIKeyFile: write("large", strings.Repeat("sk-secret", 9000))}, "",
			"API key for anthropic: file " + filepath.Join(dir, "large") + " is larger than 65536 bytes"},
	}
}
