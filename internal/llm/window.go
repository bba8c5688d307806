package llm

const (
	// unknownContextTokens is the window of a model that nobody has told of: what
	// most models of today have at least. One with less refuses, and is asked again
	// with less.
	unknownContextTokens = 128_000
	// roomTokens is kept for an answer whose limit is not known.
	roomTokens = 8192
)

// Window is how many tokens a model takes. The zero value is that of a model of
// which nothing is known.
type Window struct {
	ContextTokens int64 // request and answer together; 0: unknown, taken for 128,000
	OutputTokens  int64 // of one answer at most; 0: unknown, room for 8192 is kept
}

// InputTokens is how large a request may be, so that room is left for the answer:
// never more than half of the window is kept for it.
func (w Window) InputTokens() int64 {
	context, room := w.ContextTokens, w.OutputTokens
	if context <= 0 {
		context = unknownContextTokens
	}
	if room <= 0 {
		room = roomTokens
	}
	return max(1, context-min(room, context/2))
}
