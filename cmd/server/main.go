// Command server is Loadline: a self-hosted server for LLM agent sessions.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what `server version` prints.
const version = "0.1.0"

// The exit codes. Help and docs/reference.md tell them.
const (
	exitFailed = 1
	exitUsage  = 2
	exitCodes  = "\nExit codes: 0 done, 1 failed, 2 wrong usage.\n"
)

func main() {
	root, ran := newCommands(os.Stdout, os.Stderr)
	command, err := root.ExecuteC()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "server:", err)
	if *ran {
		os.Exit(exitFailed)
	}
	fmt.Fprintf(os.Stderr, "\n%s", command.UsageString())
	os.Exit(exitUsage)
}

// newCommands makes the command line. ran is true once a command has taken its
// arguments: an error before that is one of usage.
func newCommands(stdout, stderr io.Writer) (root *cobra.Command, ran *bool) {
	ran = new(bool)
	root = newServe("server", stdout, stderr)
	root.Short = "Loadline, a self-hosted server for LLM agent sessions"
	root.Long = `Loadline is a self-hosted server for LLM agent sessions.

Without a command it serves: without a manifest on defaults, which are this folder,
read-only, and the demo model. It prints the address to open in a browser.`
	root.Example = `  server                                        look around with the demo model
  server --model openai/gpt-5-mini              with a model; its key is in OPENAI_API_KEY
  server --manifest loadline.toml               with a file; docs/manifest.toml explains every key
  server sessions list                          what is in the server that runs`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) { *ran = true }
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = false
	usage := root.UsageFunc() // a template of our own would make the linker keep every method: 26 MB
	root.SetUsageFunc(func(c *cobra.Command) error {
		err := usage(c)
		fmt.Fprint(c.OutOrStderr(), exitCodes)
		return err
	})
	root.AddCommand(newServe("serve", stdout, stderr), newManifest(stdout, stderr), newKey(stdout), newSessions(stdout, stderr),
		newBackup(stdout, stderr), newHealthcheck(stdout), newVersion(stdout))
	return root, ran
}

func newVersion(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, and what it was built from", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			built := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" && len(s.Value) >= 12 {
						built = " from " + s.Value[:12]
					}
				}
			}
			_, err := fmt.Fprintf(stdout, "loadline %s%s, %s, %s/%s\n", version, built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// group is a command that only has others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	all := &cobra.Command{Use: use, Short: short, Args: func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("there is no command %q", use+" "+args[0])
		}
		return fmt.Errorf("%s needs a command", use)
	}, RunE: func(*cobra.Command, []string) error { return nil }}
	all.AddCommand(commands...)
	return all
}
