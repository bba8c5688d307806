package transfer

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"loadline/internal/session"
)

// version is that of the own form.
const version = 1

const (
	// maxUnseen bounds what an item may claim to have lost.
	maxUnseen = 1 << 50
	// maxHeadBytes bounds a title, and metadata of at most maxMetadata names.
	maxHeadBytes = 16 << 10
	maxMetadata  = 64
)

// Write writes a session in its own form. It asks for the items in pages, those
// with a number above the given one, until a page is empty, and holds one page at a
// time.
func Write(w io.Writer, s session.Session, page func(after int64) ([]session.Item, error)) error {
	head, err := session.EncodeJSON(s)
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.ID, err)
	}
	if _, err := fmt.Fprintf(w, "{\"format\":%q,\"version\":%d,\n\"session\":%s,\n\"items\":[", FormatLoadline, version, head); err != nil {
		return err
	}
	for after, comma := int64(0), ""; ; {
		items, err := page(after)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			break
		}
		for i := range items {
			line, err := session.EncodeJSON(&items[i])
			if err != nil {
				return fmt.Errorf("encode item %d: %w", items[i].N, err)
			}
			if _, err := fmt.Fprintf(w, "%s\n%s", comma, line); err != nil {
				return err
			}
			comma = ","
		}
		after = items[len(items)-1].N
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

// readOwn reads what Write has written, and repairs what somebody has changed.
func (b *builder) readOwn(d document) error {
	var v int
	if raw, ok := d.head["version"]; ok && (json.Unmarshal(raw, &v) != nil || v != version) {
		return unreadable("version %s of the form is not known here: %d is", raw, version)
	}
	var s session.Session
	if json.Unmarshal(d.head["session"], &s) == nil {
		b.head(s)
	}
	b.numbers = map[int64]int64{}
	answer := -1 // where the answer began that is read now
	for i, raw := range d.messages {
		var item session.Item
		if err := json.Unmarshal(raw, &item); err != nil {
			b.repair(i, session.RepairMessageDropped, "the item cannot be read: %v", err)
			continue
		}
		if ofAnswer(item) && answer < 0 {
			answer = i
		} else if !ofAnswer(item) {
			answer = -1
		}
		b.item(i, answer, &item)
	}
	return nil
}

// head takes title and metadata over, within the bounds that every session has.
func (b *builder) head(s session.Session) {
	if b.out.Title = session.Clean(s.Title); len(b.out.Title) > maxHeadBytes {
		b.out.Title = ""
		b.repair(0, session.RepairHeadDropped, "the title of %d bytes was dropped: %d are allowed", len(s.Title), maxHeadBytes)
	}
	sizeBytes := 0
	for name, value := range s.Metadata {
		name, value = session.Clean(name), session.Clean(value)
		b.out.Metadata[name] = value
		sizeBytes += len(name) + len(value)
	}
	if _, unnamed := b.out.Metadata[""]; unnamed || sizeBytes > maxHeadBytes || len(b.out.Metadata) > maxMetadata {
		clear(b.out.Metadata)
		b.repair(0, session.RepairHeadDropped, "metadata of %d names and %d bytes were dropped: %d and %d are allowed", len(s.Metadata), sizeBytes, maxMetadata, maxHeadBytes)
	}
}

func ofAnswer(item session.Item) bool {
	return item.AssistantMessage != nil || item.Reasoning != nil || item.ToolCall != nil
}

func (b *builder) item(i, answer int, item *session.Item) {
	if item.ToolResult != nil {
		b.ownResult(i, item)
		return
	}
	if !ofAnswer(*item) {
		b.closeAnswer()
	}
	before := len(b.out.Items)
	b.plainItem(i, answer, item)
	if n := len(b.out.Items); n > before {
		b.number(item.N, int64(n))
	}
}

func (b *builder) plainItem(i, answer int, item *session.Item) {
	switch {
	case item.UserMessage != nil:
		b.user(i, item.UserMessage.Text)
	case item.AssistantMessage != nil:
		b.assistant(answer, item.AssistantMessage.Text, item.AssistantMessage.Incomplete)
	case item.Reasoning != nil:
		b.reasoning(answer, *item.Reasoning)
	case item.ToolCall != nil:
		arguments := string(item.ToolCall.Arguments)
		if arguments == "" {
			arguments = item.ToolCall.Raw
		}
		b.call(answer, strconv.FormatInt(item.N, 10), item.ToolCall.Tool, arguments)
	case item.Summary != nil:
		b.ownSummary(i, *item.Summary)
	default:
		b.repair(i, session.RepairMessageDropped, "an item of kind %.100q was dropped", item.Kind)
	}
}

// ownResult reads a result whose cut is known: what it lost stays lost.
func (b *builder) ownResult(i int, item *session.Item) {
	r := item.ToolResult
	out := session.Output{Summary: r.Summary, Content: r.Content, Failed: r.Failed}
	t := r.Truncated
	if t != nil && r.Content != nil && t.KeptBytes >= 0 && t.KeptBytes <= int64(len(*r.Content)) && t.DroppedBytes > 0 && t.DroppedBytes < maxUnseen {
		out.Content, out.Unseen = session.Text((*r.Content)[:t.KeptBytes]), t.DroppedBytes
	}
	if r.KeptOutput != nil && r.KeptOutput.Bytes > 0 {
		b.repair(i, session.RepairOutputDropped, "the whole output of %d bytes stayed behind", r.KeptOutput.Bytes)
	}
	b.result(result{index: i, n: item.N, id: strconv.FormatInt(r.CallN, 10), tool: toolOf(r.Tool), out: out})
}

// ownSummary reads a summary. One whose range is not there any more stands for
// nothing.
func (b *builder) ownSummary(i int, s session.Summary) {
	from, to := b.numbers[s.FromN], b.numbers[s.ToN]
	if s.FromN, s.ToN = from, to; from == 0 || to < from {
		s.FromN, s.ToN = 0, 0
	}
	b.summary(i, s)
}
