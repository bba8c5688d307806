package acceptance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/shell"
)

// aCall is one call and what its result must be.
type aCall struct {
	tool, arguments string
	failed          bool
	want            string // part of the content
}

// runAll asks for all calls in one answer and returns their results, in order.
func runAll(t *testing.T, w *world, all []aCall) []session.ToolResult {
	t.Helper()
	var step llmtest.Step
	for _, c := range all {
		step.Calls = append(step.Calls, llmtest.Call{Tool: c.tool, Arguments: c.arguments})
	}
	w.model.Add(step, says("ok"))
	id := w.newSession()
	if turn := w.say(id, "go"); turn.State != session.TurnCompleted {
		t.Errorf("the turn: %s %v", turn.State, turn.Error)
	}
	got := results(w.items(id))
	if len(got) != len(all) {
		t.Fatalf("%d results, want %d", len(got), len(all))
	}
	for i, c := range all {
		if got[i].Failed != c.failed || !strings.Contains(contentOf(got[i]), c.want) || strings.Contains(got[i].Summary, "\n") {
			t.Errorf("%s %s: failed %v, %q, %.300q; want failed %v and %q", c.tool, c.arguments, got[i].Failed, got[i].Summary, contentOf(got[i]), c.failed, c.want)
		}
	}
	w.stillFine(id)
	return got
}

// What is no regular file fails at once, and no walk goes round in circles. That a
// walk over 50,000 files is bounded too is a test of internal/tool/file.
func TestA25SpecialFilesEndNoTurn(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Symlink("/dev/zero", filepath.Join(dir, "z")),
		os.Symlink("b", filepath.Join(dir, "b")),
		os.Mkdir(filepath.Join(dir, "a"), 0o700),
		os.Symlink("..", filepath.Join(dir, "a", "loop")),
		os.WriteFile(filepath.Join(dir, "a", "text.txt"), []byte("one x\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir) // the path of a socket must be short
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	w := start(t, setup{tools: files(t, dir)})
	var all []aCall
	for _, special := range []string{"pipe", "z", "socket", "b", "a", "a/loop", "a/loop/pipe"} {
		path := fmt.Sprintf(`{"path":%q`, special)
		all = append(all,
			aCall{"Read", path + "}", true, special},
			aCall{"Edit", path + `,"old":"a","new":"b"}`, true, ""})
	}
	for _, special := range []string{"pipe", "z", "socket", "b"} {
		all = append(all, aCall{"Grep", fmt.Sprintf(`{"pattern":"x","path":%q}`, special), true, special})
	}
	all = append(all,
		aCall{"Grep", `{"pattern":"x"}`, false, "a/text.txt"},
		aCall{"Glob", `{"pattern":"**/*"}`, false, "a/text.txt"},
		aCall{"Glob", `{"pattern":"**/loop/**"}`, false, ""})
	began := time.Now()
	got := runAll(t, w, all)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the calls took %v", took)
	}
	for _, r := range got[len(got)-3:] {
		if strings.Contains(contentOf(r), "loop/") {
			t.Errorf("%s lists a path through the loop: %s", r.Tool, contentOf(r))
		}
	}
}

// Every command comes back within its time and two seconds, with what it printed, and
// says truthfully whether it ran out of time. All of them run at once. That nothing
// of their process groups is left, and what they take of memory, are tests of
// internal/tool/shell.
func TestA26EveryCommandComesBack(t *testing.T) {
	const limit = 2 * time.Second
	w := start(t, setup{
		manifest: "[worker]\ntool_timeout = \"2s\"\n",
		tools:    []tool.Tool{shell.New(shell.Config{Dir: t.TempDir(), CaptureMaxBytes: 1 << 20, MaxTimeout: limit})},
	})
	commands := []struct {
		command  string
		timedOut bool
		want     string
	}{
		{"sleep 300 & echo hi", false, "hi\n"},
		{"setsid sleep 4 & echo hi", false, "hi\n"},
		{"yes", true, "y\n"},
		{"trap '' TERM; echo hi; sleep 300", true, "hi\n"},
		{"echo hi; yes &", false, "hi\n"},
	}
	var all []aCall
	for _, c := range commands {
		all = append(all, aCall{"Bash", fmt.Sprintf(`{"command":%q}`, c.command), c.timedOut, c.want})
	}
	began := time.Now()
	got := runAll(t, w, all)
	if took := time.Since(began); took > limit+2*time.Second {
		t.Errorf("the calls took %v", took)
	}
	for i, c := range commands {
		if timedOut := strings.Contains(got[i].Summary, "timed out"); timedOut != c.timedOut {
			t.Errorf("%s: %q; timed out should be %v", c.command, got[i].Summary, c.timedOut)
		}
		if len(contentOf(got[i])) > 16384 {
			t.Errorf("%s: %d bytes are stored", c.command, len(contentOf(got[i])))
		}
	}
	if n := w.metric(`tool_calls_total{outcome="timeout",tool="Bash"}`); n != "2" {
		t.Errorf("%s timeouts are counted, want 2", n)
	}
}
