package stream

import (
	"io"
	"testing"

	"pgregory.net/rapid"

	"loadline/internal/session"
)

// performance is what rapid drives: a play, and readers that come, lag, leave and
// come back at any moment.
type performance struct {
	*play
	readers []*reader
}

// TestReadersGetEachEntryOnce: whatever happens in whatever order, each reader can
// put together exactly what is stored and what was written, nothing twice.
func TestReadersGetEachEntryOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &performance{play: newPlay(t.Context())}
		for range 2 {
			r := p.joins(session.Cursor{Offset: -1})
			if _, err := r.readAll(); err != nil {
				t.Fatal(err)
			}
			r.stays = true
			p.readers = append(p.readers, r)
		}
		t.Repeat(map[string]func(*rapid.T){
			"speak":  p.speaks,
			"end":    p.ends,
			"others": p.others,
			"read":   p.reads,
			"glance": p.glances,
			"return": p.comesBack,
			"join":   p.joinsAnywhere,
			"reopen": p.reopens,
		})
		p.topic.Close()
		for _, r := range p.readers {
			p.readsToTheEnd(t, r)
			if err := r.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func (p *performance) speaks(t *rapid.T) {
	nth := rapid.IntRange(0, 3).Draw(t, "item")
	for _, text := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "あ", "🦆", "line\n"}), 1, 4).Draw(t, "pieces") {
		p.speak(nth, text)
	}
}

func (p *performance) ends(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0:
		p.restart()
	case 1:
		p.finish(session.EventStepCompleted)
	case 2:
		p.finish(session.EventStepCompleted, session.EventTurnCompleted, session.EventTurnStarted)
	case 3:
		p.finish(session.EventTurnCancelled, session.EventTurnStarted)
	}
}

func (p *performance) others(t *rapid.T) {
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		p.queue(session.EventTurnQueued, "later")
	case 1:
		p.queue(session.EventTurnCancelled, "never")
	case 2:
		p.store(event(session.EventStepRetrying)...)
	case 3:
		p.work(rapid.Int64Range(1, 2).Draw(t, "item"))
	case 4:
		p.queue(session.EventTurnQueued, p.big)
		p.queue(session.EventTurnCancelled, p.big)
	}
}

func (p *performance) someone(t *rapid.T) *reader {
	return p.readers[rapid.IntRange(0, len(p.readers)-1).Draw(t, "reader")]
}

func (p *performance) reads(t *rapid.T) {
	if _, err := p.someone(t).readAll(); err != nil {
		t.Fatal(err)
	}
}

func (p *performance) glances(t *rapid.T) {
	if _, _, err := p.someone(t).read(); err != nil {
		t.Fatal(err)
	}
}

func (p *performance) comesBack(t *rapid.T) {
	r := p.someone(t)
	r.returns()
	deltas, err := r.readAll()
	if err != nil {
		t.Fatal(err)
	}
	if deltas > p.runs {
		t.Fatalf("a reader that came back got %d deltas of %d runs", deltas, p.runs)
	}
}

func (p *performance) joinsAnywhere(t *rapid.T) {
	c := session.Cursor{Offset: -1}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		c.Live = true
	case 1: // may be unknown
		c.Seq = rapid.Int64Range(0, p.topic.lastSeq+2).Draw(t, "seq")
		c.Offset = rapid.Int64Range(-1, p.topic.liveBytes()+2).Draw(t, "offset")
	}
	p.readers = append(p.readers, p.joins(c))
}

func (p *performance) reopens(t *rapid.T) {
	p.topic.Close()
	for _, r := range p.readers {
		p.readsToTheEnd(t, r)
		r.sub.Close()
	}
	if n := p.topic.Subscribers(); n != 0 {
		t.Fatalf("the closed topic has %d subscribers", n)
	}
	p.reopen()
	for _, r := range p.readers {
		r.sub, r.unsure = p.topic.Subscribe(r.id), true
	}
	p.restart()
}

func (p *performance) readsToTheEnd(t *rapid.T, r *reader) {
	if _, err := r.readAll(); err != io.EOF {
		t.Fatalf("the stream of a closed topic ends with %v, want io.EOF", err)
	}
}
