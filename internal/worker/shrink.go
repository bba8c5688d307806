package worker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"loadline/internal/manifest"
	"loadline/internal/session"
)

const (
	// shortBytes is what is not worth leaving out.
	shortBytes = 256
	// readableBytes bounds the arguments that are taken apart to be made short.
	readableBytes = 64 << 10
	// hops is in how many steps what is left out grows to the whole room.
	hops = 4
)

// shrinker leaves parts of a request out. It owns the slice of items, but not what
// they point to.
type shrinker struct {
	items  []session.Item
	bytes  int64 // of the whole request, instructions and tools included
	room   int64 // bytes that it may have
	recent int   // where the newest begins: the last answer that called tools, or the last message of the user
	input  int   // where the newest message of the user is; -1: nowhere
}

func newShrinker(items []session.Item, bytes, room int64) *shrinker {
	s := &shrinker{items: items, bytes: bytes, room: room, input: -1}
	i, results := len(items), false
	for i > 0 && !ofAnswer(items[i-1].Kind) {
		i--
		if items[i].Kind == session.KindUserMessage && s.input < 0 {
			s.input = i
		}
		results = results || items[i].Kind == session.KindToolResult
	}
	for results && i > 0 && ofAnswer(items[i-1].Kind) {
		i--
	}
	if s.recent = i; !results && s.input >= 0 {
		s.recent = s.input
	}
	for i--; s.input < 0 && i >= 0; i-- {
		if items[i].Kind == session.KindUserMessage {
			s.input = i
		}
	}
	return s
}

func (s *shrinker) over() bool { return s.bytes > s.room }

// set replaces an item by a shorter form of it.
func (s *shrinker) set(i int, short session.Item) (saved int64) {
	saved = ItemBytes(&s.items[i]) - ItemBytes(&short)
	if saved <= 0 {
		return 0
	}
	s.items[i] = short
	s.bytes -= saved
	return saved
}

// clear makes old items short, the oldest first. It saves a little more than it
// must, in hops, so that it need not reach further each time the history grows.
func (s *shrinker) clear(short func(session.Item) session.Item) {
	if !s.over() {
		return
	}
	hop := max(1, s.room/hops)
	goal := (s.bytes - s.room + hop - 1) / hop * hop
	for i := 0; i < s.recent && goal > 0; i++ {
		goal -= s.set(i, short(s.items[i]))
	}
}

// clearedResult is a result without its content.
func clearedResult(item session.Item) session.Item {
	if r := item.ToolResult; r != nil && r.Content != nil && len(*r.Content) > shortBytes {
		short := *r
		short.Content = session.Text(fmt.Sprintf("[the %d bytes of this old result are left out here; call the tool again when they are needed]", len(*r.Content)))
		item.ToolResult = &short
	}
	return item
}

// clearedCall is a call whose long arguments are left out.
func clearedCall(item session.Item) session.Item {
	if c := item.ToolCall; c != nil && len(c.Arguments) > shortBytes {
		item.ToolCall = &session.ToolCall{Tool: c.Tool, Arguments: shortArguments(c.Arguments)}
	}
	return item
}

// shortArguments keeps what is short of arguments.
func shortArguments(arguments json.RawMessage) json.RawMessage {
	note := func(bytes int) json.RawMessage {
		return fmt.Appendf(nil, `"[%d bytes left out]"`, bytes)
	}
	var fields map[string]json.RawMessage
	if len(arguments) <= readableBytes && json.Unmarshal(arguments, &fields) == nil {
		for name, value := range fields {
			if len(value) > shortBytes/4 {
				fields[name] = note(len(value))
			}
		}
		if short, err := session.EncodeJSON(fields); err == nil && len(short) <= shortBytes {
			return short
		}
	}
	short, _ := session.EncodeJSON(map[string]json.RawMessage{"arguments": note(len(arguments))}) // it always encodes
	return short
}

// boundary finds how much of the old items must go so that the request has at most
// so many bytes, when something of summaryBytes takes their place: all before the
// returned index. It never parts a call from its result. It may not suffice.
func (s *shrinker) boundary(target, summaryBytes int64) (k int, goneBytes int64) {
	gone := int64(0)
	for i := range s.recent {
		if i > 0 && s.starts(i) && s.bytes-gone+summaryBytes <= target {
			return i, gone
		}
		if i != s.input {
			gone += ItemBytes(&s.items[i])
		}
	}
	return s.recent, gone
}

// starts reports whether no answer goes on at index i.
func (s *shrinker) starts(i int) bool {
	kind := s.items[i].Kind
	return kind != session.KindToolResult && (!ofAnswer(kind) || !ofAnswer(s.items[i-1].Kind))
}

