package worker

import (
	"loadline/internal/llm"
	"loadline/internal/session"
)

// declare writes down what each call of an answer may do, before any of them runs.
// The calls are stored with it, in one commit with their answer: that is the ledger.
// A call whose result is stored is settled; one without, after a crash, may have
// done what its effect says, but nothing more, whatever the tools are by then.
func (e *Engine) declare(calls []session.Item, stop llm.Stop) {
	for i := range calls {
		call := calls[i].ToolCall
		switch effect := e.Tools.Effect(call.Tool); {
		case call.Arguments == nil: // says itself that it never runs
		case stop == llm.StopLength || stop == llm.StopRefusal:
			call.Effect = session.EffectNone
		case effect != session.EffectPossible:
			call.Effect = effect
		}
	}
}

// openOutput is the output of a call that something has ended before it had one.
// Begun says that calls of its step may have run.
func openOutput(call *session.ToolCall, begun bool, ended string) session.Output {
	switch {
	case !begun || call.Effect == session.EffectNone || call.Arguments == nil:
		return failedOutput(call.Tool+": never started", ended+" before this call was answered. It was never started: nothing was done.")
	case call.Effect == session.EffectRead:
		return failedOutput(call.Tool+": not finished", ended+" while this call ran. It only reads, so nothing was changed: it is safe to ask again.")
	}
	return failedOutput(call.Tool+": outcome unknown", ended+" while this call ran: its outcome is unknown. It was not run again. Check what it did before you repeat it.")
}
