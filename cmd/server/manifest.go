package main

import (
	"flag"
	"fmt"
	"io"

	"loadline/internal/manifest"
)

func manifestCommand(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return wrong(stderr, "manifest needs check or show")
	}
	switch args[0] {
	case "check":
		return manifestCheck(args[1:], stdout, stderr)
	case "show":
		return manifestShow(args[1:], stdout, stderr)
	}
	return wrong(stderr, "there is no command %q", "manifest "+args[0])
}

func manifestCheck(files []string, stdout, stderr io.Writer) error {
	if len(files) == 0 {
		return wrong(stderr, "manifest check needs a file")
	}
	m, err := manifest.Load(files...)
	if err != nil {
		return err
	}
	for _, w := range m.UnknownTools(toolNames()) {
		fmt.Fprintf(stderr, "%s:%d: %s: warning: no tool of this server is named %q\n", w.File, w.Line, w.Key, w.Tool)
	}
	_, err = fmt.Fprintln(stdout, "the manifest is valid")
	return err
}

func manifestShow(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("manifest show", flag.ContinueOnError)
	project := flags.String("project", "", "")
	if done, err := parse(flags, args, stdout, stderr); done {
		return err
	}
	m, err := manifest.Load(flags.Args()...)
	if err != nil {
		return err
	}
	text, err := m.Show(*project)
	if err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}
