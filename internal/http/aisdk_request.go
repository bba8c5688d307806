package http

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"loadline/internal/session"
)

// What a client of the AI SDK asks for.
const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// submitUIMessage runs a turn for useChat and its like.
func (s *Server) submitUIMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	body, err := s.readForeign(w, r)
	if err != nil {
		return err
	}
	request, err := readUIRequest(body)
	if err != nil {
		return err
	}
	if err := s.boundInput(request.Input); err != nil {
		return err
	}
	var key *session.SubmitKey
	if request.key != "" {
		if key, err = newSubmitKey(request.key, request.Submission); err != nil {
			return err
		}
	}
	return s.followTurn(w, r, id, request.Submission, key, newAISDK())
}

// resumeUIMessage replays the turn that runs, or the next one that will, from its
// beginning. The chat in the path is a name of the client's own: which conversation is
// meant, the session says.
func (s *Server) resumeUIMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	open, err := s.config.TurnLog.OpenTurns(r.Context(), id)
	if err != nil {
		return err
	}
	if len(open) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	events, err := s.config.Streams.SubscribeTurn(r.Context(), id, open[0].ID)
	if err != nil {
		return err
	}
	setTurnHeaders(w.Header(), open[0], false)
	s.stream.follow(w, r, events, newAISDK())
	return nil
}

// speaksAISDK reports whether refusals of this request are one line of text: clients
// of the AI SDK show a body as it is to whoever chats.
func speaksAISDK(r *http.Request) bool {
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/sessions/"), "/")
	switch r.Method {
	case http.MethodPost:
		return rest == "ai-sdk"
	case http.MethodGet, http.MethodHead:
		return strings.HasPrefix(rest, "ai-sdk/") && strings.HasSuffix(rest, "/stream")
	}
	return false
}

// uiRequest is a request for a message of the assistant.
type uiRequest struct {
	session.Submission
	key string // of a turn that is not made twice; empty when each request makes one
}

// uiMessage is a UIMessage: what is read of it.
type uiMessage struct {
	ID    string            `json:"id"`
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

func readUIRequest(body []byte) (request uiRequest, err error) {
	f, err := newForeignForm(body)
	if err != nil {
		return request, err
	}
	chat, trigger, target := orEmpty(f.text("id")), f.text("trigger"), orEmpty(f.text("messageId"))
	if trigger != nil && *trigger != triggerSubmit && *trigger != triggerRegenerate {
		f.refuse("trigger", "is %q: it must be %s or %s", *trigger, triggerSubmit, triggerRegenerate)
	}
	var last uiMessage
	messages := f.messages()
	if len(f.errors) == 0 {
		last, request.Input = f.lastUIMessage(messages)
	}
	request.Mode = session.ModeEnqueue
	request.key = uiKey(chat, orEmpty(trigger), target, last.ID)
	return request, f.doneForeign()
}

// uiKey is the idempotency key of a request; "" when it may be repeated on purpose. A
// new message has an id of its own. One that is edited keeps its id, and may be sent
// again as it was. One that is answered again is known by the answer that is replaced.
func uiKey(chat, trigger, target, message string) string {
	again := trigger == triggerRegenerate
	if again && (target == "" || target == message) || !again && (target != "" || message == "") {
		return ""
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %t %q %q", chat, again, target, message))
	return "ai-sdk:" + hex.EncodeToString(hash[:])
}

// lastUIMessage reads the last message, which must be one of the user; the others are
// the history as the client has it, which counts for nothing here.
func (f *form) lastUIMessage(messages []json.RawMessage) (m uiMessage, text string) {
	at := len(messages) - 1
	if at < 0 {
		f.refuse("messages", "must hold a message of the user")
		return m, ""
	}
	place := fmt.Sprintf("/messages/%d", at)
	switch {
	case json.Unmarshal(messages[at], &m) != nil || m.Role == "":
		f.refuseAt(place, "must be a message: an object with id, role and parts")
	case m.Role != "user":
		f.refuseAt(place, "has the role %q: the last message must be one of the user; tools run on the server, which keeps the history", session.Clean(m.Role))
	case m.Parts == nil:
		f.refuseAt(place+"/parts", "is missing: it must be a list of parts, one of which is of type text")
	default:
		text = f.uiText(place+"/parts", m.Parts)
	}
	return m, text
}

// uiText joins the parts of type text as paragraphs. Data of the client's own beside
// them is let pass; whatever else the user has sent must not be lost without a word.
func (f *form) uiText(place string, parts []json.RawMessage) string {
	var texts []string
	for i, raw := range parts {
		var part struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		err := json.Unmarshal(raw, &part)
		switch {
		case err != nil || part.Type == "text" && part.Text == nil:
			f.refuseAt(fmt.Sprintf("%s/%d", place, i), "must be a part: an object with a type, of type text with a text")
			return ""
		case part.Type == "text":
			texts = append(texts, *part.Text)
		case !strings.HasPrefix(part.Type, "data-"):
			f.refuseAt(fmt.Sprintf("%s/%d", place, i), "is of type %q: only parts of type text can be taken", session.Clean(part.Type))
			return ""
		}
	}
	text := session.Clean(strings.Join(texts, "\n\n"))
	if blank(text) {
		f.refuseAt(place, "must hold some text")
	}
	return text
}
