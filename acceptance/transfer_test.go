package acceptance

import (
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// imports makes a session out of a document, which the server must take.
func (c *client) imports(document any, query string) (made session.Imported) {
	c.t.Helper()
	answer, text := c.send(http.MethodPost, "/v1/sessions/import"+query, document)
	if answer.StatusCode != http.StatusCreated {
		c.t.Fatalf("import: %s %s", answer.Status, text)
	}
	if err := json.Unmarshal(text, &made); err != nil {
		c.t.Fatal(err)
	}
	return made
}

// A session that was exported is imported as it was, and both go on.
func TestExportedSessionIsImportedAsItWas(t *testing.T) {
	p := launch(t, "", bashed("seq 100000", "echo short"), says("counted"))
	id := p.newSession()
	if turn := p.settleTurn(id, "count"); turn.State != session.TurnCompleted {
		t.Fatalf("turn: %+v", turn)
	}
	answer, document := p.send(http.MethodGet, fmt.Sprintf("/v1/sessions/%s/export", id), nil)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("export: %s %s", answer.Status, document)
	}
	made := p.imports(json.RawMessage(document), "")
	p.crash() // what was acknowledged is there
	ours := cmpopts.IgnoreFields(session.Item{}, "SessionID", "TurnID", "At")
	kept := cmpopts.IgnoreFields(session.ToolResult{}, "KeptOutput") // it stayed behind
	if diff := cmp.Diff(p.items(id), p.items(made.Session.ID), ours, kept); diff != "" {
		t.Errorf("the import differs (-exported +imported):\n%s", diff)
	}
	if made.Format != "loadline" || made.Items != 6 || made.RepairsTotal != 1 || made.Repairs[0].Code != session.RepairOutputDropped {
		t.Errorf("the report: %+v", made)
	}
	for _, id := range []session.ID{id, made.Session.ID} {
		p.model.Add(says("as before"))
		if turn := p.settleTurn(id, "and now?"); turn.State != session.TurnCompleted {
			t.Errorf("turn: %+v", turn)
		}
	}
}

// settleTurn posts a turn and waits for its end.
func (p *process) settleTurn(id session.ID, input string) session.Turn {
	p.t.Helper()
	return p.await(id, p.post(id, input).ID)
}

// Sessions that died elsewhere, of one result that no request could hold, or of pairs
// that no service takes, take the next turn here.
func TestDeadSessionsOfOthersGoOnHere(t *testing.T) {
	type fields = map[string]any
	wall := strings.Repeat("src/some/folder/file.go\n", 125_000/24)
	for _, c := range []struct {
		name     string
		document any
		repairs  string
		kinds    string
	}{
		{"openai, 125 KB", fields{"messages": []fields{
			{"role": "system", "content": "Be kind."},
			{"role": "user", "content": "list all"},
			{"role": "assistant", "content": nil, "tool_calls": []fields{{"id": "a", "type": "function", "function": fields{"name": "Glob", "arguments": `{"pattern":"**/*"}`}}}},
			{"role": "tool", "tool_call_id": "a", "content": wall},
		}}, "system_dropped result_truncated", "user_message tool_call tool_result"},
		{"openai, broken pairs", []fields{
			{"role": "user", "content": "do it"},
			{"role": "assistant", "content": "", "tool_calls": []fields{
				{"id": "a", "function": fields{"name": "one", "arguments": `{"broken`}}, {"id": "b", "function": fields{"name": "two", "arguments": `{}`}},
			}},
			{"role": "tool", "tool_call_id": "b", "content": "second first"},
			{"role": "user", "content": "hello?"},
			{"role": "tool", "tool_call_id": "ghost", "content": "from nowhere"},
		}, "raw_arguments orphan_call result_moved orphan_result", "user_message tool_call tool_call tool_result tool_result user_message summary"},
		{"anthropic, 125 KB and a call without an end", fields{"system": "Be kind.", "messages": []fields{
			{"role": "user", "content": "list all"},
			{"role": "assistant", "content": []fields{{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "Glob", "input": fields{}}, {"type": "tool_use", "id": "t2", "name": "Glob", "input": fields{}}}},
			{"role": "user", "content": []fields{{"type": "tool_result", "tool_use_id": "t1", "content": wall}}},
		}}, "system_dropped result_truncated orphan_call", "user_message assistant_message tool_call tool_call tool_result tool_result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "")
			p.model.Limits = llmtest.Limits{PerMinute: 30_000, Window: 32_000}
			made := p.imports(c.document, "?title=Rescued")
			var repairs []string
			for _, r := range made.Repairs {
				repairs = append(repairs, string(r.Code))
			}
			if diff := cmp.Diff(strings.Fields(c.repairs), repairs, cmpopts.SortSlices(stdcmp.Less[string])); diff != "" {
				t.Errorf("repairs (-want +got):\n%s", diff)
			}
			if got := kinds(p.items(made.Session.ID)); got != c.kinds {
				t.Errorf("items %q, want %q", got, c.kinds)
			}
			for _, r := range results(p.items(made.Session.ID)) {
				if r.Content != nil && len(*r.Content) > 16384 {
					t.Errorf("a result of %d bytes came in", len(*r.Content))
				}
			}
			p.model.Add(says("alive"))
			if turn := p.settleTurn(made.Session.ID, "and?"); turn.State != session.TurnCompleted {
				t.Errorf("the next turn: %+v", turn)
			}
			if problems := p.model.Problems(); len(problems) > 0 {
				t.Errorf("the model refused %q", problems)
			}
		})
	}
}

// A server that is killed while it imports has all of the session afterwards, or
// nothing of it.
func TestKilledImportLeavesNothingHalfDone(t *testing.T) {
	p := launch(t, "")
	const messages = 6000
	text := strings.Repeat(`{"role":"user","content":"one"},{"role":"assistant","content":"two"},`, messages/2)
	document := json.RawMessage("[" + strings.TrimSuffix(text, ",") + "]")
	for range 3 {
		p.importAndKill(document)
		p.boot()
		for _, s := range pages[session.Session](p.client, "/v1/sessions") {
			if n := s.LastSeq; n == 0 || s.State != session.StateIdle {
				t.Errorf("session %s is %s and has %d events", s.ID, s.State, n)
			}
		}
	}
}

// importAndKill kills the server as soon as something of the session is on disk.
func (p *process) importAndKill(document json.RawMessage) {
	p.t.Helper()
	before, answered := p.listed(), make(chan struct{})
	request := p.request(http.MethodPost, "/v1/sessions/import", document)
	go func() {
		defer close(answered)
		if answer, err := p.http.Do(request); err == nil {
			answer.Body.Close()
		}
	}()
	for p.listed() == before && !closed(answered) {
	}
	p.kill()
	<-answered
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (c *client) listed() int { return len(pages[session.Session](c, "/v1/sessions")) }
