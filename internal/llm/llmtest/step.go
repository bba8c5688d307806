package llmtest

import (
	"net/http"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// Step is one answer of the model. The zero Step is an answer without any text.
type Step struct {
	Reasoning []string // pieces of one block of reasoning
	Signature string   // of the reasoning; sent where the protocol has one
	Redacted  string   // a block of redacted reasoning; sent where the protocol has one
	Text      []string // pieces of one block of text
	Calls     []Call
	// Interleave sends the pieces of the calls in turn, where the protocol can.
	Interleave bool
	Stop       llm.Stop // empty: llm.StopEnd
	Usage      session.Usage

	// Reply makes the step out of the request; nothing else of this one counts.
	Reply func(Request) Step

	Status int         // an error answer with this status instead; 0: none
	Header http.Header // added to the answer, whatever its status
	Body   string      // of an error answer: the body, or, unless it is JSON, the message in it

	Raw         string      // the whole body of a streamed answer, in place of all above
	StreamError StreamError // sent in the stream in place of its end

	// CutAfterBytes ends the body cleanly after so many bytes of it; negative:
	// before the first; 0: not at all. Abort breaks the connection there instead.
	CutAfterBytes int
	Abort         bool
	Endless       bool          // repeats the pieces of Text until the client leaves
	WriteBytes    int           // sends the body in writes of so many bytes; 0: as it is
	Delay         time.Duration // before each piece
	// Gate holds the answer, until it is closed or gives a value, after GateAfter
	// pieces; 0: before the headers.
	Gate      <-chan struct{}
	GateAfter int
	// Hang leaves the connection open after the body, until the client leaves.
	Hang bool
}

// Call is one tool call of an answer.
type Call struct {
	Tool      string
	Arguments string // as the model wrote them; may be anything
	Pieces    int    // in how many pieces they come; 0 and 1: with the name, where the protocol can
	NoID      bool   // leaves out the id, as some servers do
	NoIndex   bool   // leaves out the index, as some servers do
}

// StreamError is an error in mid-stream. The zero value is none.
type StreamError struct {
	Type    string // for example overloaded_error
	Message string
}

// Request is what the model was asked.
type Request struct {
	Header http.Header
	Body   []byte // as it came

	// The neutral form, as far as the body could be read.
	Model    string
	System   string
	Tools    []string // names
	Messages []Message

	face face
}

// Message is one message, in the same form for both protocols: consecutive results
// are one message of role tool.
type Message struct {
	Role      string // user, assistant, tool
	Text      string
	Reasoning string
	Calls     []CallSeen
	Results   []ResultSeen
}

// CallSeen is a call in a request.
type CallSeen struct{ ID, Tool, Arguments string }

// ResultSeen is a result in a request. Failed is false where the protocol cannot
// say it.
type ResultSeen struct {
	ID, Text string
	Failed   bool
}

// split cuts s into n pieces of whole runes; less when it is too short.
func split(s string, n int) []string {
	if n <= 1 || s == "" {
		return []string{s}
	}
	runes := []rune(s)
	size := max(1, (len(runes)+n-1)/n)
	var pieces []string
	for len(runes) > size {
		pieces, runes = append(pieces, string(runes[:size])), runes[size:]
	}
	return append(pieces, string(runes))
}
