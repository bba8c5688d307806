package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds each wait of a script.
const patience = 20 * time.Second

// processKey is the key of the script's server among its values, a **process.
type processKey struct{}

func processOf(ts *testscript.TestScript) *process { return *ts.Value(processKey{}).(**process) }

// process is the server that a script has started.
type process struct {
	cmd         *exec.Cmd
	stdout, log output
}

// output collects what a process prints.
type output struct {
	mu    sync.Mutex // guards the fields below
	text  bytes.Buffer
	grown chan struct{} // closed at the next Write; nil when nobody waits
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.grown != nil {
		close(o.grown)
		o.grown = nil
	}
	return o.text.Write(p)
}

// find waits until the pattern matches what was printed, and returns its groups.
func (o *output) find(pattern *regexp.Regexp) []string {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		o.mu.Lock()
		found := pattern.FindStringSubmatch(o.text.String())
		if o.grown == nil {
			o.grown = make(chan struct{})
		}
		grown := o.grown
		o.mu.Unlock()
		if found != nil {
			return found
		}
		select {
		case <-grown:
		case <-deadline.C:
			return nil
		}
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// fails CODE ARGS… runs the server, which must end at once with this exit code. The
// commands stdout and stderr then look at what it printed.
func fails(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("server", args[1:]...)
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || strconv.Itoa(exit.ExitCode()) != args[0] {
		ts.Fatalf("server %q: %v, want exit status %s", args[1:], err, args[0])
	}
}

// start ARGS… starts the server on a free port, waits until it is ready, sets $URL
// and writes what it has printed to the file greeting.
func start(ts *testscript.TestScript, _ bool, args []string) {
	p := &process{cmd: exec.Command("server", append(args, "--listen", "127.0.0.1:0")...)}
	p.cmd.Env = append(os.Environ(), "GORACE="+ts.Getenv("GORACE"))
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = ts.MkAbs("."), &p.stdout, &p.log
	ts.Check(p.cmd.Start())
	*ts.Value(processKey{}).(**process) = p
	ts.Defer(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait() // it was killed
		}
		ts.Logf("[log of the server]\n%s", p.log.String())
	})
	greeting := p.stdout.find(regexp.MustCompile(`(?s)listens on (http://127\.0\.0\.1:\d+)\n.*/turns.*\n`))
	if greeting == nil || p.log.find(regexp.MustCompile(`"message":"ready"`)) == nil {
		ts.Fatalf("the server is not ready: %s%s", p.stdout.String(), p.log.String())
	}
	ts.Setenv("URL", greeting[1])
	ts.Check(os.WriteFile(ts.MkAbs("greeting"), []byte(p.stdout.String()), 0o600))
}

// await PATTERN waits until the server's log matches.
func await(ts *testscript.TestScript, _ bool, args []string) {
	p := processOf(ts)
	if p.log.find(regexp.MustCompile(args[0])) == nil {
		ts.Fatalf("the log never matched %q: %s", args[0], p.log.String())
	}
}

// signal TERM|INT|KILL sends a signal to the server.
func signalServer(ts *testscript.TestScript, _ bool, args []string) {
	known := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	ts.Check(processOf(ts).cmd.Process.Signal(known[args[0]]))
}

// exits CODE waits until the server has ended with this exit code; -1 is the end by
// a signal. What it printed is then in the files stdout and log.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	p := processOf(ts)
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // its code says it
	if !timer.Stop() {
		ts.Fatalf("the server did not end")
	}
	if code := strconv.Itoa(p.cmd.ProcessState.ExitCode()); code != args[0] {
		ts.Fatalf("the server ended with %s, want %s: %s", code, args[0], p.log.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("stdout"), []byte(p.stdout.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("log"), []byte(p.log.String()), 0o600))
}
