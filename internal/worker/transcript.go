package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"loadline/internal/session"
)

// longestBytes is how much of one text is shown to who sums it up, and what is tried
// when that is too much.
var longestBytes = [...]int{8192, 2048, 512, 160} //nolint:gochecknoglobals // a table, never changed

// render writes as many items as fit into room bytes, for a model to sum up, and
// returns how many those are, at least one. What is long is shown by its ends; the
// more so, the more items there are for the calls that are left.
func render(items []session.Item, room, calls int) (piece string, n int) {
	longest := 0
	for _, longest = range longestBytes {
		longest = min(longest, room/4)
		sum := 0
		for i := range items {
			sum += len(line(&items[i], longest))
		}
		if sum <= room*calls*3/4 { // a piece is not filled to its last byte
			break
		}
	}
	var b strings.Builder
	for n = range items {
		text := line(&items[n], longest)
		if n > 0 && b.Len()+len(text) > room {
			return b.String(), n
		}
		b.WriteString(text)
	}
	return b.String(), len(items)
}

// line is one item as a transcript shows it. It is empty for what a later reader
// does not need.
func line(item *session.Item, longest int) string {
	switch item.Kind {
	case session.KindUserMessage:
		return "person: " + ends(item.UserMessage.Text, longest) + "\n"
	case session.KindAssistantMessage:
		return "assistant: " + ends(item.AssistantMessage.Text, longest) + "\n"
	case session.KindToolCall:
		return "call of " + item.ToolCall.Tool + ": " + ends(string(item.ToolCall.Arguments), longest/4) + "\n"
	case session.KindToolResult:
		text := "result of " + item.ToolResult.Tool + ": " + ends(item.ToolResult.Summary, longest/4) + "\n"
		if c := item.ToolResult.Content; c != nil && !blank(*c) {
			text += ends(*c, longest/4) + "\n"
		}
		return text
	case session.KindSummary:
		return "note: " + ends(item.Summary.Text, longest) + "\n"
	}
	return ""
}

// ends is a text, or its beginning and its end with the number of bytes between
// them: at most about most bytes.
func ends(s string, most int) string {
	const note = " [… %d bytes …] "
	if len(s) <= most {
		return s
	}
	half := max(0, most-len(note)-8) / 2
	head, tail := firstBytes(s, half), strings.ToValidUTF8(s[len(s)-half:], "")
	return head + fmt.Sprintf(note, len(s)-len(head)-len(tail)) + tail
}

// skeleton is a summary that no model has made: of an earlier summary and the items
// that follow it, at most maxBytes, which are at least leastSummaryBytes.
func skeleton(earlier string, items []session.Item, maxBytes int) string {
	b := bones{longest: min(320, maxBytes/6)}
	if len(items) > 0 && items[0].Summary != nil && items[0].Summary.ToN > 0 {
		earlier, items = items[0].Summary.Text, items[1:]
	}
	head := fmt.Sprintf("[%d items of the conversation are left out here. What follows was shortened by rule.]\n", len(items))
	if earlier != "" {
		head += ends(earlier, maxBytes/3) + "\n"
	}
	tools := ends(b.count(items), maxBytes/6)
	left := maxBytes - len(head) - len(tools) - 64
	first, next := b.take(items, left/3)
	last := b.takeBack(items[next:], left-len(first))
	if skipped := b.messages - b.shown; skipped > 0 {
		first += fmt.Sprintf("[… %d messages …]\n", skipped)
	}
	return head + first + last + tools
}

// bones collects what a skeleton shows: the ends of messages, and which tools were
// called how often.
type bones struct {
	longest         int // bytes of a message
	messages, shown int
}

func (b *bones) line(item *session.Item) string {
	if item.Kind != session.KindUserMessage && item.Kind != session.KindAssistantMessage {
		return ""
	}
	return line(item, b.longest)
}

func (b *bones) count(items []session.Item) string {
	calls := map[string]int{}
	for i := range items {
		switch items[i].Kind {
		case session.KindToolCall:
			calls[items[i].ToolCall.Tool]++
		case session.KindUserMessage, session.KindAssistantMessage:
			b.messages++
		}
	}
	var counts []string
	for _, tool := range slices.Sorted(maps.Keys(calls)) {
		counts = append(counts, fmt.Sprintf("%s %d", tool, calls[tool]))
	}
	if len(counts) == 0 {
		return ""
	}
	return "calls of tools: " + strings.Join(counts, ", ") + "\n"
}

// take shows the first messages, as far as room bytes go, and says where it stopped.
func (b *bones) take(items []session.Item, room int) (text string, next int) {
	for next = range items {
		l := b.line(&items[next])
		if len(text)+len(l) > room {
			return text, next
		}
		if l != "" {
			text += l
			b.shown++
		}
	}
	return text, len(items)
}

// takeBack shows the last ones.
func (b *bones) takeBack(items []session.Item, room int) string {
	var lines []string
	for i := len(items) - 1; i >= 0; i-- {
		l := b.line(&items[i])
		if room -= len(l); room < 0 {
			break
		}
		if l != "" {
			lines = append(lines, l)
			b.shown++
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "")
}
