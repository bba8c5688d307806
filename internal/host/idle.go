package host

import (
	"container/list"

	"loadline/internal/session"
)

// What idle sessions may hold in memory, so that the next turn need not load them.
const (
	maxIdleSessions     = 256
	maxIdleHistoryBytes = 16 << 20
)

// idleList is the idle sessions, least recently used first. The zero value is empty.
type idleList struct {
	order list.List // of idleEntry
	where map[*live]*list.Element
	bytes int64
}

type idleEntry struct {
	live  *live
	bytes int64 // of its history
}

func (i *idleList) add(l *live, bytes int64) {
	if i.where == nil {
		i.where = map[*live]*list.Element{}
	}
	i.where[l] = i.order.PushBack(idleEntry{l, bytes})
	i.bytes += bytes
}

func (i *idleList) remove(l *live) {
	if e, ok := i.where[l]; ok {
		i.bytes -= i.order.Remove(e).(idleEntry).bytes
		delete(i.where, l)
	}
}

func (i *idleList) over() bool {
	return i.order.Len() > maxIdleSessions || i.bytes > maxIdleHistoryBytes
}

func (i *idleList) oldest() *live { return i.order.Front().Value.(idleEntry).live }

// forget drops a session from memory. The host's mu is held.
func (h *Host) forget(l *live) {
	h.idle.remove(l)
	if h.live[l.id] == l {
		delete(h.live, l.id)
	}
}

// historyBytes estimates what the history holds in memory.
func (l *live) historyBytes() int64 {
	const itemBytes = 300
	var sum int64
	if l.history == nil {
		return 0
	}
	for i := range l.history.Items {
		sum += itemBytes + textBytes(&l.history.Items[i])
	}
	return sum
}

func textBytes(item *session.Item) int64 {
	switch {
	case item.UserMessage != nil:
		return int64(len(item.UserMessage.Text))
	case item.AssistantMessage != nil:
		return int64(len(item.AssistantMessage.Text))
	case item.Reasoning != nil:
		return int64(len(item.Reasoning.Text) + len(item.Reasoning.Signature) + len(item.Reasoning.Redacted))
	case item.ToolCall != nil:
		return int64(len(item.ToolCall.Arguments) + len(item.ToolCall.Raw))
	case item.ToolResult != nil && item.ToolResult.Content != nil:
		return int64(len(*item.ToolResult.Content))
	}
	return 0
}
