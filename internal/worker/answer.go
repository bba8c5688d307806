package worker

import (
	"cmp"
	"slices"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	// maxToolNameBytes and the characters below are what both protocols take back
	// as the name of a tool.
	maxToolNameBytes = 64
	nameCharacters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
)

// answer is one answer of the model as it arrives: it gives numbers to blocks and
// passes their pieces on.
type answer struct {
	run      *run
	maxCalls int
	nextN    int64
	calls    int // blocks of calls seen, also those beyond maxCalls
	blocks   []*block
	order    []*block // those with a number, in order of it
}

// block is one part of the answer. Its number is 0 until its first piece that is
// not blank; blank text before that is held back and sent with it.
type block struct {
	n       int64
	kind    session.ItemKind
	tool    string
	text    strings.Builder
	sent    int  // bytes of text that deltas carried
	opaque  bool // reasoning with a signature or redacted data
	ignored bool // a call beyond the maximum
}

func (r *run) newAnswer() *answer {
	return &answer{run: r, maxCalls: r.engine.MaxCallsPerStep, nextN: r.history.next()}
}

// emit takes one delta of the provider.
func (a *answer) emit(d llm.Delta) {
	b := a.block(d)
	if b == nil || b.ignored {
		return
	}
	b.text.WriteString(session.Clean(d.Text))
	b.opaque = b.opaque || d.Opaque
	if b.n == 0 && (b.opaque || strings.TrimSpace(b.text.String()) != "") {
		a.number(b)
	}
	if b.n == 0 || b.sent == b.text.Len() {
		return
	}
	piece := b.text.String()[b.sent:]
	a.run.emitDelta(session.Delta{ItemN: b.n, Kind: b.kind, AtByte: int64(b.sent), Text: piece})
	b.sent = b.text.Len()
}

// block finds the block of a delta. A call takes its number when it appears.
func (a *answer) block(d llm.Delta) *block {
	for d.Block >= len(a.blocks) {
		a.blocks = append(a.blocks, nil)
	}
	b := a.blocks[d.Block]
	if b != nil {
		return b
	}
	b = &block{kind: d.Kind}
	a.blocks[d.Block] = b
	if d.Kind == session.KindToolCall {
		a.calls++
		b.tool = safeToolName(d.Tool)
		b.ignored = a.calls > a.maxCalls
		if !b.ignored {
			a.number(b)
		}
	}
	return b
}

func (a *answer) number(b *block) {
	b.n = a.nextN
	a.nextN++
	a.order = append(a.order, b)
}

// blank reports whether the answer says and does nothing that a person would see.
func (a *answer) blank() bool {
	for _, b := range a.order {
		if b.kind != session.KindReasoning {
			return false
		}
	}
	return true
}

// items is the whole answer, in order of number.
func (a *answer) items(whole llm.Answer) []session.Item {
	var items []session.Item
	for i, b := range a.blocks {
		if b == nil || b.n == 0 {
			continue
		}
		item := a.run.newItem(b.n, b.kind)
		switch b.kind {
		case session.KindAssistantMessage:
			item.AssistantMessage = &session.AssistantMessage{Text: b.text.String(), Incomplete: whole.Stop != llm.StopEnd}
		case session.KindReasoning:
			item.Reasoning = a.run.reasoning(b.text.String())
			if i < len(whole.Blocks) {
				item.Reasoning.Signature, item.Reasoning.Redacted = whole.Blocks[i].Signature, whole.Blocks[i].Redacted
			}
		case session.KindToolCall:
			item.ToolCall = newToolCall(b.tool, b.text.String())
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(x, y session.Item) int { return cmp.Compare(x.N, y.N) })
	return items
}

// partial is what stays of an answer that ended before its end: its text and
// reasoning, as far as they were streamed, but no call. When that leaves numbers
// that deltas carried without an item, voided says so.
func (a *answer) partial() (items []session.Item, voided bool) {
	n := a.run.history.next()
	for _, b := range a.order {
		if b.kind == session.KindToolCall {
			voided = voided || b.sent > 0
			continue
		}
		item := a.run.newItem(n, b.kind)
		if b.kind == session.KindReasoning {
			item.Reasoning = a.run.reasoning(b.text.String())
		} else {
			item.AssistantMessage = &session.AssistantMessage{Text: b.text.String(), Incomplete: true}
		}
		if strings.TrimSpace(b.text.String()) == "" {
			continue // reasoning of opaque data that never came
		}
		voided = voided || n != b.n
		items = append(items, item)
		n++
	}
	return items, voided
}

func (r *run) reasoning(text string) *session.Reasoning {
	return &session.Reasoning{Text: text, Provider: r.engine.Provider.Name(), Model: r.engine.Provider.Model()}
}

// newToolCall reads the arguments that the model wrote, or keeps them raw.
func newToolCall(tool, written string) *session.ToolCall {
	if arguments := session.CleanArguments(written); arguments != nil {
		return &session.ToolCall{Tool: tool, Arguments: arguments}
	}
	return &session.ToolCall{Tool: tool, Raw: written}
}

// safeToolName makes a name that can be stored and sent back of whatever the model
// wrote. Names of real tools come through as they are.
func safeToolName(name string) string {
	safe := strings.Map(func(c rune) rune {
		if strings.ContainsRune(nameCharacters, c) {
			return c
		}
		return '_'
	}, firstBytes(session.Clean(name), maxToolNameBytes))
	if safe == "" {
		return "unnamed"
	}
	return safe
}
