package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the path of a program that make tools installs.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath("../bin/" + name)
	if err != nil {
		if path, err = exec.LookPath(name); err != nil {
			t.Fatalf("%s is missing: run make tools", name)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// output is what a running program has printed so far.
type output struct {
	t     *testing.T
	mu    sync.Mutex // guards the fields below
	text  bytes.Buffer
	grown chan struct{} // closed at the next Write
}

// runProgram starts a program and ends it with the test. Its environment has nothing
// but a home that is not there.
func runProgram(t *testing.T, name string, args ...string) *output {
	t.Helper()
	o := &output{t: t, grown: make(chan struct{})}
	cmd := exec.Command(program(t, name), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"HOME=" + t.TempDir()}, o, o
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait() // how it ends after the test is no matter
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, o)
		}
	})
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find waits until the pattern matches what was printed, and returns its groups.
func (o *output) find(pattern string) []string {
	o.t.Helper()
	wanted, late := regexp.MustCompile(pattern), time.After(patience)
	for {
		o.mu.Lock()
		found, grown := wanted.FindStringSubmatch(o.text.String()), o.grown
		o.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-grown:
		case <-late:
			o.t.Fatalf("nothing that was printed matches %s", pattern)
		}
	}
}

// rewrite copies a file with pairs of texts replaced, each of which must be there.
func rewrite(t *testing.T, from, to string, pairs ...string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(string(text), pairs[i]) {
			t.Fatalf("%s does not have %q", from, pairs[i])
		}
	}
	if err := os.WriteFile(to, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}
