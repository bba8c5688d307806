package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	healthTimeout  = 5 * time.Second
	healthMaxBytes = 4096 // of an answer
	defaultURL     = "http://127.0.0.1:8080"
)

// healthCommand asks a server whether it is ready, for container engines whose image
// holds no other program that could.
func healthCommand(args []string, stdout, stderr io.Writer) error {
	if len(args) > 1 || len(args) == 1 && !strings.HasPrefix(args[0], "http") {
		return wrong(stderr, "healthcheck goes as: healthcheck [http://HOST:PORT]")
	}
	url := defaultURL
	if len(args) == 1 {
		url = strings.TrimSuffix(args[0], "/")
	}
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
