package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"loadline/internal/session"
	"loadline/internal/tool"
)

const timeout = 2 * time.Second

func newBash(t testing.TB, captureMaxBytes int) (x tool.Tool, dir string) {
	t.Helper()
	dir = t.TempDir()
	return New(Config{Dir: dir, CaptureMaxBytes: captureMaxBytes, MaxTimeout: timeout}), dir
}

func callOf(command string, limitBytes int) tool.Call {
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return tool.Call{Arguments: arguments, LimitBytes: limitBytes, Progress: func(string) {}}
}

func content(out session.Output) string {
	if out.Content == nil {
		return ""
	}
	return *out.Content
}

func TestCommands(t *testing.T) {
	tests := []struct {
		name, command, want, summary string
		failed                       bool
	}{
		{"output", "echo hi", "hi\n", "exit status 0, 3 bytes in ", false},
		{"both streams in order", "echo 1; echo 2 >&2; echo 3; echo 4 >&2", "1\n2\n3\n4\n", "exit status 0, 8 bytes", false},
		{"failure", "echo partial; exit 3", "partial\n", "exit status 3, 8 bytes", true},
		{"silent", "true", "", "exit status 0, 0 bytes", false},
		{"one byte", "printf x", "x", "exit status 0, 1 byte in ", false},
		{"signal", "kill -KILL $$", "", "signal: killed", true},
		{"no such command", "nonesuch-command 2>/dev/null", "", "exit status 127", true},
		{"no input", "cat; read x || echo none", "none\n", "exit status 0", false},
		{"no text", `printf 'a\000b\377'`, "a\ufffdb\ufffd", "exit status 0, 4 bytes", false},
		{"syntax", "echo (", "", "exit status 2", true},
		{"late output of the group", `(s=S; while [ $s != Z ]; do read -r _ _ s _ </proc/$$/stat; done; echo late) & echo early`, "early\nlate\n", "exit status 0, 11 bytes", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x, _ := newBash(t, 1<<20)
			out, err := x.Run(t.Context(), callOf(test.command, 16384))
			if err != nil || out.Failed != test.failed || !strings.HasPrefix(out.Summary, "Bash: "+test.summary) || out.Unseen != 0 || out.Full != "" {
				t.Errorf("failed %v, %q, %v; want failed %v, %q", out.Failed, out.Summary, err, test.failed, test.summary)
			}
			if test.name != "syntax" && content(out) != test.want {
				t.Errorf("content %q, want %q", content(out), test.want)
			}
		})
	}
}

// Each command writes the number of its process group to a file, and none of the
// group may be left.
func TestEveryCommandEnds(t *testing.T) {
	tests := []struct {
		name, command string
		timedOut      bool
		hi            bool
	}{
		{"child in the background", "sleep 300 & echo hi", false, true},
		{"child that leaves the group", "setsid sleep 6 & echo hi", false, true},
		{"endless output", "yes hi", true, true},
		{"SIGTERM ignored", "trap '' TERM; echo hi; sleep 300", true, true},
		{"child that prints for ever", "echo hi; yes hi &", false, true},
		{"child that prints for ever and leaves the group", "echo hi; setsid timeout 6 yes hi &", false, true},
		{"fork and wait", "for i in 1 2 3; do (trap '' TERM; sleep 300) & done; echo hi; wait", true, true},
		{"stopped", "echo hi; kill -STOP $$", true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			x, dir := newBash(t, 1<<20)
			began := time.Now()
			out, err := x.Run(t.Context(), callOf("echo $$ >group; "+test.command, 16384))
			if took := time.Since(began); err != nil || took > timeout+2*time.Second {
				t.Errorf("took %v, error %v", took, err)
			}
			if timedOut := strings.Contains(out.Summary, "timed out"); timedOut != test.timedOut || out.Failed != test.timedOut {
				t.Errorf("failed %v, %q; want timed out %v", out.Failed, out.Summary, test.timedOut)
			}
			if !strings.HasPrefix(content(out), "hi\n") {
				t.Errorf("content %.100q", content(out))
			}
			wantNoGroup(t, dir)
		})
	}
}

func wantNoGroup(t *testing.T, dir string) {
	t.Helper()
	var group int
	text, err := os.ReadFile(filepath.Join(dir, "group"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &group)
	}
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Second); !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH); runtime.Gosched() {
		if onlyZombies(t, group) {
			return // killed; whoever is their parent now has not yet looked
		}
		if time.Now().After(deadline) {
			t.Fatalf("group %d lives", group)
		}
	}
}

func onlyZombies(t *testing.T, group int) bool {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var state string
		var parent, of int
		_, fields, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if _, err := fmt.Sscan(fields, &state, &parent, &of); err == nil && of == group && state != "Z" && state != "X" {
			return false
		}
	}
	return true
}

