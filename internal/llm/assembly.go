package llm

import (
	"unicode/utf8"

	"loadline/internal/session"
)

// blockBytes is what a block counts for beside its text, so that empty ones are
// bounded too.
const blockBytes = 256

// Assembly puts an answer together and passes its pieces on. The zero value with
// Emit set is ready. It is for one goroutine.
type Assembly struct {
	Emit   func(Delta)
	blocks []Block
	texts  [][]byte // of the blocks, as far as they have come
	bytes  int
}

// Open starts a block and returns its index. Tool is the name of a tool_call,
// whose start is a delta of its own.
func (a *Assembly) Open(kind session.ItemKind, tool string) int {
	tool = session.Clean(tool)
	a.blocks = append(a.blocks, Block{Kind: kind, Tool: tool})
	a.texts = append(a.texts, nil)
	a.bytes += blockBytes + len(tool)
	if kind == session.KindToolCall {
		a.Emit(Delta{Block: len(a.blocks) - 1, Kind: kind, Tool: tool})
	}
	return len(a.blocks) - 1
}

// Add appends a piece to a block. What is beyond MaxAnswerBytes is dropped.
func (a *Assembly) Add(block int, text string) {
	text = session.Clean(text)
	if room := max(0, MaxAnswerBytes-a.bytes); len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
		a.bytes = MaxAnswerBytes
	}
	if text == "" {
		return
	}
	a.bytes += len(text)
	a.texts[block] = append(a.texts[block], text...)
	a.Emit(Delta{Block: block, Kind: a.blocks[block].Kind, Text: text})
}

// Full reports whether the answer has reached MaxAnswerBytes: it ends here, with
// StopLength.
func (a *Assembly) Full() bool { return a.bytes >= MaxAnswerBytes }

// Last returns the index of the last block when it is of this kind.
func (a *Assembly) Last(kind session.ItemKind) (int, bool) {
	last := len(a.blocks) - 1
	return last, last >= 0 && a.blocks[last].Kind == kind
}

// Block gives access to a block's fields other than its text.
func (a *Assembly) Block(i int) *Block { return &a.blocks[i] }

// Answer returns what came so far, put together.
func (a *Assembly) Answer(stop Stop, usage session.Usage) Answer {
	for i := range a.blocks {
		a.blocks[i].Text = string(a.texts[i])
	}
	return Answer{Blocks: a.blocks, Stop: stop, Usage: usage}
}
