// Command server is Loadline: a self-hosted server for LLM agent sessions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// version is what `server version` prints.
const version = "0.1.0"

const usage = `Loadline is a self-hosted server for LLM agent sessions.

  server [serve] [--manifest FILE]… [--listen ADDR] [--data DIR] [--model PROVIDER/NAME]
                               run the server; without a manifest on defaults:
                               this folder, read-only, and the demo model
  server manifest check FILE…  say what is wrong in manifests, layered in this order
  server manifest show [--project NAME] [FILE…]
                               print the effective manifest
  server key new NAME          make an API key, and the line for [server.keys]
  server backup [--manifest FILE]… [--data DIR] --to FOLDER
                               copy the data folder, also while a server uses it
  server healthcheck [URL]     say whether a server is ready; without a URL that on
                               http://127.0.0.1:8080
  server version               print the version

Flags of serve beat the manifest. docs/manifest.toml explains every key.
Exit codes: 0 done, 1 failed, 2 wrong usage.
`

// errUsage means that the command line was wrong; it has been said how.
var errUsage = errors.New("wrong usage")

func main() {
	switch err := command(os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// command runs one subcommand. No word at all, or a flag first, means serve.
func command(args []string, stdout, stderr io.Writer) error {
	name := "serve"
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	if len(args) > 0 && (name == "version" || name == "help") {
		return wrong(stderr, "%s takes nothing after it", name)
	}
	switch name {
	case "serve":
		return serve(args, stdout, stderr)
	case "manifest":
		return manifestCommand(args, stdout, stderr)
	case "key":
		return keyCommand(args, stdout, stderr)
	case "backup":
		return backupCommand(args, stdout, stderr)
	case "healthcheck":
		return healthCommand(args, stdout, stderr)
	case "version":
		_, err := fmt.Fprintln(stdout, "loadline", version)
		return err
	case "help":
		_, err := fmt.Fprint(stdout, usage)
		return err
	}
	return wrong(stderr, "there is no command %q", name)
}

// wrong says what was wrong with the command line, and how it goes.
func wrong(stderr io.Writer, format string, args ...any) error {
	fmt.Fprintf(stderr, "server: "+format+"\n\n%s", append(args, usage)...)
	return errUsage
}

// parse reads flags. Asking for help is no error: done says that it was given.
func parse(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) (done bool, err error) {
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, err := fmt.Fprint(stdout, usage)
		return true, err
	case err != nil:
		return true, wrong(stderr, "%v", err)
	}
	return false, nil
}
