//go:build unix && !linux

package shell

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits until the command has exited. Its number may be given to another
// process at once, which no system does while it has others to give.
func awaitExit(cmd *exec.Cmd) error { return cmd.Wait() }

// reap tells how the command exited, which awaitExit has found out.
func reap(_ *exec.Cmd, waited error) error { return waited }