func TestCancelKeepsWhatWasPrinted(t *testing.T) {
	x, dir := newBash(t, 1<<20)
	ctx, cancel := context.WithCancelCause(t.Context())
	call := callOf("echo $$ >group; echo hi; sleep 300", 16384)
	call.Progress = func(line string) {
		if line == "hi" {
			cancel(errors.New("the person stopped it"))
		}
	}
	began := time.Now()
	out, err := x.Run(ctx, call)
	if err != nil || !out.Failed || content(out) != "hi\n" || !strings.HasPrefix(out.Summary, "Bash: cancelled and ended, 3 bytes") {
		t.Errorf("got %q %q failed %v, %v", out.Summary, content(out), out.Failed, err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	wantNoGroup(t, dir)
	deadline, cancelDeadline := context.WithTimeout(t.Context(), time.Second)
	defer cancelDeadline()
	if out, _ := x.Run(deadline, callOf("echo hi; sleep 300", 16384)); !out.Failed || !strings.Contains(out.Summary, "timed out") || content(out) != "hi\n" {
		t.Errorf("at the caller's deadline: %q %q", out.Summary, content(out))
	}
}

func TestCallMayShortenItsTime(t *testing.T) {
	x := New(Config{Dir: t.TempDir(), CaptureMaxBytes: 1 << 20, MaxTimeout: time.Hour})
	out, err := x.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{"command":"sleep 300","timeout_seconds":1}`), LimitBytes: 16384, Progress: func(string) {}})
	if err != nil || !strings.Contains(out.Summary, "timed out") {
		t.Errorf("%q, %v", out.Summary, err)
	}
	for _, arguments := range []string{`{}`, `{"command":" "}`, `{"command":"a\u0000b"}`, `{"command":"a","timeout_seconds":0}`, `{"command":"a","timeout_seconds":"1"}`, `{"command":"a","cwd":"/"}`} {
		if _, err := x.Run(t.Context(), tool.Call{Arguments: json.RawMessage(arguments)}); !errors.Is(err, tool.ErrArguments) {
			t.Errorf("%s: %v, want bad arguments", arguments, err)
		}
	}
}

func TestFolderThatIsGone(t *testing.T) {
	x := New(Config{Dir: filepath.Join(t.TempDir(), "gone"), CaptureMaxBytes: 1 << 20, MaxTimeout: timeout})
	if out, err := x.Run(t.Context(), callOf("echo hi", 16384)); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("%q, %v", out.Summary, err)
	}
	goleak.VerifyNone(t)
}

func TestLongOutputKeepsHeadAndTail(t *testing.T) {
	x, _ := newBash(t, 1<<20)
	for _, limit := range []int{128, 1000, 16384} {
		out, err := x.Run(t.Context(), callOf("seq 1 100000; echo the error >&2; exit 1", limit))
		if err != nil || !out.Failed {
			t.Fatalf("%q, %v", out.Summary, err)
		}
		const produced = 588895 + 10 // "the error" and its line break
		got := content(out)
		if len(got) > limit-tool.MarkerMaxBytes || len(got) < (limit-tool.MarkerMaxBytes)/2 || int64(len(got))+out.Unseen != produced {
			t.Errorf("limit %d: %d bytes, %d unseen, want %d in all", limit, len(got), out.Unseen, produced)
		}
		if !strings.HasPrefix(got, "1\n") || !strings.HasSuffix(got, "the error\n") || strings.Count(got, "bytes left out") != 1 {
			t.Errorf("limit %d: %q", limit, got)
		}
		if len(out.Full) != produced || !strings.HasSuffix(out.Full, "100000\nthe error\n") {
			t.Errorf("limit %d: full has %d bytes, want %d", limit, len(out.Full), produced)
		}
	}
}

func TestEndlessOutputTakesBoundedMemory(t *testing.T) {
	const capture = 4 << 20
	x, _ := newBash(t, capture)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := x.Run(t.Context(), callOf("yes", 16384))
	runtime.ReadMemStats(&after)
	if err != nil || out.Unseen < 2*capture {
		t.Fatalf("%q: %d unseen, %v", out.Summary, out.Unseen, err)
	}
	if len(out.Full) > capture || len(out.Full) < capture-100 || !utf8.ValidString(out.Full) {
		t.Errorf("full has %d bytes, want nearly %d", len(out.Full), capture)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 3*capture {
		t.Errorf("%d bytes were allocated, of %d collected", grown, capture)
	}
}

func TestEnvironmentHoldsNoKeys(t *testing.T) {
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=/h", "LC_ALL=C", "OPENAI_API_KEY=sk-1", "BASH_ENV=/evil", "LD_PRELOAD=", "AWS_SECRET_ACCESS_KEY=2", "PATHX=3", "BASH_FUNC_x%%=() { :; }"}
	x := New(Config{Dir: t.TempDir(), CaptureMaxBytes: 1 << 20, MaxTimeout: timeout, Environ: environ})
	out, err := x.Run(t.Context(), callOf("env", 16384))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(content(out)) {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "PATH", "HOME", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_":
		default:
			t.Errorf("the command sees %q", line)
		}
	}
	if !strings.Contains(content(out), "HOME=/h\n") {
		t.Errorf("HOME is missing: %s", content(out))
	}
	t.Setenv("LOADLINE_TEST_API_KEY", "sk-2")
	x, _ = newBash(t, 1<<20)
	if out, _ := x.Run(t.Context(), callOf("env", 16384)); strings.Contains(content(out), "sk-2") || !strings.Contains(content(out), "PATH=") {
		t.Errorf("the server's own environment: %s", content(out))
	}
}

func TestSpec(t *testing.T) {
	x, _ := newBash(t, 1<<20)
	var schema struct {
		Required             []string
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(x.Spec().Parameters, &schema); err != nil || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Errorf("parameters %s: %v", x.Spec().Parameters, err)
	}
	if !strings.Contains(x.Spec().Description, "not confined") {
		t.Error("the description does not say that Bash is confined to nothing")
	}
}
