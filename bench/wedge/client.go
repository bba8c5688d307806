package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"loadline/internal/llm/llmtest"
)

// retries are how often the client tries again, and retryAfter how long it waits:
// less than the minute after which a limit a minute would be over, and it makes no
// difference.
const (
	retries    = 3
	retryAfter = time.Second / 4
)

var errDied = errors.New("the conversation can never go on")

// playClient is the accident: a loop of one page, as many are. It fails when the
// conversation survives.
func playClient(ctx context.Context, tell teller, model *llmtest.Server, folder string) error {
	config := openai.DefaultConfig("")
	config.BaseURL = model.URL()
	c := &conversation{client: openai.NewClientWithConfig(config), folder: folder, tell: tell}
	for _, input := range inputs() {
		tell("   > %s", input)
		c.history = append(c.history, openai.ChatCompletionMessage{Role: "user", Content: input})
		if err := c.turn(ctx); err != nil && !errors.Is(err, errDied) {
			return err
		} else if err == nil {
			return errors.New("it went on, and should not")
		}
	}
	tell("   The session is dead: its history is too large to be sent, and each turn makes it larger.")
	return nil
}

type conversation struct {
	client  *openai.Client
	folder  string
	tell    teller
	history []openai.ChatCompletionMessage
}

// turn asks and runs the tool until the model asks for no more.
func (c *conversation) turn(ctx context.Context) error {
	for {
		answer, err := c.ask(ctx)
		if err != nil {
			return err
		}
		c.history = append(c.history, answer)
		if len(answer.ToolCalls) == 0 {
			c.tell("     %s", answer.Content)
			return nil
		}
		text, err := list(c.folder)
		if err != nil {
			return err
		}
		c.tell("     Glob returns %d bytes", len(text))
		c.history = append(c.history, openai.ChatCompletionMessage{Role: "tool", ToolCallID: answer.ToolCalls[0].ID, Content: text})
	}
}

// ask sends the whole history, and again when it is refused.
func (c *conversation) ask(ctx context.Context) (answer openai.ChatCompletionMessage, err error) {
	for attempt := 1; ; attempt++ {
		answer, err = c.once(ctx)
		refused, ok := errors.AsType[*openai.APIError](err)
		if err == nil || !ok {
			return answer, err
		}
		c.tell("     attempt %d: HTTP %d: %s", attempt, refused.HTTPStatusCode, refused.Message)
		if attempt == retries {
			return answer, errDied
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(retryAfter):
		}
	}
}

func (c *conversation) once(ctx context.Context) (answer openai.ChatCompletionMessage, err error) {
	stream, err := c.client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{Model: "fake", Messages: c.history})
	if err != nil {
		return answer, err
	}
	defer func() { _ = stream.Close() }() // what was to be read has been
	answer.Role = "assistant"
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answer, nil
		}
		if err != nil {
			return answer, err
		}
		for _, choice := range chunk.Choices {
			answer.Content += choice.Delta.Content
			answer.ToolCalls = append(answer.ToolCalls, choice.Delta.ToolCalls...) // the fake sends each in one piece
		}
	}
}

// list is what a Glob without a limit on its bytes returns.
func list(folder string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(folder, path)
			b.WriteString(path + "\n")
		}
		return err
	})
	return b.String(), err
}
