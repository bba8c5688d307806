package stream

import (
	"context"
	"slices"
	"strings"
	"sync"

	"loadline/internal/session"
)

// play is a stage with a running turn, which remembers each text that was ever
// written. Its methods may be called by several goroutines.
type play struct {
	*stage
	ctx context.Context
	big string // makes an event that leaves a reader behind

	mu       sync.Mutex          // makes commit and publish one, as a host does
	restarts []int64             // the step.restarted events
	texts    map[[2]int64]string // by number of restarts before it, and item
	items    []int64             // of the running step, in order of their first delta
	next     int64               // number of the next item
	runs     int                 // of the running step
	last     int64               // item that the newest entry of the stream is text of, or 0
}

func newPlay(ctx context.Context) *play {
	p := &play{stage: newStage(), ctx: ctx, big: strings.Repeat("x", maxLagBytes), texts: map[[2]int64]string{}, next: 1}
	p.log.page = 3
	p.store(event(session.EventTurnQueued, session.EventTurnStarted)...)
	return p
}

// text is what has been written of an item when seq was the last event.
func (p *play) text(seq, itemN int64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.texts[[2]int64{p.epoch(seq), itemN}]
}

func (p *play) epoch(seq int64) int64 {
	n, found := slices.BinarySearch(p.restarts, seq)
	if found {
		n++
	}
	return int64(n)
}

// store commits and publishes.
func (p *play) store(events ...session.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commit(events...)
}

func (p *play) commit(events ...session.Event) {
	p.last = 0
	p.publish(events...)
}

// speak writes text to the nth open item, or to a new one.
func (p *play) speak(nth int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	itemN := p.next
	if nth < len(p.items) {
		itemN = p.items[nth]
	} else {
		p.items = append(p.items, itemN)
		p.next++
	}
	if itemN != p.last {
		p.runs++
	}
	p.last = itemN
	p.texts[[2]int64{int64(len(p.restarts)), itemN}] += text
	p.write(itemN, text)
}

// work is a sign of life of a tool.
func (p *play) work(itemN int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = 0
	p.progress(itemN, "line")
}

// finish ends the step: its items, and the event that ends it.
func (p *play) finish(with session.EventType, more ...session.EventType) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var events []session.Event
	for _, n := range p.items {
		text := p.texts[[2]int64{int64(len(p.restarts)), n}]
		events = append(events, session.Event{Type: session.EventItem, TurnID: running,
			Item: &session.Item{N: n, AssistantMessage: &session.AssistantMessage{Text: text}}})
	}
	p.commit(append(append(events, event(with)...), event(more...)...)...)
	p.items, p.runs = nil, 0
}

// restart asks the model again: what it wrote is void, its numbers are free.
func (p *play) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts = append(p.restarts, int64(len(p.log.stored))+1)
	p.next -= int64(len(p.items))
	p.items, p.runs = nil, 0
	clear(p.written)
	p.commit(event(session.EventStepRestarted)...)
}

// reopen makes a new topic over the same log, as a restart of the server does.
func (p *play) reopen() {
	p.topic = NewTopic(testSession, int64(len(p.log.stored)), p.log, p.topic.metrics)
}

// queue is an event of another turn.
func (p *play) queue(of session.EventType, input string) {
	p.store(session.Event{Type: of, TurnID: queued, Turn: &session.Turn{Input: input}})
}
