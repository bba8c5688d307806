package shell

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup starts a command in a process group of its own, and has it killed when
// the thread that started it ends, as it does with the server.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until the command has exited, and leaves its number taken: its
// group can be signalled until reap.
func awaitExit(cmd *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// reap tells how the command exited. Its error is that of (*exec.Cmd).Wait.
func reap(cmd *exec.Cmd, _ error) error { return cmd.Wait() }
