package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// walked says which test runs the blocks of a page, by their languages. A block that
// no test runs is not here, and fails; so does a page that is not told of.
var walked = map[string][]string{
	"../README.md":   {"console", "toml"}, // testdata/script/readme.txtar
	"quickstart.md":  {"console"},         // testdata/script/docs.txtar
	"limits.md":      {"console", "toml"}, // the same
	"models.md":      {"toml"},            // the same
	"transfer.md":    {"console"},         // the same
	"plan/memory.md": {"console", "toml", "log", "promql"},
	"operations.md":  {"console", "toml", "log", "promql"},
	"frontends.md":   {"console", "js", "tsx", "ts", "html"}, // the same; e2e/protocols/docs.test.ts and docs-page.test.ts
}

// Commands and snippets of the pages are run by tests.
func TestEachSnippetOfThePagesIsRun(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, "../../docs/plan/memory.md", "../../README.md") {
		name, err := filepath.Rel("../../docs", path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md does not tell of %s", name)
		}
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, language := range unrun(string(page), walked[name]) {
			t.Errorf("%s has a block of %q, which no test runs", name, language)
		}
	}
}

// unrun are the languages of a page's blocks that are not among those that are run,
// but for blocks below a comment that says why they are not, for drawings, which have
// no language, and for forms, which are JSON.
func unrun(page string, run []string) (languages []string) {
	inside, before := false, ""
	for line := range strings.Lines(page) {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		if fence && !inside && !slices.Contains(append(run, "", "json"), language) && !strings.HasPrefix(before, "<!-- not run: ") {
			languages = append(languages, language)
		}
		inside = inside != fence
		if !fence && strings.TrimSpace(line) != "" {
			before = line
		}
	}
	return languages
}