// oldTo is the number of the last item for which a summary should stand, so that
// the request has half of its room left for what comes; 0 when that gains nothing.
func (s *shrinker) oldTo(summaryBytes int64) int64 {
	k, gone := s.boundary(s.room/2, summaryBytes)
	if gone <= summaryBytes {
		return 0
	}
	to, summed := int64(0), int64(0)
	for i := range k {
		if r := s.items[i].Summary; r != nil && r.ToN > 0 {
			summed = r.ToN
		} else {
			to = max(to, s.items[i].N)
		}
	}
	if to <= summed {
		return 0 // only a summary of the same would come of it
	}
	return to
}

// skeleton puts a skeleton of at most summaryBytes in the place of as many old items
// as must go.
func (s *shrinker) skeleton(summaryBytes int64) {
	if !s.over() || s.recent == 0 {
		return
	}
	k, gone := s.boundary(s.room, summaryBytes)
	bones := s.items[0]
	bones.Kind, bones.Summary = session.KindSummary, &session.Summary{Text: skeleton("", s.items[:k], int(summaryBytes))}
	bones.UserMessage, bones.AssistantMessage, bones.Reasoning, bones.ToolCall, bones.ToolResult = nil, nil, nil, nil, nil
	kept := []session.Item{bones}
	if s.input >= 0 && s.input < k {
		kept = append(kept, s.items[s.input])
	}
	bytes := s.bytes - gone + ItemBytes(&bones)
	if bytes >= s.bytes {
		return
	}
	if s.input >= k {
		s.input += len(kept) - k
	} else if s.input >= 0 {
		s.input = 1
	}
	s.items, s.bytes, s.recent = append(kept, s.items[k:]...), bytes, s.recent+len(kept)-k
}

// text is one that can be cut, like a result: with a note at its end.
type text struct {
	at     *string
	kept   int64 // bytes before the note of an earlier cut; 0: there is none
	unseen int64 // bytes that the earlier cut has dropped
}

func (t text) cut(limit int) (saved int64) {
	before, whole := len(*t.at), *t.at
	if t.kept > 0 && t.kept < int64(len(whole)) {
		whole = whole[:t.kept]
	}
	*t.at, _ = truncate(whole, t.unseen, limit)
	return int64(before - len(*t.at))
}

// shareResults cuts the contents of the newest results to an even share of the room.
func (s *shrinker) shareResults() {
	if !s.over() {
		return
	}
	var texts []text
	for i := s.recent; i < len(s.items); i++ {
		if r := s.items[i].ToolResult; r != nil && r.Content != nil {
			short := *r
			short.Content = session.Text(*r.Content)
			s.items[i].ToolResult = &short
			t := text{at: short.Content}
			if cut := r.Truncated; cut != nil {
				t.kept, t.unseen = cut.KeptBytes, cut.DroppedBytes
			}
			texts = append(texts, t)
		}
	}
	s.share(texts, manifest.MinLimitBytes)
}

// shareRest makes everything short that is left but the newest message of the user:
// it is what remains to be done when nothing else has helped.
func (s *shrinker) shareRest() {
	if !s.over() {
		return
	}
	var texts []text
	kept := s.items[:0:0]
	for i, item := range s.items {
		switch {
		case i == s.input:
		case item.Kind == session.KindReasoning:
			s.bytes -= ItemBytes(&item)
			continue
		case item.Kind == session.KindToolCall:
			s.set(i, clearedCall(item))
			item = s.items[i]
		default:
			texts = append(texts, loose(&item)...)
		}
		kept = append(kept, item)
	}
	s.items = kept
	s.share(texts, shortBytes)
}

// loose gives an item texts of its own, and returns them.
func loose(item *session.Item) []text {
	switch item.Kind {
	case session.KindUserMessage:
		item.UserMessage = new(*item.UserMessage)
		return []text{{at: &item.UserMessage.Text}}
	case session.KindAssistantMessage:
		item.AssistantMessage = new(*item.AssistantMessage)
		return []text{{at: &item.AssistantMessage.Text}}
	case session.KindToolResult:
		item.ToolResult = new(*item.ToolResult)
		return []text{{at: &item.ToolResult.Summary}}
	case session.KindSummary:
		item.Summary = new(*item.Summary)
		return []text{{at: &item.Summary.Text}}
	}
	return nil
}

// share cuts the longest of the texts to the same length, at least least bytes, so
// that the request fits.
func (s *shrinker) share(texts []text, least int) {
	slices.SortFunc(texts, func(a, b text) int { return cmp.Compare(len(*a.at), len(*b.at)) })
	left := s.room - s.bytes
	for _, t := range texts {
		left += int64(len(*t.at))
	}
	for i, t := range texts {
		share := max(int64(least), left/int64(len(texts)-i))
		if int64(len(*t.at)) > share {
			s.bytes -= t.cut(int(share))
		}
		left -= int64(len(*t.at))
	}
}
