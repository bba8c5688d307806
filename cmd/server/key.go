package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"loadline/internal/manifest"
)

// keyPrefix makes a leaked key easy to find in a text.
const keyPrefix = "lk_"

func newKey(stdout io.Writer) *cobra.Command {
	return group("key", "Make API keys: new", &cobra.Command{
		Use: "new NAME", Short: "Make an API key, and the line for [server.keys]",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("key goes as: key new NAME")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return makeKey(args[0], stdout) },
	})
}

// makeKey makes an API key. Only its digest is ever stored.
func makeKey(name string, stdout io.Writer) error {
	if err := manifest.CheckName(name); err != nil {
		return fmt.Errorf("the name %q of a key %w", name, err)
	}
	key := keyPrefix + rand.Text()
	digest := sha256.Sum256([]byte(key))
	_, err := fmt.Fprintf(stdout, `The key, shown only now; clients send it as "Authorization: Bearer …":
%s

The line for the manifest:
[server.keys]
%q = "sha256:%s"
`, key, name, hex.EncodeToString(digest[:]))
	return err
}
