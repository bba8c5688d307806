package file

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const captureMaxBytes = 1 << 20

// folder makes a folder that holds files, by their paths.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o777))
		must(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o666))
	}
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func workspace(t testing.TB, root string, hidden ...string) *Workspace {
	t.Helper()
	w, err := Open(root, hidden, captureMaxBytes)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

type arguments map[string]any

func call(args arguments, limitBytes int) tool.Call {
	encoded, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return tool.Call{Arguments: encoded, LimitBytes: limitBytes, Progress: func(string) {}}
}

// run calls a tool with room for all that it may say.
func run(t testing.TB, w *Workspace, name string, args arguments) session.Output {
	t.Helper()
	return runLimited(t, w, name, args, captureMaxBytes)
}

func runLimited(t testing.TB, w *Workspace, name string, args arguments, limitBytes int) session.Output {
	t.Helper()
	set := tool.NewSet(append(w.ReadTools(), w.WriteTools()...)...)
	found, ok := set.Find(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	out, err := found.Run(t.Context(), call(args, limitBytes))
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	if out.Summary == "" || len(out.Summary) > 512 || strings.Contains(out.Summary, "\n") {
		t.Errorf("%s %v: bad summary %q", name, args, out.Summary)
	}
	return out
}

func content(out session.Output) string {
	if out.Content == nil {
		return ""
	}
	return *out.Content
}

// wantFailed checks that a call failed in words that hold text.
func wantFailed(t testing.TB, out session.Output, text string) {
	t.Helper()
	if !out.Failed || !strings.Contains(content(out), text) {
		t.Errorf("failed %v, %q %q; want failed with %q", out.Failed, out.Summary, content(out), text)
	}
}

func TestSchemasAreStrictObjects(t *testing.T) {
	w := workspace(t, t.TempDir())
	for _, x := range append(w.ReadTools(), w.WriteTools()...) {
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		spec := x.Spec()
		must(t, json.Unmarshal(spec.Parameters, &schema))
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties || spec.Description == "" {
			t.Errorf("%s: not strict: %s", spec.Name, spec.Parameters)
		}
		for _, name := range schema.Required {
			if _, ok := schema.Properties[name]; !ok {
				t.Errorf("%s requires %q, which it does not describe", spec.Name, name)
			}
		}
		for name, p := range schema.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s: %q lacks a type or description", spec.Name, name)
			}
		}
	}
}

func TestBadArgumentsAreToldApart(t *testing.T) {
	w := workspace(t, t.TempDir())
	tests := []struct {
		tool string
		args arguments
	}{
		{"Read", arguments{}},
		{"Read", arguments{"path": "a", "offset": 0}},
		{"Read", arguments{"path": "a", "limit": -1}},
		{"Read", arguments{"path": "a", "lines": 3}},
		{"Glob", arguments{}},
		{"Glob", arguments{"pattern": "[a"}},
		{"Glob", arguments{"pattern": "../*"}},
		{"Glob", arguments{"pattern": "/etc/*"}},
		{"Glob", arguments{"pattern": strings.Repeat("{a,b}", 8) + "x"}},
		{"Glob", arguments{"pattern": strings.Repeat("a", maxPatternBytes+1)}},
		{"Glob", arguments{"pattern": "*", "offset": 0}},
		{"Grep", arguments{}},
		{"Grep", arguments{"pattern": "("}},
		{"Grep", arguments{"pattern": "a)(b", "ignore_case": true}},
		{"Grep", arguments{"pattern": "a", "mode": "lines"}},
		{"Grep", arguments{"pattern": "a", "context": 21}},
		{"Grep", arguments{"pattern": "a", "glob": "[a"}},
		{"Grep", arguments{"pattern": strings.Repeat("a", maxExpressionBytes+1)}},
		{"Write", arguments{"path": "a"}},
		{"Write", arguments{"content": "a"}},
		{"Edit", arguments{"path": "a", "old": "x"}},
		{"Edit", arguments{"path": "a", "old": "", "new": "x"}},
		{"Edit", arguments{"path": "a", "old": "x", "new": "x"}},
	}
	set := tool.NewSet(append(w.ReadTools(), w.WriteTools()...)...)
	for _, test := range tests {
		x, _ := set.Find(test.tool)
		if _, err := x.Run(t.Context(), call(test.args, 16384)); err == nil || !strings.HasPrefix(err.Error(), tool.ErrArguments.Error()) {
			t.Errorf("%s %v: %v, want bad arguments", test.tool, test.args, err)
		}
	}
}

func TestCancelEndsEachTool(t *testing.T) {
	w := workspace(t, folder(t, map[string]string{"a.txt": "abc\n"}))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := fmt.Errorf("gone")
	cancel(gone)
	for _, x := range append(w.ReadTools(), w.WriteTools()...) {
		args := map[string]arguments{
			"Read": {"path": "a.txt"}, "Glob": {"pattern": "*"}, "Grep": {"pattern": "b"},
			"Write": {"path": "a.txt", "content": "new"}, "Edit": {"path": "a.txt", "old": "b", "new": "x"},
		}[x.Spec().Name]
		if out, err := x.Run(ctx, call(args, 16384)); err != gone {
			t.Errorf("%s = %q, %v; want the cause of the end", x.Spec().Name, out.Summary, err)
		}
	}
	if got := contents(t, w.names[0]); len(got) != 1 || !slices.Contains(slices.Collect(maps.Values(got)), "abc\n") {
		t.Errorf("a cancelled call changed something: %v", got)
	}
}
