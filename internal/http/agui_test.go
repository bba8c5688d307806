package http

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool/tooltest"
)

const aguiPath = "/v1/sessions/" + string(testSession) + "/ag-ui"

// rich holds the events of one turn with everything in it: reasoning, text, parallel
// calls, one result cut and one failed, text that becomes void, a steered message.
func rich() []session.Event {
	var all []session.Event
	add := func(kind session.EventType) *session.Event {
		all = append(all, session.Event{Type: kind, Seq: int64(len(all) + 1), SessionID: testSession, TurnID: testTurn, At: 1772357460000010})
		return &all[len(all)-1]
	}
	turn := func(kind session.EventType, state session.TurnState) {
		add(kind).Turn = &session.Turn{ID: testTurn, SessionID: testSession, State: state, Input: "go", Mode: session.ModeEnqueue, CreatedAt: 1772357460000010, Usage: session.Usage{InputTokens: 9, CachedInputTokens: 4, OutputTokens: 3}}
	}
	delta := func(n int64, kind session.ItemKind, at int64, text string) {
		add(session.EventItemDelta).Delta = &session.Delta{ItemN: n, Kind: kind, AtByte: at, Text: text}
	}
	item := func(it session.Item) {
		it.SessionID, it.TurnID, it.At = testSession, testTurn, 1772357460000010
		add(session.EventItem).Item = &it
	}
	turn(session.EventTurnQueued, session.TurnQueued)
	turn(session.EventTurnStarted, session.TurnRunning)
	item(session.Item{N: 1, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "go"}})
	delta(2, session.KindReasoning, 0, "hm")
	delta(3, session.KindAssistantMessage, 0, "let me ")
	delta(2, session.KindReasoning, 2, "…")
	delta(3, session.KindAssistantMessage, 7, "see")
	delta(4, session.KindToolCall, 0, `{"a":`)
	item(session.Item{N: 2, Kind: session.KindReasoning, Reasoning: &session.Reasoning{Text: "hm…", Provider: "p", Model: "m"}})
	item(session.Item{N: 3, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "let me see it"}})
	item(session.Item{N: 4, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Grep", Arguments: json.RawMessage(`{"a":1}`)}})
	item(session.Item{N: 5, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Glob", Raw: "[<"}})
	add(session.EventStepCompleted).Step = &session.Step{}
	add(session.EventToolStarted).Activity = &session.Activity{ItemN: 4, Tool: "Grep"}
	add(session.EventToolProgress).Activity = &session.Activity{ItemN: 4, Tool: "Grep", Text: "half"}
	item(session.Item{N: 7, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 5, Tool: "Glob", Failed: true, Summary: "Glob: no", Content: session.Text(" ")}})
	item(session.Item{N: 6, Kind: session.KindToolResult, ToolResult: &session.ToolResult{
		CallN: 4, Tool: "Grep", Summary: "two\nlines", Content: session.Text("a\n\n[truncated: 9 bytes dropped, refine your query]"),
		Truncated: &session.Truncated{Limit: 128, OriginalBytes: 10, KeptBytes: 1, DroppedBytes: 9}, KeptOutput: &session.KeptOutput{Bytes: 10},
	}})
	item(session.Item{N: 8, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "and \"quick\""}})
	add(session.EventStepWaiting).Wait = &session.Wait{WaitMS: 5}
	delta(9, session.KindAssistantMessage, 0, "half an")
	add(session.EventStepRetrying).Retry = &session.Retry{Attempt: 2, WaitMS: 7, Reason: "the stream broke"}
	add(session.EventStepRestarted).Retry = &session.Retry{Attempt: 2, Reason: "the stream broke"}
	delta(9, session.KindAssistantMessage, 0, "line\n\n")
	delta(9, session.KindAssistantMessage, 6, "😀\u2028")
	item(session.Item{N: 9, Kind: session.KindAssistantMessage, AssistantMessage: &session.AssistantMessage{Text: "line\n\n😀\u2028"}})
	add(session.EventStepCompleted).Step = &session.Step{}
	turn(session.EventTurnCompleted, session.TurnCompleted)
	return all
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

const aguiBody = `{"threadId":"thread 1","runId":"run-1","messages":[{"id":"1","role":"user","content":"go"}],"tools":[],"context":[],"state":null,"forwardedProps":{}}`

func TestAGUITranscript(t *testing.T) {
	events := rich()
	sub := newScript(events[:5], events[5:])
	close(sub.events)
	f := &fake{sub: sub}
	w := ask(t, newTestServer(t, f), "POST", aguiPath, aguiBody)
	golden(t, "agui.golden", w.Body.String())
	<-sub.closed
	got := f.submitted[0]
	if got.input != "go" || got.mode != session.ModeEnqueue || got.key == nil || got.key.Key != "ag-ui:run-1" {
		t.Errorf("submitted %+v", got)
	}
	if w.Header().Get("Content-Type") != eventStream || w.Header().Get("Location") == "" {
		t.Errorf("headers %v", w.Header())
	}
}

// Wherever a turn ends, nothing is open and one event is the last.
func TestAGUIEndsWhatIsOpen(t *testing.T) {
	events := rich()
	ends := map[session.TurnState]string{
		session.TurnCancelled:   `"outcome":{"type":"cancelled"}`,
		session.TurnFailed:      `"code":"provider_error","message":"no"`,
		session.TurnInterrupted: `"code":"provider_error","message":"no"`,
		"":                      `"code":"stream_broken"`, // no terminal event at all
	}
	for n := 1; n < len(events); n++ {
		for state, want := range ends {
			cut := events[:n:n]
			if state != "" {
				cut = append(cut, session.Event{Type: session.TerminalEvent(state), Turn: &session.Turn{State: state, Error: &session.TurnError{Code: session.CodeProviderError, Detail: "no"}}})
			}
			sub := newScript(cut)
			close(sub.events)
			w := ask(t, newTestServer(t, &fake{sub: sub}), "POST", aguiPath, aguiBody)
			if problem := checkRun(w.Body.String(), want); problem != "" {
				t.Errorf("after %d events and %q: %s\n%s", n, state, problem, w.Body)
			}
		}
	}
}

// checkRun plays a client: it follows what is open, as the protocol wants it.
func checkRun(body, want string) (problem string) {
	frames := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	open := map[string]bool{}
	for i, frame := range frames {
		var ev aguiEvent
		text, _ := strings.CutPrefix(frame, "data: ")
		if err := json.Unmarshal([]byte(text), &ev); err != nil {
			return err.Error()
		}
		subject := ev.StepName + "/" + ev.MessageID + "/" + ev.CallID
		opens, thing := strings.CutSuffix(ev.Type, "_START")
		if step, ok := strings.CutSuffix(ev.Type, "_STARTED"); ok {
			opens, thing = step, true
		}
		closes, ends := strings.CutSuffix(strings.TrimSuffix(ev.Type, "ISHED"), "_END")
		if step, ok := strings.CutSuffix(ev.Type, "_FINISHED"); ok {
			closes, ends = step, true
		}
		switch {
		case ev.Type == "RUN_STARTED" && i != 0 || i == 0 && ev.Type != "RUN_STARTED":
			return "RUN_STARTED is not the first"
		case ev.Type == "RUN_FINISHED" || ev.Type == "RUN_ERROR":
			if i != len(frames)-1 || len(open) > 0 || !strings.Contains(frame, want) {
				return "the end is not the last, or something is open, or it lacks " + want
			}
			return ""
		case ev.Type == "RUN_STARTED":
		case thing:
			if open[opens+subject] {
				return frame + " opens twice"
			}
			open[opens+subject] = true
		case ends:
			if !open[closes+subject] {
				return frame + " closes what is not open"
			}
			delete(open, closes+subject)
		case strings.HasSuffix(ev.Type, "_CONTENT"):
			if !open[strings.TrimSuffix(ev.Type, "_CONTENT")+subject] {
				return frame + " belongs to nothing that is open"
			}
		}
	}
	return "the run has no end"
}

func TestAGUIRefuses(t *testing.T) {
	body := func(messages string) string { return `{"threadId":"t","runId":"r","messages":` + messages + `}` }
	tests := []struct {
		name, body, pointer string
		code                code
	}{
		{"no JSON", `{`, "", codeInvalidJSON},
		{"a list", `[]`, "", codeInvalidJSON},
		{"nothing", `{}`, "/threadId", codeInvalidField},
		{"a number as thread", `{"threadId":1,"runId":"r","messages":[]}`, "/threadId", codeInvalidField},
		{"no run", `{"threadId":"t","messages":[]}`, "/runId", codeInvalidField},
		{"run with a space", `{"threadId":"t","runId":"a b","messages":[]}`, "/runId", codeInvalidField},
		{"long run", `{"threadId":"t","runId":"` + strings.Repeat("r", 250) + `x12345","messages":[]}`, "/runId", codeInvalidField},
		{"no messages", `{"threadId":"t","runId":"r"}`, "/messages", codeInvalidField},
		{"messages are text", body(`"hi"`), "/messages", codeInvalidField},
		{"empty", body(`[]`), "/messages", codeInvalidField},
		{"instructions alone", body(`[{"role":"system","content":"a"}]`), "/messages", codeInvalidField},
		{"message is null", body(`[null]`), "/messages/0", codeInvalidField},
		{"message is text", body(`["hi"]`), "/messages/0", codeInvalidField},
		{"unknown role", body(`[{"role":"user","content":"a"},{"role":"oracle","content":"a"}]`), "/messages/1", codeInvalidField},
		{"a result last", body(`[{"role":"user","content":"a"},{"role":"tool","content":"a","toolCallId":"x"}]`), "/messages/1", codeInvalidField},
		{"no content", body(`[{"role":"user"}]`), "/messages/0/content", codeInvalidField},
		{"null content", body(`[{"role":"user","content":null}]`), "/messages/0/content", codeInvalidField},
		{"blank content", body(`[{"role":"user","content":" \n"}]`), "/messages/0/content", codeInvalidField},
		{"no parts", body(`[{"role":"user","content":[]}]`), "/messages/0/content", codeInvalidField},
		{"image", body(`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}]`), "/messages/0/content/1", codeInvalidField},
		{"part without text", body(`[{"role":"user","content":[{"type":"text"}]}]`), "/messages/0/content/0", codeInvalidField},
		{"large input", body(`[{"role":"user","content":"` + strings.Repeat("x", 1<<20+1) + `"}]`), "", codeBodyTooLarge},
		{"large body", body(`[{"role":"user","content":"` + strings.Repeat("x", 2<<20+1) + `"}]`), "", codeBodyTooLarge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { wantRefused(t, aguiPath, test.body, test.pointer, test.code) })
	}
}

func FuzzReadRun(f *testing.F) {
	f.Add([]byte(aguiBody))
	f.Add([]byte(`{"threadId":"t","runId":"r","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"system"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		run, err := readRun(body)
		if err != nil {
			if p := asProblem(err); p.Status != http.StatusBadRequest {
				t.Errorf("refused with %v", p)
			}
			return
		}
		if blank(run.Input) || session.Clean(run.Input) != run.Input || !visible(run.runID) || run.threadID == "" {
			t.Errorf("took %+v", run)
		}
	})
}

func TestAGUIWholeTurn(t *testing.T) {
	w := startWhole(t, tooltest.Returning("Big", strings.Repeat("日", 50_000)), tooltest.Panicking("Broken", "secret"))
	path := w.newSession()
	w.model.Add(
		llmtest.Step{Reasoning: []string{"hm"}, Text: []string{"let me ", "see"}, Calls: []llmtest.Call{{Tool: "Big", Arguments: `{}`}, {Tool: "Broken"}}},
		llmtest.Step{Text: []string{"half a"}, CutAfterBytes: 250, Abort: true}, llmtest.Step{Text: []string{"done"}})
	run := func() string {
		r := w.open("POST", path+"/ag-ui", aguiBody)
		var b strings.Builder
		_, err := io.Copy(&b, r.Body)
		must(t, err)
		return b.String()
	}
	first := run()
	if problem := checkRun(first, `"outcome":{"type":"success"}`); problem != "" {
		t.Errorf("%s\n%s", problem, first)
	}
	for _, want := range []string{`"delta":"done"`, `"name":"loadline.truncated"`, `"metadata":{"loadline":{"failed":true}}`, `"type":"REASONING_MESSAGE_CONTENT"`} {
		if !strings.Contains(first, want) {
			t.Errorf("the run lacks %s:\n%.2000s", want, first)
		}
	}
	again := run() // the same run: no second turn
	if problem := checkRun(again, `"outcome":{"type":"success"}`); problem != "" {
		t.Errorf("again: %s", problem)
	}
	var turns page[session.Turn]
	w.do(200, &turns, "GET", path+"/turns", "")
	if len(turns.Data) != 1 {
		t.Errorf("%d turns, want 1", len(turns.Data))
	}
	other := strings.Replace(aguiBody, `"go"`, `"stop"`, 1)
	w.do(422, nil, "POST", path+"/ag-ui", other)
}
