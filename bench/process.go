package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 15 * time.Second
	pollEvery    = time.Millisecond
	// clockTick is the unit of CPU times in /proc: 100 a second on every Linux.
	clockTick = 10 * time.Millisecond
)

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// process is a program that serves on loopback.
type process struct {
	cmd     *exec.Cmd
	url     string // http://127.0.0.1:PORT, which the program printed
	logPath string
	drained chan struct{} // closed at the end of the program's output
	started time.Time
}

// start runs a program in folder and waits for the line with its address. Its
// standard error goes to a file in the folder.
func start(ctx context.Context, folder, binary string, args ...string) (*process, error) {
	logPath := filepath.Join(folder, filepath.Base(binary)+".log")
	logFile, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stderr = folder, logFile
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, logPath: logPath, drained: make(chan struct{}), started: time.Now()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan string, 1)
	go func() { // ends with the program's output; stop waits for it
		defer close(p.drained)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if url := address.FindString(lines.Text()); url != "" && len(found) == 0 {
				found <- url
			}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case p.url = <-found:
		return p, nil
	case <-p.drained:
		err = errors.New("it ended")
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(fmt.Errorf("%s printed no address: %w: %s", binary, err, p.logTail()), p.stop())
}

// ready waits until /readyz is answered with 200, and returns the time since the
// program was started.
func (p *process) ready(ctx context.Context, client *http.Client) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for poll := time.NewTicker(pollEvery); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/readyz", nil)
		if err != nil {
			return 0, err
		}
		answer, err := client.Do(req)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return time.Since(p.started), nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("not ready after %v: %s", startTimeout, p.logTail())
		case <-poll.C:
		}
	}
}

// stop ends the program, with force when it does not go by itself.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
	force := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer force.Stop()
	<-p.drained
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
		return nil // a program without a handler
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w: %s", p.cmd.Path, err, p.logTail())
	}
	return nil
}

// logTail is the end of what the program wrote to standard error.
func (p *process) logTail() string {
	const most = 2000
	text, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// rss is the program's resident memory in bytes.
func (p *process) rss() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseRSS(status)
}

func parseRSS(status []byte) (int64, error) {
	_, rest, found := bytes.Cut(status, []byte("VmRSS:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("no VmRSS in %q", status)
	}
	return kilobytes << 10, nil
}

// cpu is the CPU time that the program has used so far, in user and kernel mode.
func (p *process) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(stat)
}

func parseCPU(stat []byte) (time.Duration, error) {
	// The second field is a name in parentheses, which may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12 // after the name
	if len(fields) <= system {
		return 0, fmt.Errorf("no CPU times in %q", stat)
	}
	userTicks, errUser := strconv.ParseInt(string(fields[user]), 10, 64)
	systemTicks, errSystem := strconv.ParseInt(string(fields[system]), 10, 64)
	if err := errors.Join(errUser, errSystem); err != nil {
		return 0, fmt.Errorf("CPU times in %q: %w", stat, err)
	}
	return time.Duration(userTicks+systemTicks) * clockTick, nil
}
