package shell

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	termGrace  = 500 * time.Millisecond // between SIGTERM and SIGKILL
	drainGrace = 250 * time.Millisecond // for output after the shell has ended
)

// run runs cmd with its output going to collected, and returns when it has ended,
// at the latest one second after ctx or the timeout. Nothing of its process group
// lives on. Its error is that of starting it.
func run(ctx context.Context, cmd *exec.Cmd, timeout time.Duration, collected io.Writer) (ending, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return ending{}, err
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = in, in, ownGroup()
	started, exited := make(chan error), make(chan struct{})
	var waited error // set when exited is closed
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(exited)
		runtime.LockOSThread() // a command dies with the thread that started it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			waited = awaitExit(cmd)
		}
	})
	err = <-started
	in.Close()
	if err != nil {
		out.Close()
		wg.Wait()
		return ending{}, err
	}
	drained := make(chan struct{})
	wg.Go(func() {
		defer close(drained)
		_, _ = io.Copy(collected, out) // ends with the last writer, or when out is closed below
	})
	cause := supervise(ctx, timeout, cmd.Process.Pid, exited, drained)
	out.Close() // whoever still holds the other end has left the group
	wg.Wait()
	return endingOf(cause, reap(cmd, waited)), nil
}

// supervise waits until the command has exited and its output is drained, and ends
// its group. It returns why the command was stopped early, nil when it was not.
func supervise(ctx context.Context, timeout time.Duration, pid int, exited, drained <-chan struct{}) (cause error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-exited:
	case <-ctx.Done():
		cause = context.Cause(ctx)
		signalGroup(pid, syscall.SIGTERM)
		waitFor(exited, termGrace)
	}
	if cause == nil {
		waitFor(drained, drainGrace)
	}
	signalGroup(pid, syscall.SIGKILL)
	<-exited
	waitFor(drained, drainGrace)
	return cause
}

func waitFor(done <-chan struct{}, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// signalGroup signals all processes of a command that has not been waited for, so
// its number cannot have gone to another one. None may be left, which is as well.
func signalGroup(pid int, signal syscall.Signal) { _ = syscall.Kill(-pid, signal) }
