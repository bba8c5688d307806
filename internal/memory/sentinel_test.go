package memory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// Contents of results, arguments of calls, reasoning and errors' texts never reach the
// model of extraction; summaries do.
func TestSentinelsAreInNoRequest(t *testing.T) {
	huge := strings.Repeat("filler ", 350_000) + "RAW-SENTINEL-42" + strings.Repeat(" filler", 350_000)
	w := newWorld(t, setup{})
	id := w.session(
		user("look at it"), thought("RAW-SENTINEL-41"),
		call("Read", `{"path":"RAW-SENTINEL-44"}`), result(3, "Read", "read 1 file", huge, false),
		session.Item{Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: "Read", Raw: "RAW-SENTINEL-45"}},
		result(5, "Read", "Read: failed", "RAW-SENTINEL-43", true),
		assistant("seen"),
	)
	w.model.add(submits(99), submits(1)) // also not after a refused call
	w.settle(id)
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	if len(w.model.requests) != 2 {
		t.Fatalf("%d requests", len(w.model.requests))
	}
	for _, r := range w.model.requests {
		text := fmt.Sprint(r.System, r.Tools) + encode(t, r.Items)
		if strings.Contains(text, "RAW-SENTINEL") {
			t.Error("a sentinel is in the request")
		}
		for _, want := range []string{"read 1 file", "Read: failed", "look at it", "seen"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing", want)
			}
		}
		if len(text) > 20_000 {
			t.Errorf("the request has %d bytes", len(text))
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Case A24: secrets are in no request, record, notice, pass or line of the log.
func TestSecretsAreMaskedEverywhere(t *testing.T) {
	const key, token = "sk-test-PROVIDER-0001", "tok_test_0123456789abcdef"
	leak := fmt.Sprintf("my key is %s and API_TOKEN=%s", key, token)
	w := newWorld(t, setup{secrets: []string{key}})
	id := w.session(user(leak), call("Read", `{}`), result(2, key, leak, leak, false), assistant(leak))
	w.model.add(
		calls(SubmitTool, fmt.Sprintf(`{"records":[{"kind":%q,"claim":"c","why":"w","evidence":[1]}]}`, key)), // is told back to the model
		calls(SubmitTool, fmt.Sprintf(`{"records":[{"kind":"fact","claim":%q,"why":%q,"evidence":[1]}]}`, leak, leak)),
	)
	w.settle(id)
	w.add(id, user(leak))
	w.model.add(reply{err: &llm.Error{Class: llm.ClassFail, Status: 401, Err: fmt.Errorf("bad key %s", key)}})
	w.settle(id)
	w.model.mu.Lock()
	first := encode(t, w.model.requests[0].Items)
	w.model.mu.Unlock()
	seen := map[string]string{
		"request": first, "records": encode(t, w.records()), "notices": encode(t, w.notices(id)),
		"passes": encode(t, w.passes(id)), "log": w.log.String(),
	}
	for where, text := range seen {
		if strings.Contains(text, key) || strings.Contains(text, token) {
			t.Errorf("a secret is in the %s: %s", where, text)
		}
	}
	if len(w.records()) != 1 || !strings.Contains(w.records()[0].Claim, masked) || !strings.Contains(first, masked) {
		t.Errorf("records: %+v", w.records())
	}
}
