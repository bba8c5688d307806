package worker

import (
	"math"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	// guessedTokensPerByte holds until a session has shown its own ratio. It is that
	// of the accident from which this limit comes: 125 KB of paths, 70k tokens.
	guessedTokensPerByte = 0.56
	// surelyTokensPerByte is what no long text of a person stays below: five bytes a
	// token. A service that counts less does not count everything.
	surelyTokensPerByte = 0.2
	// mostTokensPerByte is what no text can exceed; what does, the service has added.
	mostTokensPerByte = 1
	// showingBytes is the smallest request that shows a ratio: in smaller ones what
	// services add of their own weighs too much.
	showingBytes = 8 << 10
	// itemBytes is what an item counts for beside its texts: role, marks, ids.
	itemBytes = 32
)

// Gauge is what the requests of one session have shown of how many tokens their
// bytes are. The zero value has seen none.
type Gauge struct {
	tokensPerByte float64 // the highest that was shown; 0: none
	last          measure // of the last request that was answered
	lastTokens    int64   // of it, as the service counted them
	ceilingBytes  int64   // what no request may exceed since one was refused as too large; 0: none
}

// measure is how large a request is.
type measure struct {
	bytes int64
	// whole says that nothing was left out but what the summary with the number from
	// stands for: a later whole one with the same summary begins with all of it.
	whole bool
	from  int64
}

// NewGauge makes the gauge of a session out of steps that it has taken before.
func NewGauge(steps []session.Step) Gauge {
	var g Gauge
	for _, s := range steps {
		g.learn(measure{bytes: s.RequestBytes}, s.Usage)
	}
	g.last, g.lastTokens = measure{}, 0
	return g
}

// learn takes note of what the service counted.
func (g *Gauge) learn(m measure, counted session.Usage) {
	if counted.InputTokens <= 0 || m.bytes <= 0 {
		return
	}
	g.last, g.lastTokens = m, counted.InputTokens
	g.raise(m.bytes)
	if m.bytes >= showingBytes {
		g.tokensPerByte = max(g.tokensPerByte, min(float64(counted.InputTokens)/float64(m.bytes), mostTokensPerByte), surelyTokensPerByte)
	}
}

// raise lets requests grow again after one that was answered: a refusal may have been
// about something else, or about a moment. One above the ceiling proves it wrong.
func (g *Gauge) raise(bytes int64) {
	switch {
	case g.ceilingBytes == 0:
	case bytes > g.ceilingBytes:
		g.ceilingBytes = 2 * bytes
	default:
		g.ceilingBytes = max(g.ceilingBytes, bytes+bytes/4)
	}
}

// refuse takes note that the service has refused a request of so many bytes.
func (g *Gauge) refuse(bytes int64) { g.ceilingBytes = max(1, bytes/2) }

func (g *Gauge) ratio() float64 {
	if g.tokensPerByte > 0 {
		return g.tokensPerByte
	}
	return guessedTokensPerByte
}

// tokens projects how many tokens a request is: those of the last one and what has
// come since, where it begins with the last one.
func (g *Gauge) tokens(m measure) int64 {
	if m.whole && g.last.whole && m.from == g.last.from && m.bytes >= g.last.bytes {
		return g.lastTokens + g.tokensOf(m.bytes-g.last.bytes)
	}
	return g.tokensOf(m.bytes)
}

func (g *Gauge) tokensOf(bytes int64) int64 { return int64(math.Ceil(float64(bytes) * g.ratio())) }

// room is how many bytes of any text are surely no more than so many tokens.
func (g *Gauge) room(tokens int64) int64 {
	bytes := int64(float64(tokens) / g.ratio())
	if g.ceilingBytes > 0 {
		bytes = min(bytes, g.ceilingBytes)
	}
	return bytes
}

// fits reports whether a request is projected to be within so many tokens.
func (g *Gauge) fits(m measure, tokens int64) bool {
	return g.tokens(m) <= tokens && (g.ceilingBytes == 0 || m.bytes <= g.ceilingBytes)
}

// requestBytes is the size of a request, as far as tokens come of it.
func requestBytes(r llm.Request) int64 {
	sum := fixedBytes(r.System, r.Tools)
	for i := range r.Items {
		sum += ItemBytes(&r.Items[i])
	}
	return sum
}

func fixedBytes(system string, tools []session.ToolSpec) int64 {
	sum := int64(len(system))
	for _, spec := range tools {
		sum += int64(itemBytes + len(spec.Name) + len(spec.Description) + len(spec.Parameters))
	}
	return sum
}

// ItemBytes is what an item adds to the size of a request that holds it whole.
func ItemBytes(item *session.Item) int64 {
	size := itemBytes
	switch item.Kind {
	case session.KindUserMessage:
		size += len(item.UserMessage.Text)
	case session.KindAssistantMessage:
		size += len(item.AssistantMessage.Text)
	case session.KindReasoning:
		size += len(item.Reasoning.Text) + len(item.Reasoning.Signature) + len(item.Reasoning.Redacted)
	case session.KindToolCall:
		size += len(item.ToolCall.Tool) + len(item.ToolCall.Arguments)
	case session.KindToolResult:
		size += len(item.ToolResult.Summary)
		if item.ToolResult.Content != nil {
			size += len(*item.ToolResult.Content)
		}
	case session.KindSummary:
		size += len(item.Summary.Text)
	}
	return int64(size)
}
