package transfer

import (
	"encoding/json"
	"fmt"
	"strings"

	"loadline/internal/session"
	"loadline/internal/worker"
)

const (
	lostSummary = "result lost"
	lostContent = "The history was imported and has no result for this call. Whether it ran is unknown."
	orphanHead  = "[A result of the tool %s, whose call the imported history does not have.]\n\n%s"
)

// builder makes items of what is read. It alone guarantees what a history must have.
type builder struct {
	out   *Import
	limit Limit

	message int             // whose pieces the open answer is of
	calls   []call          // of the open answer
	numbers map[int64]int64 // of items of the own form: new ones by old ones
}

// call is one call of an answer that is not closed yet.
type call struct {
	index  int
	id     string // that its result names
	n      int64
	tool   string
	result *result
}

// result is what is read of a result.
type result struct {
	index int
	n     int64 // that it had; 0 for none
	id    string
	tool  string
	out   session.Output
}

func (b *builder) repair(index int, code session.RepairCode, format string, args ...any) {
	b.out.RepairsTotal++
	if len(b.out.Repairs) < maxRepairs {
		b.out.Repairs = append(b.out.Repairs, session.Repair{Index: index, Code: code, Detail: session.Clean(fmt.Sprintf(format, args...))})
	}
}

func (b *builder) add(item session.Item) int64 {
	item.N = int64(len(b.out.Items) + 1)
	b.out.Items = append(b.out.Items, item)
	return item.N
}

// number notes which number an item has now that had another one.
func (b *builder) number(old, n int64) {
	if old > 0 && b.numbers != nil {
		b.numbers[old] = n
	}
}

// closeIfAnswered closes the open answer when a result of it is there.
func (b *builder) closeIfAnswered() {
	for _, c := range b.calls {
		if c.result != nil {
			b.closeAnswer()
			return
		}
	}
}

// user adds what a person said.
func (b *builder) user(index int, text string) {
	if text = session.Clean(text); isBlank(text) {
		b.repair(index, session.RepairBlankText, "a message of the user without text was dropped")
		return
	}
	b.closeAnswer()
	b.add(session.Item{Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: text}})
}

// summary adds a line that nobody of the two has said.
func (b *builder) summary(index int, s session.Summary) {
	if s.Text = session.Clean(s.Text); isBlank(s.Text) {
		b.repair(index, session.RepairBlankText, "a summary without text was dropped")
		return
	}
	b.closeAnswer()
	b.add(session.Item{Kind: session.KindSummary, Summary: &s})
}

// assistant adds what the model said.
func (b *builder) assistant(index int, text string, incomplete bool) {
	if text = session.Clean(text); isBlank(text) {
		b.repair(index, session.RepairBlankText, "a message of the model without text was dropped")
		return
	}
	b.newAnswer(index)
	b.add(session.Item{Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: text, Incomplete: incomplete}})
}

// reasoning adds what the model thought; it goes back to the same model alone.
func (b *builder) reasoning(index int, r session.Reasoning) {
	r.Text, r.Signature, r.Redacted = session.Clean(r.Text), session.Clean(r.Signature), session.Clean(r.Redacted)
	r.Provider, r.Model = session.Clean(r.Provider), session.Clean(r.Model)
	if isBlank(r.Text) && r.Signature == "" && r.Redacted == "" {
		b.repair(index, session.RepairBlankText, "reasoning without text was dropped")
		return
	}
	b.newAnswer(index)
	b.add(session.Item{Kind: session.KindReasoning, Reasoning: &r})
}

// newAnswer closes the answer before, when the message with this index is another.
func (b *builder) newAnswer(index int) {
	if len(b.calls) > 0 && index != b.message {
		b.closeAnswer()
	}
	b.message = index
}

// call adds a call. Its result may come until the answer is closed.
func (b *builder) call(index int, id, tool, arguments string) {
	b.newAnswer(index)
	named := toolName(tool)
	if named != tool {
		b.repair(index, session.RepairToolRenamed, "the tool %.100q is called %q here: names have 1 to 64 letters, digits, _ and -", tool, named)
	}
	made := session.ToolCall{Tool: named, Arguments: session.CleanArguments(arguments)}
	if made.Arguments == nil {
		made.Raw = session.Clean(arguments)
		b.repair(index, session.RepairRawArguments, "the arguments of a call of %s are no JSON object; they are kept but sent to no model", named)
	}
	n := b.add(session.Item{Kind: session.KindToolCall, ToolCall: &made})
	b.calls = append(b.calls, call{index: index, id: id, n: n, tool: named})
}

// result gives a result to its call: the first one with its id that has none. One
// without a call becomes text.
func (b *builder) result(r result) {
	for i := range b.calls {
		c := &b.calls[i]
		if c.result != nil || c.id != r.id {
			continue
		}
		c.result = &r
		if i > 0 && b.calls[i-1].result == nil {
			b.repair(r.index, session.RepairResultMoved, "the result of call %.100q came before that of a call which was first", r.id)
		}
		return
	}
	tool := r.tool
	if tool == "" {
		tool = "unknown"
	}
	b.closeAnswer()
	capped, _ := worker.Settle(0, tool, r.out, b.limit(tool, 1), nil)
	text := capped.Summary
	if capped.Content != nil && !isBlank(*capped.Content) {
		text = *capped.Content
	}
	b.repair(r.index, session.RepairOrphanResult, "a result for %.100q has no call before it; it is kept as text", r.id)
	b.number(r.n, b.add(session.Item{Kind: session.KindSummary, Summary: &session.Summary{Text: fmt.Sprintf(orphanHead, tool, text)}}))
}

// closeAnswer writes the results of the open answer, in call order, each capped like
// that of a tool.
func (b *builder) closeAnswer() {
	calls := b.calls
	b.calls = nil
	for _, c := range calls {
		out := session.Output{Summary: c.tool + ": " + lostSummary, Content: session.Text(lostContent), Failed: true}
		index := c.index
		if c.result != nil {
			out, index = c.result.out, c.result.index
		} else {
			b.repair(index, session.RepairOrphanCall, "a call of %s has no result; it got one that says so", c.tool)
		}
		capped, _ := worker.Settle(c.n, c.tool, out, b.limit(c.tool, len(calls)), nil)
		if t := capped.Truncated; t != nil && t.DroppedBytes > out.Unseen {
			b.repair(index, session.RepairResultTruncated, "a result of %s with %d bytes was cut to %d", c.tool, t.OriginalBytes, t.KeptBytes)
		}
		n := b.add(session.Item{Kind: session.KindToolResult, ToolResult: &capped})
		if c.result != nil {
			b.number(c.result.n, n)
		}
	}
}

// plainOutput is a result of which only the text is known.
func plainOutput(tool, text string, failed bool) session.Output {
	how := "imported result"
	if failed {
		how = "imported error"
	}
	if tool != "" {
		how = tool + ": " + how
	}
	out := session.Output{Summary: how, Failed: failed}
	if text != "" {
		out.Content = &text
	}
	return out
}

// toolName is a name that services take: what they do not becomes _.
func toolName(name string) string {
	kept := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, name)
	if kept == "" {
		return "unknown"
	}
	return kept[:min(len(kept), 64)]
}

// argumentsOf is the arguments of a call, which come as an object or as the text of
// one.
func argumentsOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
