package host

import "container/list"

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
