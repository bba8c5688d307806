package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"server": main, "server-on-full-disk": mainOnFullDisk})
}

// mainOnFullDisk cannot make a file of more than 64 KiB.
func mainOnFullDisk() {
	signal.Ignore(unix.SIGXFSZ) // a write beyond the limit is an error instead
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64 << 10, Max: unix.RLIM_INFINITY}); err != nil {
		panic(err)
	}
	main()
}

// The scripts drive the real command as a person would. Besides the usual commands
// they have those of script_test.go.
func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Values[processKey{}] = new(*process)
			docs, err := filepath.Abs("../../docs")
			if err != nil {
				return err
			}
			env.Setenv("DOCS", docs)
			bin, err := filepath.Abs("../../bin")     // where make puts promtool
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command takes a second more
			env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+bin)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":  fails,
			"start":  start,
			"await":  await,
			"signal": signalServer,
			"exits":  exits,
			"walk":   walk,
		},
	})
}
