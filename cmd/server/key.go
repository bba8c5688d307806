package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"loadline/internal/manifest"
)

// keyPrefix makes a leaked key easy to find in a text.
const keyPrefix = "lk_"

// keyCommand makes an API key. Only its digest is ever stored.
func keyCommand(args []string, stdout, stderr io.Writer) error {
	if len(args) != 2 || args[0] != "new" {
		return wrong(stderr, "key goes as: key new NAME")
	}
	if err := manifest.CheckName(args[1]); err != nil {
		return fmt.Errorf("the name %q of a key %w", args[1], err)
	}
	key := keyPrefix + rand.Text()
	digest := sha256.Sum256([]byte(key))
	_, err := fmt.Fprintf(stdout, `The key, shown only now; clients send it as "Authorization: Bearer …":
%s

The line for the manifest:
[server.keys]
%q = "sha256:%s"
`, key, args[1], hex.EncodeToString(digest[:]))
	return err
}
