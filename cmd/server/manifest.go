package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"loadline/internal/manifest"
)

func newManifest(stdout, stderr io.Writer) *cobra.Command {
	check := &cobra.Command{
		Use: "check FILE…", Short: "Say what is wrong in manifests, layered in this order",
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				return errors.New("manifest check needs a file")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, files []string) error { return manifestCheck(files, stdout, stderr) },
	}
	project := ""
	show := &cobra.Command{
		Use: "show [FILE…]", Short: "Print the effective manifest, secrets masked",
		RunE: func(_ *cobra.Command, files []string) error { return manifestShow(project, files, stdout) },
	}
	show.Flags().StringVar(&project, "project", "", "`NAME` of the project whose layer counts")
	return group("manifest", "Look at manifests: check, show", check, show)
}

func manifestCheck(files []string, stdout, stderr io.Writer) error {
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

func manifestShow(project string, files []string, stdout io.Writer) error {
	m, err := manifest.Load(files...)
	if err != nil {
		return err
	}
	text, err := m.Show(project)
	if err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}
