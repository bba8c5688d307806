package http

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loadline/internal/session"
)

// AG-UI 1.0 (docs.ag-ui.com): POST {threadId, runId, messages, …}, answered with the
// events of one run. The session is the thread and keeps the history: of the messages
// only the last one is read. The run is the idempotency key of its turn, so that a
// repeated run is the same one, from its beginning.
//
//	Loadline                    AG-UI
//	turn.queued                 RUN_STARTED with the client's threadId and runId
//	turn.started                STEP_STARTED "step 1"
//	first event of a next step  STEP_FINISHED, STEP_STARTED "step 2"
//	item.delta of a message     TEXT_MESSAGE_START first, TEXT_MESSAGE_CONTENT
//	item.delta of reasoning     REASONING_START, REASONING_MESSAGE_START first, REASONING_MESSAGE_CONTENT
//	item.delta of a call        nothing: a call begins with its name, which comes with its item
//	item, of a message or       what deltas have not brought, TEXT_MESSAGE_END or
//	reasoning                   REASONING_MESSAGE_END, REASONING_END
//	item, tool_call             TOOL_CALL_START, TOOL_CALL_ARGS, TOOL_CALL_END
//	item, tool_result           TOOL_CALL_RESULT with what the model is sent; of a cut one before that
//	                            CUSTOM loadline.truncated, of a failed one metadata {"loadline":{"failed":true}}
//	item, user_message          nothing; from the second on (steered) a TEXT_MESSAGE of the user
//	item, summary               nothing
//	tool.started                nothing
//	tool.progress               CUSTOM loadline.progress
//	step.waiting, .retrying     CUSTOM loadline.waiting, loadline.retrying
//	step.restarted              ends what is open, CUSTOM loadline.restarted {message_ids}: they are void, as the
//	                            protocol cannot take text back; the new text comes under new ids
//	step.completed              nothing: its usage is in the sum at the end
//	turn.completed              RUN_FINISHED, outcome success, usage
//	turn.cancelled              RUN_FINISHED, outcome cancelled, usage
//	turn.failed, .interrupted   RUN_ERROR with code, message and usage
//	a stream that breaks off    RUN_ERROR stream_broken: the client takes a cut stream for a success
//
// Whatever is open ends before RUN_FINISHED and RUN_ERROR.

func (s *Server) runAGUI(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	body, err := s.readForeign(w, r)
	if err != nil {
		return err
	}
	run, err := readRun(body)
	if err != nil {
		return err
	}
	if err := s.boundInput(run.Input); err != nil {
		return err
	}
	key, err := newSubmitKey("ag-ui:"+run.runID, run.Submission)
	if err != nil {
		return err
	}
	return s.followTurn(w, r, id, run.Submission, key, &agui{threadID: run.threadID, runID: run.runID})
}

// speaksAGUI reports whether refusals of this request are one line of text: clients of
// AG-UI show a body as it is, after the status.
func speaksAGUI(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/sessions/") && strings.HasSuffix(r.URL.Path, "/ag-ui")
}

// aguiRun is a request for a run.
type aguiRun struct {
	session.Submission
	threadID, runID string
}

func readRun(body []byte) (run aguiRun, err error) {
	f, err := newForeignForm(body)
	if err != nil {
		return run, err
	}
	run.threadID, run.runID = orEmpty(f.text("threadId")), orEmpty(f.text("runId"))
	if run.threadID == "" || len(run.threadID) > maxKeyBytes {
		f.refuse("threadId", "must be a string of 1 to %d bytes", maxKeyBytes)
	}
	if !visible(run.runID) || len(run.runID) > maxKeyBytes {
		f.refuse("runId", "must be 1 to %d visible ASCII characters, fresh for each run", maxKeyBytes)
	}
	messages := f.messages()
	if len(f.errors) == 0 {
		run.Input, _ = f.lastInput(messages)
	}
	run.Mode = session.ModeEnqueue
	return run, f.doneForeign()
}

// agui is one run as a stream of AG-UI.
type agui struct {
	threadID, runID string

	steps     int  // begun
	answered  bool // the answer of the last step is stored: what comes next of a model is another step
	users     int  // messages of the user seen
	attempt   int  // how often text became void
	sent      forwarded
	open      session.ItemKind // of the message that is open; empty when none is
	openN     int64
	unsettled []int64 // numbers whose text was passed on and whose item has not come
	parentID  string  // of the message that carries the calls of this step
	over      bool
}

func (a *agui) header(http.Header) {}

func (a *agui) event(b []byte, ev *session.Event) ([]byte, error) {
	switch ev.Type {
	case session.EventTurnQueued:
		a.sent = forwarded{}
		return appendAGUI(b, aguiEvent{Type: "RUN_STARTED", ThreadID: a.threadID, RunID: a.runID})
	case session.EventTurnStarted:
		return a.step(b)
	case session.EventItemDelta:
		return a.delta(b, ev.Delta)
	case session.EventItem:
		return a.item(b, ev.Item)
	case session.EventStepCompleted:
		a.answered = true
	case session.EventToolProgress:
		return a.custom(b, "progress", aguiProgress{callID(ev.Activity.ItemN), ev.Activity.Text})
	case session.EventStepWaiting:
		return a.custom(b, "waiting", ev.Wait)
	case session.EventStepRetrying:
		return a.custom(b, "retrying", ev.Retry)
	case session.EventStepRestarted:
		return a.restart(b, ev.Retry)
	case session.EventTurnCompleted, session.EventTurnFailed, session.EventTurnCancelled, session.EventTurnInterrupted:
		return a.finish(b, ev.Turn)
	}
	return b, nil
}

