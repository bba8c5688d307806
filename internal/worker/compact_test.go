package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// talk is a long conversation whose requests do not fit, and an engine that sums it
// up with a model that follows a script.
func talk(t *testing.T, script ...scripted) (*workbench, *answers) {
	t.Helper()
	w := newWorkbench(t, []tool.Tool{})
	var p past
	for i := range 40 {
		p.user(fmt.Sprintf("question %d %s", i, strings.Repeat("x", 500)))
		p.says(fmt.Sprintf("answer %d %s", i, strings.Repeat("y", 500)))
	}
	p.user("go")
	for i := range p.items {
		p.items[i].SessionID, p.items[i].TurnID = w.turn.SessionID, w.turn.ID
	}
	w.history.Items = p.items
	w.engine.Window = llm.Window{ContextTokens: 12_001, OutputTokens: 1} // 21,000 bytes
	summer := &answers{script: script}
	w.engine.Compaction = Compaction{Provider: summer, Window: llm.Window{ContextTokens: 12_001, OutputTokens: 1}, MaxCalls: 3, SummaryBytes: 1024}
	return w, summer
}

func failsWith(class llm.Class) scripted {
	return scripted{err: &llm.Error{Class: class, Err: errors.New("no")}}
}

func TestOldMessagesAreSummedUp(t *testing.T) {
	tooLong, busy, broken := failsWith(llm.ClassShrink), failsWith(llm.ClassRetry), failsWith(llm.ClassFail)
	text := func(s string) scripted { return scripted{deltas: says(s)} }
	for _, test := range []struct {
		name   string
		script []scripted
		asked  int
		says   []string // in the summary
		rule   bool     // it was shortened by rule, as a whole or in part
	}{
		{"in pieces", []scripted{text("first part"), text("both parts")}, 2, []string{"both parts"}, false},
		{"again when it is busy, by shorter pieces", []scripted{busy, text("all of it")}, 2, []string{"all of it"}, false},
		{"by rule when it is too much for the model", []scripted{tooLong, tooLong, tooLong}, 3, []string{"question 0", "answer 3"}, true},
		{"in smaller pieces", []scripted{tooLong, text("first part")}, 3, []string{"both parts"}, false},
		{"by rule when the model fails", []scripted{broken}, 1, []string{"question 0", "answer 3"}, true},
		{"by rule when the model says nothing", []scripted{{deltas: says(" \n")}}, 1, []string{"question 0"}, true},
		{"by rule when the model declines", []scripted{{deltas: says("I will not"), stop: llm.StopRefusal}}, 1, []string{"question 0"}, true},
		{"what was summed up stays when the rest fails", []scripted{text("first part"), broken}, 2, []string{"first part", "answer 3"}, true},
		{"to the length that is allowed", []scripted{text("first"), text(strings.Repeat("z", 5000))}, 2, []string{"bytes …"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, summer := talk(t, test.script...)
				summer.otherwise = says("both parts")
				if turn := w.runLoose(t); turn.State != session.TurnCompleted {
					t.Fatalf("turn = %s %+v", turn.State, turn.Error)
				}
				if len(summer.requests) != test.asked {
					t.Errorf("the model was asked %d times, want %d", len(summer.requests), test.asked)
				}
				for i, r := range summer.requests {
					if err := llmtest.Check(r); err != nil || requestBytes(r) > 21_430 {
						t.Errorf("request %d of %d bytes: %v", i, requestBytes(r), err)
					}
				}
				summary := w.summary(t)
				for _, want := range test.says {
					if !strings.Contains(summary, want) {
						t.Errorf("the summary lacks %q:\n%s", want, summary)
					}
				}
				if byRule := strings.Contains(summary, "shortened by rule"); byRule != test.rule || len(summary) > 1024+len(summaryHead) {
					t.Errorf("by rule = %v, want %v; %d bytes:\n%s", byRule, test.rule, len(summary), summary)
				}
			})
		})
	}
}

// runLoose runs a turn on a history that no store knows.
func (w *workbench) runLoose(t *testing.T) session.Turn {
	t.Helper()
	ended, err := w.engine.Run(t.Context(), t.Context(), w.log, w.history, w.turn, false)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// summary is the one that the turn has stored, before its answer, and that its
// request began with.
func (w *workbench) summary(t *testing.T) string {
	t.Helper()
	items := w.log.items()
	if len(items) != 2 || items[0].Summary == nil || items[0].Summary.FromN != 1 || items[0].Summary.ToN < 40 || items[1].N != items[0].N+1 {
		t.Fatalf("stored are %+v", items)
	}
	request := w.model.requests[0]
	if first := request.Items[0].Summary; first == nil || *first != *items[0].Summary {
		t.Errorf("the request begins with %+v", request.Items[0])
	}
	if err := llmtest.Check(request); err != nil || requestBytes(request) > 21_430/2+1500 {
		t.Errorf("the request has %d bytes: %v", requestBytes(request), err)
	}
	return items[0].Summary.Text
}

func TestSummaryIsMadeOnceAndGrows(t *testing.T) {
	w, summer := talk(t)
	summer.otherwise, w.model.counts = says("the past"), true
	w.runLoose(t)
	asked := len(summer.requests)
	for range 30 {
		w.turn.ID = session.NewTurnID()
		user := w.history.Items[0]
		user.N, user.TurnID = w.history.next(), w.turn.ID
		user.UserMessage = &session.UserMessage{Text: strings.Repeat("z", 1000)}
		w.history.Items = append(w.history.Items, user)
		w.runLoose(t)
	}
	more := summer.requests[asked:]
	if len(more) < 2 || len(more) > 6 {
		t.Errorf("30 turns more took %d summaries, want a few", len(more))
	}
	if len(more) > 0 && !strings.Contains(more[0].Items[0].UserMessage.Text, "The summary of what came before:\n\nthe past\n") {
		t.Error("a new summary is not made of the one before")
	}
	last := w.model.requests[len(w.model.requests)-1]
	summaries := 0
	for _, item := range last.Items {
		if item.Summary != nil {
			summaries++
		}
	}
	if summaries != 1 {
		t.Errorf("the request has %d summaries", summaries)
	}
}

func TestSummaryOfACancelledTurnIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := talk(t, scripted{hang: true})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-time.After(time.Minute)
			cancel(ErrCancelled)
		}()
		ended, err := w.engine.Run(ctx, t.Context(), w.log, w.history, w.turn, false)
		if err != nil || ended.State != session.TurnCancelled || len(w.log.items()) != 0 || len(w.model.requests) != 0 {
			t.Errorf("turn = %s, error %v, items %+v", ended.State, err, w.log.items())
		}
	})
}

func TestSkeletonIsBounded(t *testing.T) {
	h := long(5000)
	for _, most := range []int{leastSummaryBytes, 1000, 8192, 1 << 20} {
		for name, earlier := range map[string]string{"": "", "with an earlier one": strings.Repeat("before ", 10_000)} {
			got := skeleton(earlier, h.Items, most)
			if len(got) > most || most <= 8192 && len(got) < most/3 || !strings.Contains(got, "calls of tools: Read ") {
				t.Errorf("skeleton of %d bytes, at most %d are allowed %s:\n%.600s", len(got), most, name, got)
			}
		}
	}
}
