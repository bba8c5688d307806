package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	answerTimeout  = 30 * time.Second // until an answer begins
	maxAnswerBytes = 64 << 20         // of one page
)

// remote is a running server, as its commands see it.
type remote struct{ url string }

// get asks for a path.
func (r remote) get(ctx context.Context, path string) (*http.Response, error) {
	return r.ask(ctx, http.MethodGet, path, nil)
}

// ask sends a request; a body is JSON. An answer that is no success is an error in the
// server's words.
func (r remote) ask(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.url, "/")+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if key := os.Getenv("LOADLINE_KEY"); key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: answerTimeout, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("no server listens on %s; start one, or name another with --server", r.url)
	}
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusCreated {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, refused(answer)
}

func refused(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, healthMaxBytes))
	var problem struct{ Detail string }
	if err != nil || json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		problem.Detail = oneLine(string(text), 200)
	}
	if answer.StatusCode == http.StatusUnauthorized {
		problem.Detail += "; put a key into the environment: LOADLINE_KEY"
	}
	return fmt.Errorf("%s: %s", answer.Status, problem.Detail)
}

// pages calls take for each entry of a list, page by page.
func pages(ctx context.Context, r remote, path, title string, take func(json.RawMessage) error) error {
	query := url.Values{"limit": {"200"}}
	if title != "" {
		query.Set("title", title)
	}
	for {
		answer, err := r.get(ctx, path+"?"+query.Encode())
		if err != nil {
			return err
		}
		var page struct {
			Data       []json.RawMessage
			NextCursor string `json:"next_cursor"`
		}
		err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswerBytes)).Decode(&page)
		answer.Body.Close()
		if err != nil {
			return fmt.Errorf("the answer of %s: %w", r.url, err)
		}
		for _, entry := range page.Data {
			if err := take(entry); err != nil {
				return err
			}
		}
		if page.NextCursor == "" {
			return nil
		}
		query.Set("cursor", page.NextCursor)
	}
}