// end finishes a stream that broke off; one that has its last event is left alone.
func (a *agui) end(b []byte) ([]byte, error) {
	if a.over {
		return b, nil
	}
	b, err := a.close(b)
	if err != nil {
		return b, err
	}
	return appendAGUI(b, aguiEvent{Type: "RUN_ERROR", Code: streamBroken, Message: streamBrokenDetail})
}

func (a *agui) finish(b []byte, t *session.Turn) ([]byte, error) {
	a.over = true
	b, err := a.close(b)
	if err != nil {
		return b, err
	}
	last := aguiEvent{Usage: []aguiUsage{{t.Usage.InputTokens, t.Usage.OutputTokens, t.Usage.CachedInputTokens}}}
	switch {
	case t.State == session.TurnCompleted:
		last.Type, last.ThreadID, last.RunID, last.Outcome = "RUN_FINISHED", a.threadID, a.runID, &aguiOutcome{"success"}
	case t.State == session.TurnCancelled:
		last.Type, last.ThreadID, last.RunID, last.Outcome = "RUN_FINISHED", a.threadID, a.runID, &aguiOutcome{"cancelled"}
	default:
		last.Type, last.Code, last.Message = "RUN_ERROR", string(t.Error.Code), t.Error.Detail
	}
	return appendAGUI(b, last)
}

// close ends the open message and the open step.
func (a *agui) close(b []byte) ([]byte, error) {
	b, err := a.closeMessage(b)
	if err != nil || a.steps == 0 {
		return b, err
	}
	return appendAGUI(b, aguiEvent{Type: "STEP_FINISHED", StepName: a.stepName()})
}

func (a *agui) stepName() string { return "step " + strconv.Itoa(a.steps) }

// step begins a step, after the one before has ended.
func (a *agui) step(b []byte) ([]byte, error) {
	b, err := a.close(b)
	if err != nil {
		return b, err
	}
	a.steps, a.answered, a.parentID = a.steps+1, false, ""
	return appendAGUI(b, aguiEvent{Type: "STEP_STARTED", StepName: a.stepName()})
}

// enter begins the next step when something of a model comes after an answer.
func (a *agui) enter(b []byte) ([]byte, error) {
	if a.answered || a.steps == 0 {
		return a.step(b)
	}
	return b, nil
}

func (a *agui) delta(b []byte, d *session.Delta) ([]byte, error) {
	b, err := a.enter(b)
	if err != nil || d.Kind == session.KindToolCall {
		return b, err
	}
	return a.text(b, d.ItemN, d.Kind, a.sent.delta(d))
}

// text passes on a piece of a message, which it opens.
func (a *agui) text(b []byte, n int64, kind session.ItemKind, piece string) ([]byte, error) {
	if piece == "" {
		return b, nil
	}
	b, err := a.openMessage(b, n, kind)
	if err != nil {
		return b, err
	}
	b = append(b, `data: {"type":"`...)
	b = append(b, messageEvents(kind).content...)
	b = append(b, `","messageId":"`...)
	b = a.appendID(b, n)
	b = append(b, `","delta":`...)
	b = session.AppendJSONString(b, piece)
	return append(b, "}\n\n"...), nil
}

func (a *agui) openMessage(b []byte, n int64, kind session.ItemKind) ([]byte, error) {
	if a.openN == n {
		return b, nil
	}
	b, err := a.closeMessage(b)
	if err != nil {
		return b, err
	}
	a.open, a.openN = kind, n
	if !slices.Contains(a.unsettled, n) {
		a.unsettled = append(a.unsettled, n)
	}
	if kind == session.KindReasoning {
		if b, err = appendAGUI(b, aguiEvent{Type: "REASONING_START", MessageID: a.messageID(n)}); err != nil {
			return b, err
		}
	}
	return appendAGUI(b, aguiEvent{Type: messageEvents(kind).start, MessageID: a.messageID(n), Role: messageEvents(kind).role})
}

func (a *agui) closeMessage(b []byte) ([]byte, error) {
	if a.openN == 0 {
		return b, nil
	}
	id, kind := a.messageID(a.openN), a.open
	a.open, a.openN = "", 0
	b, err := appendAGUI(b, aguiEvent{Type: messageEvents(kind).end, MessageID: id})
	if err != nil || kind != session.KindReasoning {
		return b, err
	}
	return appendAGUI(b, aguiEvent{Type: "REASONING_END", MessageID: id})
}

func (a *agui) custom(b []byte, name string, value any) ([]byte, error) {
	return appendAGUI(b, aguiEvent{Type: "CUSTOM", Name: "loadline." + name, Value: value})
}

// restart ends what is open, and tells which messages are void.
func (a *agui) restart(b []byte, retry *session.Retry) ([]byte, error) {
	b, err := a.closeMessage(b)
	if err != nil {
		return b, err
	}
	void := aguiRestart{MessageIDs: []string{}, Reason: retry.Reason}
	for _, n := range a.unsettled {
		void.MessageIDs = append(void.MessageIDs, a.messageID(n))
		delete(a.sent, n)
	}
	a.unsettled = nil
	a.attempt++
	return a.custom(b, "restarted", void)
}

// appendID appends the id of the message that item n is. Text that comes again after it
// was void has another one.
func (a *agui) appendID(b []byte, n int64) []byte {
	b = strconv.AppendInt(append(b, "item_"...), n, 10)
	if a.attempt > 0 {
		b = strconv.AppendInt(append(b, '_'), int64(a.attempt), 10)
	}
	return b
}

func (a *agui) messageID(n int64) string { return string(a.appendID(nil, n)) }

func callID(n int64) string { return "call_" + strconv.FormatInt(n, 10) }
