package worker

import (
	"sync"

	"loadline/internal/session"
)

// maxProgressBytes bounds a line of progress.
const maxProgressBytes = 512

// progress shows the signs of life of one call, and none once it has its result.
type progress struct {
	run  *run
	call Call

	mu    sync.Mutex // guards ended
	ended bool
}

func (r *run) newProgress(call Call) *progress {
	r.emit(session.EventToolStarted, session.Activity{ItemN: call.N, Tool: call.Tool})
	return &progress{run: r, call: call}
}

func (p *progress) show(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		text := firstBytes(session.Clean(line), maxProgressBytes)
		p.run.emit(session.EventToolProgress, session.Activity{ItemN: p.call.N, Tool: p.call.Tool, Text: text})
	}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
