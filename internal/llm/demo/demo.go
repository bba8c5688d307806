// Package demo is a model provider without a model and without a network. It
// follows a few plain requests with the real tools, so that a new user sees a
// whole turn before anything is configured, and says how to configure a model.
package demo

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	defaultPieceEvery = 20 * time.Millisecond
	bytesPerToken     = 4 // a usual figure for English; the demo counts no tokens

	// Arguments stream in pieces of argumentBytes, or fewer and longer ones when
	// they would need more than maxPieces.
	argumentBytes = 16
	maxPieces     = 32
)

// Config says how the demo speaks. The zero Config is a natural pace.
type Config struct {
	// PieceEvery is the pause before each word after the first. 0 is 20 ms, a
	// natural pace; anything negative is no pause.
	PieceEvery time.Duration
}

// Provider is the demo. It keeps no state: the same request has the same answer.
type Provider struct {
	pieceEvery time.Duration
}

var _ llm.Provider = (*Provider)(nil)

// New makes a demo.
func New(c Config) *Provider {
	if c.PieceEvery == 0 {
		c.PieceEvery = defaultPieceEvery
	}
	return &Provider{pieceEvery: c.PieceEvery}
}

// Name returns "demo".
func (p *Provider) Name() string { return "demo" }

// Model returns "demo".
func (p *Provider) Model() string { return "demo" }

// Ask answers at the demo's pace. It fails only with context.Cause(ctx).
func (p *Provider) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	blocks := reply(r)
	usage := session.Usage{InputTokens: tokens(requestBytes(r))}
	first := true
	for i, b := range blocks {
		usage.OutputTokens += tokens(len(b.Text) + len(b.Tool))
		tool := b.Tool
		for piece := range pieces(b) {
			if err := p.pause(ctx, first); err != nil {
				return llm.Answer{}, err
			}
			emit(llm.Delta{Block: i, Kind: b.Kind, Tool: tool, Text: piece})
			first, tool = false, ""
		}
	}
	return llm.Answer{Blocks: blocks, Stop: llm.StopEnd, Usage: usage}, nil
}

// pause waits until the next piece is due; the first one is due at once.
func (p *Provider) pause(ctx context.Context, first bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if first || p.pieceEvery < 0 {
		return nil
	}
	timer := time.NewTimer(p.pieceEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pieces cuts a block as a model would send it: text into words, each with the
// blanks after it, arguments into short runs of bytes. Runes stay whole.
func pieces(b llm.Block) func(yield func(string) bool) {
	cut := endOfWord
	if b.Kind == session.KindToolCall {
		size := max(argumentBytes, len(b.Text)/maxPieces+1)
		cut = func(s string) int { return endOfRun(s, size) }
	}
	return func(yield func(string) bool) {
		for rest := b.Text; rest != ""; {
			end := cut(rest)
			if !yield(rest[:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

func endOfWord(s string) int {
	blank := strings.IndexAny(s, " \n")
	if blank < 0 {
		return len(s)
	}
	return len(s) - len(strings.TrimLeft(s[blank:], " \n"))
}

func endOfRun(s string, size int) int {
	end := min(size, len(s))
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	return end
}

func tokens(textBytes int) int64 { return int64((textBytes + bytesPerToken - 1) / bytesPerToken) }

func requestBytes(r llm.Request) int {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, it := range r.Items {
		n += itemBytes(it)
	}
	return n
}

func itemBytes(it session.Item) int {
	switch it.Kind {
	case session.KindUserMessage:
		return len(it.UserMessage.Text)
	case session.KindAssistantMessage:
		return len(it.AssistantMessage.Text)
	case session.KindToolCall:
		return len(it.ToolCall.Tool) + len(it.ToolCall.Arguments)
	case session.KindToolResult:
		n := len(it.ToolResult.Summary)
		if it.ToolResult.Content != nil {
			n += len(*it.ToolResult.Content)
		}
		return n
	case session.KindSummary:
		return len(it.Summary.Text)
	}
	return 0 // reasoning is not sent back
}
