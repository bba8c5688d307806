package manifest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestLoadTellsAllErrors loads archives of wrong manifests, site.toml and over.toml
// if there is one, and compares the error with the file error of the archive.
func TestLoadTellsAllErrors(t *testing.T) {
	goldens, err := filepath.Glob("testdata/wrong/*.txtar")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, golden := range goldens {
		golden, err := filepath.Abs(golden)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(golden), func(t *testing.T) {
			files := archived(t, golden)
			want := files["error"]
			delete(files, "error")
			dir := folder(t, files)
			names := []string{"site.toml"}
			if files["over.toml"] != "" {
				names = append(names, "over.toml")
			}
			_, err = Load(names...)
			if err == nil {
				t.Fatal("Load() accepts the manifest")
			}
			got := strings.ReplaceAll(err.Error(), dir, "$DIR") + "\n"
			if *update {
				writeGolden(t, golden, got)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("error of Load(): %s", diff)
			}
			if strings.Contains(got, "sk-secret") {
				t.Errorf("the error tells a secret: %s", got)
			}
		})
	}
}

// archived are the files of a txtar archive.
func archived(t *testing.T, path string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, file := range archive.Files {
		files[file.Name] = string(file.Data)
	}
	return files
}

func writeGolden(t *testing.T, path, text string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "error" })
	archive.Files = append(archive.Files, txtar.File{Name: "error", Data: []byte(text)})
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// folder makes a folder with these files the current one, for the test.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestLoadBoundsTheErrors(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "a%d = 1\n", i)
	}
	folder(t, map[string]string{"site.toml": text.String()})
	_, err := Load("site.toml")
	if err == nil {
		t.Fatal("Load() accepts unknown keys")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxProblems+1 || lines[maxProblems] != "and 2950 more errors" {
		t.Errorf("the error has %d lines and ends with %q", len(lines), lines[len(lines)-1])
	}
}

func TestLoadTellsWhatIsWrongWithAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text, want string // no text: no such file is written
	}{
		{"folder", "", "folder: is a folder, not a file"},
		{"missing.toml", "", "missing.toml: does not exist"},
		{"missing/site.toml", "", "missing/site.toml: does not exist"},
		{"binary.toml", "\x7fELF\x00\xff", "binary.toml: is not UTF-8 in line 1: save it as UTF-8"},
		{"latin1.toml", "# a\r\n# b\n# caf\xe9", "latin1.toml: is not UTF-8 in line 3: save it as UTF-8"},
		{"utf16.toml", "\xff\xfea\x00", "utf16.toml: is not UTF-8 in line 1: save it as UTF-8"},
		{"large.toml", "# " + strings.Repeat("a", maxFileBytes), "large.toml: is larger than 1048576 bytes"},
		{"nul.toml", "a = \"\x00\"", `nul.toml:1:6: not valid TOML: basic strings cannot have control characters`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.text != "" {
				if err := os.WriteFile(test.name, []byte(test.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Load(test.name)
			if err == nil || err.Error() != test.want {
				t.Errorf("Load(%q) = %v, want %s", test.name, err, test.want)
			}
		})
	}
}
