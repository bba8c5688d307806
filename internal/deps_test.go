package internal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "loadline"

// anything, as an arrow, allows every package that is not for tests only.
const anything = "*"

// allowed says which packages of this module each of them may import; tests are
// free, others may import a package for tests only where it is named here. A package
// whose path is not here, and no folder above it with /..., is unknown, and fails.
// The folders of providers and tools do not know each other.
var allowed = map[string][]string{
	"internal/session":         {},
	"internal/manifest":        {},
	"internal/llm":             {"internal/session"},
	"internal/llm/...":         {"internal/session", "internal/llm"},
	"internal/tool":            {"internal/session"},
	"internal/tool/...":        {"internal/session", "internal/tool"},
	"internal/store":           {"internal/session"},
	"internal/store/storetest": {},
	"internal/stream":          {"internal/session"},
	"internal/artifact":        {"internal/session", "internal/tool"},
	"internal/worker":          {"internal/session", "internal/manifest", "internal/llm", "internal/tool"},
	"internal/transfer":        {"internal/session", "internal/worker"},
	"internal/memory":          {"internal/session", "internal/manifest", "internal/worker", "internal/tool"},
	"internal/host":            {"internal/session", "internal/manifest", "internal/worker"},
	"internal/http":            {"internal/session", "internal/manifest"},
	"internal/web":             {},
	"cmd/server":               {anything},

	"":                {},                                     // the module's root holds the contract, which is embedded
	"bench":           {"internal/session", "internal/store"}, // it fills a store to start a server on
	"bench/floor":     {},
	"bench/fakemodel": {},
	"bench/wedge":     {"internal/session", "internal/llm/llmtest"}, // a demonstration: it is not part of the server
}

type goPackage struct {
	path    string   // without the module; "" for its root
	imports []string // those of this module, in the same form; tests' imports are not among them
}

func TestImportsKeepToTheDesign(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 3 {
		t.Fatalf("go list names %d packages, want at least the nouns, a tool and a provider", len(packages))
	}
	for _, problem := range check(packages) {
		t.Error(problem)
	}
}

func TestCheckFindsWrongArrows(t *testing.T) {
	tests := []struct {
		name string
		pkg  goPackage
		want string // part of the one problem; empty for none
	}{
		{"nothing", goPackage{"internal/session", nil}, ""},
		{"allowed", goPackage{"internal/host", []string{"internal/worker"}}, ""},
		{"folder below a tool", goPackage{"internal/tool/file", []string{"internal/tool"}}, ""},
		{"all for the server", goPackage{"cmd/server", []string{"internal/http", ""}}, ""},
		{"upwards", goPackage{"internal/worker", []string{"internal/host"}}, "internal/worker imports internal/host"},
		{"between providers", goPackage{"internal/llm/openai", []string{"internal/llm/anthropic"}}, "internal/llm/openai imports"},
		{"from a leaf", goPackage{"internal/session", []string{"internal/manifest"}}, "internal/session imports"},
		{"unknown", goPackage{"internal/util", nil}, "internal/util is not in the table"},
		{"unknown command", goPackage{"cmd/other", nil}, "cmd/other is not in the table"},
		{"test package", goPackage{"cmd/server", []string{"internal/llm/llmtest"}}, "only tests may import internal/llm/llmtest"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			problems := strings.Join(check([]goPackage{test.pkg}), "\n")
			if (test.want == "") != (problems == "") || !strings.Contains(problems, test.want) {
				t.Errorf("check(%+v) = %q, want %q", test.pkg, problems, test.want)
			}
		})
	}
}

// check returns a line for each arrow and each package that the table lacks.
func check(packages []goPackage) (problems []string) {
	for _, pkg := range packages {
		arrows, known := arrowsOf(pkg.path)
		if !known {
			problems = append(problems, fmt.Sprintf("package %s is not in the table of allowed imports", pkg.path))
			continue
		}
		for _, path := range pkg.imports {
			switch {
			case strings.HasSuffix(path, "test") && !slices.Contains(arrows, path):
				problems = append(problems, fmt.Sprintf("%s: only tests may import %s", pkg.path, path))
			case !slices.Contains(arrows, anything) && !slices.Contains(arrows, path):
				problems = append(problems, fmt.Sprintf("%s imports %s, want only %q", pkg.path, path, arrows))
			}
		}
	}
	return problems
}

func arrowsOf(path string) (arrows []string, known bool) {
	if arrows, known = allowed[path]; known {
		return arrows, true
	}
	for folder := range allowed {
		if above, wild := strings.CutSuffix(folder, "/..."); wild && strings.HasPrefix(path, above+"/") {
			return allowed[folder], true
		}
	}
	return nil, false
}

// listPackages asks the go command, so that build constraints count as they do
// in a build.
func listPackages(t *testing.T) (packages []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles", module+"/...").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Logf("%s", exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct {
			ImportPath string
			Imports    []string
			GoFiles    []string
		}
		if err := dec.Decode(&listed); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatalf("decode the answer of go list: %v", err)
		}
		if len(listed.GoFiles) == 0 {
			continue // tests alone
		}
		pkg := goPackage{path: inModule(listed.ImportPath)}
		for _, path := range listed.Imports {
			if path == module || strings.HasPrefix(path, module+"/") {
				pkg.imports = append(pkg.imports, inModule(path))
			}
		}
		packages = append(packages, pkg)
	}
}

func inModule(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}
