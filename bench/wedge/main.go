// Command wedge replays the accident that Loadline is made against. One listing of a
// large folder goes into a conversation with a model that takes 30,000 input tokens
// a minute: once through a small client that sends its history as it is, and dies;
// once through Loadline as it comes; and once through Loadline with the limit on
// tool output raised until the whole listing is in the history.
//
// The model is a fake one on this machine, that counts 0.56 tokens for each byte, as
// was counted then. Everything else is real, and lives in a temporary folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"loadline/internal/llm/llmtest"
)

const (
	timeout   = 5 * time.Minute
	perMinute = 30_000 // input tokens
	files     = 3050
)

// inputs are what the person says.
func inputs() []string { return []string{"List all files.", "Thank you. How are you?", "And now?"} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// teller tells a line of what happens.
type teller func(format string, args ...any)

// part is one way in which the conversation is held.
type part struct {
	title string
	play  func(context.Context, teller, *llmtest.Server) error
}

// run plays all of them, and fails when one does not end as it should.
func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tell := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) } // whoever reads may have left
	folder, err := os.MkdirTemp("", "wedge-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	bytes, err := fill(filepath.Join(folder, "project"))
	if err != nil {
		return err
	}
	binary, err := build(ctx, folder)
	if err != nil {
		return err
	}
	tell("A folder of %d files, whose listing has %d bytes. A model that takes %d input tokens a minute.", files, bytes, perMinute)
	for _, p := range parts(folder, binary) {
		tell("\n%s", p.title)
		model := newModel()
		if err := model.Start(); err != nil {
			return err
		}
		err := p.play(ctx, tell, model)
		model.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", p.title, err)
		}
	}
	return nil
}

func parts(folder, binary string) []part {
	project := filepath.Join(folder, "project")
	server := func(name, limits string) func(context.Context, teller, *llmtest.Server) error {
		return func(ctx context.Context, tell teller, model *llmtest.Server) error {
			return playServer(ctx, tell, model, binary, filepath.Join(folder, name), limits)
		}
	}
	return []part{
		{"1. A small client that sends its history as it is", func(ctx context.Context, tell teller, model *llmtest.Server) error {
			return playClient(ctx, tell, model, project)
		}},
		{"2. Loadline", server("limited", "")},
		{"3. Loadline, with room for the whole listing in its history",
			server("raised", "[worker.tool_output]\ndefault_max_bytes = 1048576\nstep_max_bytes = 1048576\n")},
	}
}

// fill makes the project: many files with long names.
func fill(folder string) (listingBytes int, err error) {
	for i := range files {
		path := filepath.Join(folder, fmt.Sprintf("packages/module-%02d/src", i%40), fmt.Sprintf("component-%04d.ts", i))
		if i < 40 {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return 0, err
			}
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return 0, err
		}
	}
	text, err := list(folder)
	return len(text), err
}

// newModel lists files when it is asked to, and says something to everything else.
func newModel() *llmtest.Server {
	model := llmtest.New()
	model.Limits.PerMinute = perMinute
	model.Otherwise = llmtest.Step{Reply: func(r llmtest.Request) llmtest.Step {
		switch last := r.Messages[len(r.Messages)-1]; {
		case last.Role == "tool":
			return llmtest.Step{Text: []string{"Here ", "you are."}}
		case strings.HasPrefix(last.Text, "List"):
			return llmtest.Step{Calls: []llmtest.Call{{Tool: "Glob", Arguments: `{"pattern":"**/*"}`}}}
		}
		return llmtest.Step{Text: []string{"I am ", "well."}}
	}}
	return model
}
