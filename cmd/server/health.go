package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	healthTimeout  = 5 * time.Second
	healthMaxBytes = 4096 // of an answer
	defaultURL     = "http://127.0.0.1:8080"
)

func newHealthcheck(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "healthcheck [URL]", Short: "Say whether a server is ready; without a URL that on " + defaultURL,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !strings.HasPrefix(args[0], "http") {
				return errors.New("healthcheck goes as: healthcheck [http://HOST:PORT]")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return checkHealth(strings.TrimSuffix(append(args, defaultURL)[0], "/"), stdout)
		},
	}
}

// checkHealth asks a server whether it is ready, for container engines whose image
// holds no other program that could.
func checkHealth(url string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, healthMaxBytes))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s %s", url, answer.Status, text)
	}
	_, err = fmt.Fprintf(stdout, "%s\n", text)
	return err
}
