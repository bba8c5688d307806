package host_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"loadline/internal/session"
	"loadline/internal/transfer"
)

// newSession makes an empty session, or one with the broken history of another
// program.
func (s *sequence) newSession() session.ID {
	if rapid.IntRange(0, 3).Draw(s.T, "imported") > 0 {
		made, err := s.life.host.Create(s.ctx, "default", "", nil)
		if err != nil {
			s.Fatal(err)
		}
		return made.ID
	}
	var messages []string
	for range rapid.IntRange(1, 12).Draw(s.T, "messages") {
		message := rapid.SampledFrom([]string{
			`{"role":"user","content":"%s"}`, `{"role":"assistant","content":"%s"}`, `{"role":"assistant","content":""}`,
			`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"Print","arguments":"{\"pad\":\"%[1]s\"}"}},{"id":"b","function":{"name":"Gone","arguments":"%[1]s"}}]}`,
			`{"role":"tool","tool_call_id":"a","content":"%s"}`, `{"role":"tool","tool_call_id":"b","content":"%s"}`,
		}).Draw(s.T, "message")
		if strings.Contains(message, "%") {
			message = fmt.Sprintf(message, strings.Repeat("z", rapid.SampledFrom([]int{0, 1, 500, 100_000}).Draw(s.T, "message bytes")))
		}
		messages = append(messages, message)
	}
	document := `[{"role":"user","content":"from elsewhere"},` + strings.Join(messages, ",") + "]"
	read, err := transfer.Read([]byte(document), "", s.life.settings.limits.CallLimit)
	if err != nil {
		s.Fatal(err)
	}
	made, err := s.life.host.Import(s.ctx, "default", "", nil, read.Items)
	if err != nil {
		s.Fatalf("import: %v", err)
	}
	if made.State != session.StateIdle || made.Queued != 0 {
		s.Fatalf("the imported session is %s with %d queued turns", made.State, made.Queued)
	}
	s.foreign = read.Items[len(read.Items)-1].N
	return made.ID
}
