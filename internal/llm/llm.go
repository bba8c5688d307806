// Package llm says what a model provider must do: one neutral request, a stream of
// deltas, one answer, errors in classes. The providers live in folders below.
package llm

import (
	"context"

	"loadline/internal/session"
)

// Provider asks one model of one service. It is safe for concurrent use.
type Provider interface {
	// Name is the provider's name in manifests, items and metrics: openai,
	// anthropic, demo. Model is the model's name at the provider.
	Name() string
	Model() string
	// Ask sends one request and reads the answer to its end. Each piece goes to
	// emit as it arrives, from one goroutine, before Ask returns. The answer holds
	// all pieces again, put together. Ask does not retry. It fails with an *Error,
	// or with context.Cause(ctx) when ctx ended first. A stream that ends without
	// its terminal signal is an error of ClassRetry.
	Ask(ctx context.Context, r Request, emit func(Delta)) (Answer, error)
}

// Request is what a model is asked, in neutral form. Providers only translate:
// whoever builds it guarantees that each tool call has exactly one result, results
// follow the calls of their answer in call order, and no text is blank.
type Request struct {
	System string             // instructions; may be empty
	Tools  []session.ToolSpec // may be empty
	Items  []session.Item     // the history, ending with a user message or a tool result
}

// Delta is a piece of the answer.
type Delta struct {
	Block int              // index of the block in Answer.Blocks
	Kind  session.ItemKind // assistant_message, reasoning or tool_call
	Tool  string           // tool_call: the name, with the first delta of the block
	Text  string           // valid UTF-8, may be empty; for a tool_call a piece of its arguments
	// Opaque says that the reasoning block has data that is no text: a signature,
	// or redacted data. It comes before the first delta of the next block.
	Opaque bool
}

// Answer is a whole answer of a model.
type Answer struct {
	Blocks []Block // in order of their first delta
	Stop   Stop
	Usage  session.Usage
}

// Block is one part of an answer.
type Block struct {
	Kind      session.ItemKind // assistant_message, reasoning or tool_call
	Text      string           // of a tool_call: its arguments as the model wrote them
	Tool      string           // tool_call
	Signature string           // reasoning
	Redacted  string           // reasoning
}

// Stop is why a model stopped.
type Stop string

// The reasons to stop.
const (
	StopEnd     Stop = "end"     // it was done, or waits for the results of its calls
	StopLength  Stop = "length"  // the output limit cut the answer
	StopRefusal Stop = "refusal" // it, or a filter, declined to go on
)

// Bounds on what a provider takes from outside.
const (
	// MaxLineBytes bounds one line of a stream.
	MaxLineBytes = 8 << 20
	// MaxAnswerBytes bounds the text of one answer, all blocks together. An answer
	// that reaches it ends there with StopLength.
	MaxAnswerBytes = 8 << 20
	// MaxErrorBytes bounds the body of an error answer that is read.
	MaxErrorBytes = 64 << 10
)
