package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
)

// binaryDir is where the server is built, once, when the first test wants it.
var binaryDir string

func TestMain(m *testing.M) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "loadline"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binaryDir) // what is left of it lies among temporary files
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(binaryDir, "server")
	if out, err := exec.Command("go", "build", "-o", binary, "loadline/cmd/server").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w: %s", err, out)
	}
	return binary, nil
})

// process is the real server in a process of its own, whose model is that of the
// test. Its project is a folder that may be written, and it has Bash.
type process struct {
	*client
	dir string // the project's folder
	cmd *exec.Cmd
}

// launch starts a server with more lines of manifest.
func launch(t *testing.T, manifest string, script ...llmtest.Step) *process {
	t.Helper()
	p := &process{client: newClient(t), dir: t.TempDir()}
	p.startModel(script)
	const always = `
[server]
listen = "127.0.0.1:0"
%s
[store]
dir = "data"
[model]
provider = "openai"
name = "scripted"
base_url = %q
[projects.default]
root = %q
permission = "write"
[tools.Bash]
enabled = true
`
	file := filepath.Join(t.TempDir(), "loadline.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, always, manifest, p.model.URL(), p.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(binary, "serve", "--manifest", file)
	p.boot()
	t.Cleanup(func() { p.kill() })
	return p
}

// boot starts the process and waits until it says where it listens.
func (p *process) boot() {
	p.t.Helper()
	p.cmd = exec.Command(p.cmd.Path, p.cmd.Args[1:]...)
	p.cmd.Stderr = p.t.Output()
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), " listens on ")
	if err != nil || !found {
		p.kill()
		p.t.Fatalf("the server says %q, %v", line, err)
	}
	p.url = url
}

// kill ends the process as a power cut would, and waits until it is gone.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended by itself
		_ = p.cmd.Wait()         // that it was killed is no news
	}
}

// crash kills the server and starts it again on the same data.
func (p *process) crash() {
	p.t.Helper()
	p.kill()
	p.boot()
}

// signal sends SIGTERM.
func (p *process) signal() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// exits waits until the process has ended by itself, and returns its exit code.
func (p *process) exits(within time.Duration) int {
	p.t.Helper()
	late := time.AfterFunc(within, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait() // its exit code tells
	return p.cmd.ProcessState.ExitCode()
}

// fifo makes a pipe with a name in the project's folder. A command that reads it
// holds until the test opens it, and the test holds until the command does.
func (p *process) fifo(name string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// running waits until a command reads the pipe, and lets it go on when it is closed.
func (p *process) running(fifo string) *os.File {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if ctx.Err() == context.DeadlineExceeded {
			unblock, _ := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			unblock.Close()
		}
	})()
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil || ctx.Err() != nil {
		p.t.Fatalf("no command reads the pipe: %v", err)
	}
	return f
}

// ran counts how often the commands of a test have run.
func (p *process) ran() int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "ran"))
	if err != nil {
		p.t.Error(err)
	}
	return strings.Count(string(text), "\n")
}

// bashed is an answer that runs commands.
func bashed(commands ...string) llmtest.Step {
	var arguments []string
	for _, command := range commands {
		arguments = append(arguments, fmt.Sprintf(`{"command":%q}`, command))
	}
	return callsWith("Bash", arguments...)
}
