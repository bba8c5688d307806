package host

import (
	"context"
	"time"

	"loadline/internal/session"
	"loadline/internal/worker"
)

// Diagnose looks at a session as it is stored, and at the turn that runs here. It
// takes nothing over and waits for no turn.
func (h *Host) Diagnose(ctx context.Context, id session.ID) (session.Diagnosis, error) {
	s, generation, err := h.Store.Owned(ctx, id)
	if err != nil {
		return session.Diagnosis{}, err
	}
	d := session.Diagnosis{SessionID: id, State: s.State, Generation: generation, LastSeq: s.LastSeq, Queue: []session.TurnID{}, OpenCalls: []session.OpenCall{}}
	open, err := h.Store.OpenTurns(ctx, id)
	if err != nil {
		return d, err
	}
	for _, t := range open {
		if t.State == session.TurnRunning {
			d.Running = h.pulse(t)
		} else {
			d.Queue = append(d.Queue, t.ID)
		}
	}
	history, err := h.readHistory(ctx, id, s.Project)
	if err != nil {
		return d, err
	}
	d.Items, d.OpenCalls = int64(len(history.Items)), openCalls(history.Items)
	d.NextRequest = h.project(s.Project).Engine.Diagnose(history)
	if h.MemoryLag != nil {
		d.Memory, err = h.MemoryLag(ctx, id)
	}
	return d, err
}

// pulse is the running turn's, as far as it runs in this host.
func (h *Host) pulse(t session.Turn) *session.Pulse {
	p := &session.Pulse{TurnID: t.ID, Steps: t.Steps, Restarts: t.Restarts}
	h.mu.Lock()
	l := h.live[t.SessionID]
	h.mu.Unlock()
	if l == nil {
		return p
	}
	if after := l.stallAfter.Load(); after > 0 {
		p.LastSign = session.Time(l.lastSign.Load())
		p.Stalled = time.Now().UnixMicro()-l.lastSign.Load() > after
	}
	return p
}

// openCalls are the calls of a history that have no result.
func openCalls(items []session.Item) []session.OpenCall {
	settled := map[int64]bool{}
	for i := range items {
		if r := items[i].ToolResult; r != nil {
			settled[r.CallN] = true
		}
	}
	open := []session.OpenCall{}
	for i := range items {
		call := items[i].ToolCall
		if call == nil || settled[items[i].N] {
			continue
		}
		o := session.OpenCall{N: items[i].N, TurnID: items[i].TurnID, Tool: call.Tool, Effect: call.Effect, At: items[i].At}
		switch {
		case call.Arguments == nil:
			o.Effect = session.EffectNone
		case o.Effect == "":
			o.Effect = session.EffectPossible
		}
		open = append(open, o)
	}
	return open
}

// readHistory reads what the next turn of a session would begin with.
func (h *Host) readHistory(ctx context.Context, id session.ID, project string) (*worker.History, error) {
	items, err := h.Store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	steps, err := h.Store.Steps(ctx, id, gaugedSteps)
	if err != nil {
		return nil, err
	}
	history := &worker.History{Items: items, Gauge: worker.NewGauge(steps)}
	if recall := h.project(project).Recall; recall != nil {
		history.Recall, err = recall(ctx, id)
	}
	return history, err
}
