package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"loadline/internal/llm/llmtest"
)

func TestA24SecretsStayHere(t *testing.T) {
	const token = "tok_test_0123456789abcdef"
	leak := "my key is " + providerKey + " and API_TOKEN=" + token
	claim, err := json.Marshal(leak)
	if err != nil {
		t.Fatal(err)
	}
	m := &twoModels{extract: []llmtest.Step{submits(fmt.Sprintf(`[{"kind":"fact","claim":%s,"why":"w","evidence":[1]}]`, claim))}}
	arguments := fmt.Sprintf(`{"text":%s}`, claim)
	m.talk = []llmtest.Step{callsWith("Look", arguments), says("seen")}
	w := startMemoryWorld(t, m, memoryOn, prints("Look", leak))
	id := w.newSession()
	w.say(id, leak)
	notices := w.extracts(id, 1)
	for where, v := range map[string]any{"request": string(m.requests()[0].Body), "records": w.records(), "notices": notices} {
		text := fmt.Sprintf("%+v", v)
		if strings.Contains(text, providerKey) || strings.Contains(text, token) {
			t.Errorf("a secret is in the %s: %s", where, text)
		}
	}
	if len(w.records()) != 1 || !strings.Contains(w.records()[0].Claim, "[masked]") {
		t.Errorf("records: %+v", w.records())
	}
}
