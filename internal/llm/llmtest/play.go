package llmtest

import (
	"context"
	"net/http"
	"time"
)

// frame is one event of a stream.
type frame struct {
	bytes []byte
	piece bool // of reasoning, text or arguments
}

// answerFacts are what an answer repeats in its frames.
type answerFacts struct {
	n     int // of the request, for ids
	model string
}

// player writes one streamed answer.
type player struct {
	ctx    context.Context
	w      http.ResponseWriter
	flush  func() error
	step   Step
	pieces int
	left   int    // bytes until the cut; negative: no cut
	batch  []byte // what was not written yet
}

func play(ctx context.Context, w http.ResponseWriter, f face, step Step, facts answerFacts) {
	p := &player{ctx: ctx, w: w, flush: http.NewResponseController(w).Flush, step: step, left: -1}
	if step.CutAfterBytes != 0 {
		p.left = max(0, step.CutAfterBytes)
	}
	if step.GateAfter == 0 && !wait(ctx, step.Gate) {
		return
	}
	for name, values := range step.Header {
		w.Header()[name] = values
	}
	if step.Status != 0 {
		message := step.Body
		if message == "" {
			message = http.StatusText(step.Status)
		}
		writeError(w, f, step.Status, message)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(http.StatusOK)
	p.body(f, facts)
	if p.send() && step.Hang {
		<-ctx.Done()
	}
	if step.Abort {
		_ = p.flush() // what was sent before arrives
		panic(http.ErrAbortHandler)
	}
}

// body writes the frames, until the cut is reached or the client has left.
func (p *player) body(f face, facts answerFacts) {
	if p.step.Raw != "" {
		p.write(frame{bytes: []byte(p.step.Raw)})
		return
	}
	before, after := f.frames(p.step, facts)
	for _, frame := range before {
		if !p.write(frame) {
			return
		}
	}
	if p.step.Endless {
		var again []byte
		for _, text := range p.step.Text {
			again = append(again, f.piece(text, facts)...)
		}
		for p.write(frame{bytes: again, piece: true}) && p.send() {
		}
		return
	}
	for _, frame := range after {
		if !p.write(frame) {
			return
		}
	}
}

// write takes one frame up to the cut. It reports whether there is more to do.
func (p *player) write(f frame) bool {
	if f.piece {
		if p.step.Delay > 0 && !p.pause() {
			return false
		}
		if p.step.GateAfter > 0 && p.pieces == p.step.GateAfter && (!p.send() || !wait(p.ctx, p.step.Gate)) {
			return false
		}
		p.pieces++
	}
	cut := p.left >= 0 && len(f.bytes) >= p.left
	if cut {
		f.bytes = f.bytes[:p.left]
	}
	p.left -= min(len(f.bytes), max(0, p.left))
	p.batch = append(p.batch, f.bytes...)
	return !cut && (p.step.Delay == 0 || p.send())
}

func (p *player) pause() bool {
	timer := time.NewTimer(p.step.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// send writes the batch, in the sizes that the step wants.
func (p *player) send() bool {
	batch := p.batch
	p.batch = nil
	for len(batch) > 0 {
		n := len(batch)
		if p.step.WriteBytes > 0 {
			n = min(n, p.step.WriteBytes)
		}
		if _, err := p.w.Write(batch[:n]); err != nil {
			return false
		}
		if err := p.flush(); err != nil {
			return false
		}
		batch = batch[n:]
	}
	return p.flush() == nil
}
