// Package shell holds the tool Bash, which runs commands.
//
// A command runs as the server's own user and is confined to nothing: what the
// other tools promise about the project folder and hidden files does not hold for
// it. It is bounded in time, in the memory that its output takes, and in what it
// leaves behind: its process group dies with it. A process that leaves the group
// (setsid) escapes that, but holds up nothing.
package shell

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"loadline/internal/session"
	"loadline/internal/tool"
)

//go:embed shell.md
var description string

// Config is what Bash needs to know.
type Config struct {
	Dir             string        // folder that commands start in
	CaptureMaxBytes int           // output collected of one command
	MaxTimeout      time.Duration // time of a command, and the most that a call may ask for
	Environ         []string      // NAME=value, of which commands get what is harmless; nil: the server's own
}

// New makes the tool Bash.
func New(c Config) tool.Tool {
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	c.Environ = harmless(c.Environ)
	shell, err := exec.LookPath("bash")
	if err != nil {
		shell = "sh"
	}
	return &bash{Config: c, shell: shell}
}

type bash struct {
	Config
	shell string
}

func (b *bash) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name:        "Bash",
		Description: strings.TrimSpace(description),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","description":"Command line to run."},` +
			`"timeout_seconds":{"type":"integer","minimum":1,"maximum":` + fmt.Sprint(b.maxSeconds()) + `,` +
			`"description":"Time after which the command is ended; default: the maximum."}},` +
			`"required":["command"],"additionalProperties":false}`),
	}
}

func (b *bash) maxSeconds() int64 { return max(1, int64(b.MaxTimeout/time.Second)) }

// Run runs one command. The command's failure is an Output with Failed set that
// holds what it printed.
func (b *bash) Run(ctx context.Context, call tool.Call) (session.Output, error) {
	args := struct {
		Command        string
		TimeoutSeconds int64 `json:"timeout_seconds"`
	}{TimeoutSeconds: math.MaxInt64}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	switch {
	case strings.TrimSpace(args.Command) == "":
		return session.Output{}, fmt.Errorf(`%w: "command" is required`, tool.ErrArguments)
	case strings.IndexByte(args.Command, 0) >= 0:
		return session.Output{}, fmt.Errorf("%w: a command has no NUL in it", tool.ErrArguments)
	case args.TimeoutSeconds < 1:
		return session.Output{}, fmt.Errorf(`%w: "timeout_seconds" is 1 or more`, tool.ErrArguments)
	}
	timeout := b.MaxTimeout
	if args.TimeoutSeconds < b.maxSeconds() {
		timeout = time.Duration(args.TimeoutSeconds) * time.Second
	}
	collected := newCapture(b.CaptureMaxBytes, call.LimitBytes, &progress{tell: call.Progress})
	cmd := exec.Command(b.shell, "-c", args.Command)
	cmd.Dir, cmd.Env = b.Dir, b.Environ
	began := time.Now()
	end, err := run(ctx, cmd, timeout, collected)
	if err != nil {
		return session.Output{}, fmt.Errorf("start %s in %s: %w", b.shell, b.Dir, err)
	}
	out := collected.output(call.LimitBytes)
	out.Failed = end.failed
	out.Summary = fmt.Sprintf("Bash: %s, %s in %s", end.text, byteCount(collected.total), time.Since(began).Round(time.Millisecond))
	return out, nil
}

// ending says how a command ended.
type ending struct {
	text   string
	failed bool
}

// endingOf tells from the cause why a command was stopped early, and from err, which
// is that of (*exec.Cmd).Wait, how it ended otherwise.
func endingOf(cause, err error) ending {
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return ending{"timed out and was ended", true}
	case cause != nil:
		return ending{"cancelled and ended", true}
	case err == nil:
		return ending{"exit status 0", false}
	}
	return ending{err.Error(), true} // "exit status 1", "signal: segmentation fault"
}

func byteCount(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return tool.Grouped(n) + " bytes"
}

// harmless keeps of an environment what commands need and what holds no secret.
func harmless(environ []string) []string {
	allowed := []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR",
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
		"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOFLAGS", "JAVA_HOME", "NVM_DIR", "VIRTUAL_ENV", "CARGO_HOME", "RUSTUP_HOME",
	}
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(allowed, name) && !strings.HasPrefix(name, "LC_")
	})
}
