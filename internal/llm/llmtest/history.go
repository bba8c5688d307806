package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// history reads the messages of a request one by one, and refuses what a strict
// service refuses.
type history struct {
	request *Request
	ids     map[string]bool // of all calls so far
	open    []string        // ids of calls whose result must come next
}

func checkHead(model string, stream bool, messages int) error {
	switch {
	case model == "":
		return errors.New("model: is required")
	case !stream:
		return errors.New("stream: must be true, this server streams only")
	case messages == 0:
		return errors.New("messages: at least one is required")
	}
	return nil
}

func (h *history) tool(name string, schema json.RawMessage) error {
	if !validName(name) {
		return fmt.Errorf("tools: the name %q does not match ^[a-zA-Z0-9_-]{1,64}$", name)
	}
	if slices.Contains(h.request.Tools, name) {
		return fmt.Errorf("tools: two are named %q", name)
	}
	var object struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(schema, &object) != nil || object.Type != "object" {
		return fmt.Errorf("tools: the schema of %q is not that of an object", name)
	}
	h.request.Tools = append(h.request.Tools, name)
	return nil
}

func (h *history) user(text string) error {
	if text == "" {
		return errors.New("content is missing")
	}
	if err := h.settled(); err != nil {
		return err
	}
	h.request.Messages = append(h.request.Messages, Message{Role: "user", Text: text})
	return nil
}

func (h *history) settled() error {
	if len(h.open) > 0 {
		return fmt.Errorf("the calls %q have no result directly after them", h.open)
	}
	return nil
}

func (h *history) assistant(text, reasoning string) {
	h.request.Messages = append(h.request.Messages, Message{Role: "assistant", Text: text, Reasoning: reasoning})
}

func (h *history) call(id, tool, arguments string) error {
	switch {
	case id == "":
		return errors.New("a call has no id")
	case h.ids[id]:
		return fmt.Errorf("two calls have the id %q", id)
	case !validName(tool):
		return fmt.Errorf("the name %q of a call does not match ^[a-zA-Z0-9_-]{1,64}$", tool)
	case !strings.HasPrefix(strings.TrimSpace(arguments), "{") || !json.Valid([]byte(arguments)):
		return fmt.Errorf("the arguments of call %q are no JSON object", id)
	}
	if err := h.settled(); err != nil && len(h.last().Calls) == 0 {
		return err
	}
	h.ids[id] = true
	h.open = append(h.open, id)
	h.last().Calls = append(h.last().Calls, CallSeen{ID: id, Tool: tool, Arguments: arguments})
	return nil
}

// assistantDone checks the assistant message that has just been read.
func (h *history) assistantDone() error {
	m := h.last()
	if m.Text == "" && len(m.Calls) == 0 {
		return errors.New("an assistant message has neither text nor calls")
	}
	if len(h.open) != len(m.Calls) {
		return h.settled()
	}
	return nil
}

func (h *history) result(id, text string, failed bool) error {
	switch {
	case text == "":
		return errors.New("the content of a result is missing")
	case !slices.Contains(h.open, id):
		return fmt.Errorf("the result for %q does not follow a call with that id", id)
	case h.open[0] != id:
		return fmt.Errorf("the result for %q comes before that for %q, whose call was first", id, h.open[0])
	}
	h.open = h.open[1:]
	if h.last().Role != "tool" {
		h.request.Messages = append(h.request.Messages, Message{Role: "tool"})
	}
	h.last().Results = append(h.last().Results, ResultSeen{ID: id, Text: text, Failed: failed})
	return nil
}

func (h *history) end() error {
	if err := h.settled(); err != nil {
		return err
	}
	if len(h.request.Messages) == 0 || h.last().Role == "assistant" {
		return errors.New("the last message must be the user's or a result")
	}
	return nil
}

func (h *history) last() *Message {
	if len(h.request.Messages) == 0 {
		return &Message{}
	}
	return &h.request.Messages[len(h.request.Messages)-1]
}

func validName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 64
}
