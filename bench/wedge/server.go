package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

const stopTimeout = 15 * time.Second

func build(ctx context.Context, folder string) (binary string, err error) {
	binary = filepath.Join(folder, "server")
	text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "loadline/cmd/server").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the server: %w: %s", err, text)
	}
	return binary, err
}

// playServer holds the same conversation through Loadline. It fails when a turn does
// not complete, or when the model was asked for more than it takes.
func playServer(ctx context.Context, tell teller, model *llmtest.Server, binary, folder, limits string) (err error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	manifest := fmt.Sprintf("%s[server]\nlisten = \"127.0.0.1:0\"\n[model]\nprovider = \"openai\"\nname = \"fake\"\nbase_url = %q\ninput_tokens_per_minute = %d\n"+
		"[projects.default]\nroot = \"../project\"\n", limits, model.URL(), perMinute)
	if err := os.WriteFile(filepath.Join(folder, "loadline.toml"), []byte(manifest), 0o600); err != nil {
		return err
	}
	url, stop, err := serve(ctx, folder, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var s session.Session
	if err := post(ctx, url+"/v1/sessions", struct{}{}, func(r io.Reader) error { return json.NewDecoder(r).Decode(&s) }); err != nil {
		return err
	}
	for _, input := range inputs() {
		tell("   > %s", input)
		turn := fmt.Sprintf("%s/v1/sessions/%s/turns", url, s.ID)
		if err := post(ctx, turn, map[string]string{"input": input}, func(r io.Reader) error { return follow(r, tell) }); err != nil {
			return err
		}
	}
	for _, r := range model.Requests() {
		if tokens := r.Tokens(0); tokens > perMinute {
			return fmt.Errorf("a request of %d tokens was sent", tokens)
		}
	}
	if limited := model.Limited(); limited > 0 {
		return fmt.Errorf("%d requests came too early", limited)
	}
	tell("   The session lives.")
	return nil
}

// serve starts the server and reads its address off its output.
func serve(ctx context.Context, folder, binary string) (url string, stop func() error, err error) {
	cmd := exec.CommandContext(ctx, binary, "--manifest", "loadline.toml")
	cmd.Dir, cmd.WaitDelay = folder, stopTimeout
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	lines := bufio.NewReader(printed)
	line, err := lines.ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), " listens on ")
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
		_, _ = io.Copy(io.Discard, lines)       // until it has
		return cmd.Wait()
	}
	if err != nil || !found {
		return "", nil, errors.Join(fmt.Errorf("the server printed %q in place of its address: %w", line, err), stop())
	}
	return url, stop, nil
}

// post sends JSON and has the answer read.
func post(ctx context.Context, url string, body any, read func(io.Reader) error) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(url, "/turns") {
		request.Header.Set("Accept", "text/event-stream")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return errors.Join(fmt.Errorf("POST %s: %s: %s", url, answer.Status, text), err)
	}
	return read(answer.Body)
}

// follow tells what happens in a turn, and fails unless it completes.
func follow(stream io.Reader, tell teller) error {
	for lines := bufio.NewReader(stream); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the stream ended before the turn: %w", err)
		}
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData {
			continue
		}
		var ev session.Event
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return err
		}
		if text := inWords(&ev); text != "" {
			tell("     %s", text)
		}
		switch {
		case ev.Type == session.EventTurnCompleted:
			return nil
		case ev.Type.Terminal():
			return fmt.Errorf("%s: %+v", ev.Type, ev.Turn.Error)
		}
	}
}

// inWords is one event for a person; empty for one that says little.
func inWords(ev *session.Event) string {
	switch {
	case ev.Wait != nil:
		return fmt.Sprintf("waits %.1f s for its turn", float64(ev.Wait.WaitMS)/1000)
	case ev.Step != nil:
		return fmt.Sprintf("request of %d tokens", ev.Step.Usage.InputTokens)
	case ev.Retry != nil:
		return "refused, asked again with less: " + ev.Retry.Reason
	case ev.Item == nil:
		return ""
	}
	switch r := ev.Item.ToolResult; {
	case r != nil && r.Truncated != nil:
		return fmt.Sprintf("Glob returns %d bytes, %d go into the history", r.Truncated.OriginalBytes, len(*r.Content))
	case r != nil && r.Content != nil:
		return fmt.Sprintf("Glob returns %d bytes, all go into the history", len(*r.Content))
	case ev.Item.AssistantMessage != nil:
		return ev.Item.AssistantMessage.Text
	}
	return ""
}
