package http

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"loadline/internal/session"
)

// OpenAI's Chat Completions (platform.openai.com/docs/api-reference/chat), so that any
// chat program can talk to an agent: its model is a project.
//
// The header Loadline-Session names the session; then the history is there, and the
// last message of the user is its next input. Without the header a new session is made
// of the messages before that one, as an import does it, and the answer names it.
const (
	chatPath      = "/v1/chat/completions"
	modelsPath    = "/v1/models"
	sessionHeader = "Loadline-Session"
)

// chatRequest is what is read of a request. Everything else is let pass: sampling,
// lengths and tools are the manifest's.
type chatRequest struct {
	session.Submission
	project string
	history []json.RawMessage // what comes before the input
	stream  bool
	usage   bool // a last chunk tells it
}

func (s *Server) completeChat(w http.ResponseWriter, r *http.Request) error {
	body, err := s.readForeign(w, r)
	if err != nil {
		return err
	}
	chat, err := readChat(body)
	if err != nil {
		return err
	}
	if err := s.boundInput(chat.Input); err != nil {
		return err
	}
	key, err := submitKey(r.Header, chat.Submission)
	if err != nil {
		return err
	}
	named := r.Header.Get(sessionHeader)
	if key != nil && named == "" {
		return newProblem(codeInvalidParameter, "Idempotency-Key needs "+sessionHeader+": keys belong to a session, and each request without one makes a new session")
	}
	id, err := s.chatSession(r.Context(), chat, named)
	if err != nil {
		return err
	}
	err = s.runChat(w, r, id, chat, key)
	if err != nil && named == "" {
		s.forget(r.Context(), id)
	}
	return err
}

// runChat submits the turn and answers with its text. It fails when the turn was refused.
func (s *Server) runChat(w http.ResponseWriter, r *http.Request, id session.ID, chat chatRequest, key *session.SubmitKey) error {
	turn, replayed, events, err := s.config.Turns.SubmitAndFollow(r.Context(), id, chat.Submission, key)
	if err != nil {
		return err
	}
	setTurnHeaders(w.Header(), turn, replayed)
	w.Header().Set(sessionHeader, string(id))
	if chat.stream {
		s.stream.followNew(w, r, events, newChatStream(chat, turn))
		return nil
	}
	s.answerChat(w, r, events, newChatHead(chat, turn, "chat.completion"))
	return nil
}

// chatSession is the session that a request names, or a new one.
func (s *Server) chatSession(ctx context.Context, chat chatRequest, named string) (session.ID, error) {
	if !s.config.Projects.Has(chat.project) {
		p := fieldProblem("/model", fmt.Sprintf("there is no project %q, which the model must name: GET /v1/models lists them", chat.project))
		p.Status = http.StatusNotFound
		return "", p
	}
	if named != "" {
		id, err := session.ParseID(named)
		if err != nil {
			return "", err
		}
		found, err := s.config.SessionLog.Session(ctx, id)
		if err == nil && found.Project != chat.project {
			err = fieldProblem("/model", fmt.Sprintf("names the project %q, but the session belongs to %q", chat.project, found.Project))
		}
		return id, err
	}
	if !tellsSomething(chat.history) {
		made, err := s.config.Sessions.Create(ctx, chat.project, "", map[string]string{})
		return made.ID, err
	}
	document := append(append([]byte("["), bytes.Join(rawBytes(chat.history), []byte(","))...), ']')
	made, err := s.config.Transfers.Import(ctx, document, chat.project, "openai", "")
	return made.Session.ID, err
}

func rawBytes(messages []json.RawMessage) [][]byte {
	all := make([][]byte, len(messages))
	for i, m := range messages {
		all[i] = m
	}
	return all
}

// tellsSomething reports whether there is anything in messages that a history could
// hold: the importer refuses one with nothing.
func tellsSomething(messages []json.RawMessage) bool {
	for _, raw := range messages {
		var m struct {
			foreignMessage
			ToolCalls []json.RawMessage `json:"tool_calls"`
		}
		var text string
		if json.Unmarshal(raw, &m) != nil || m.Role == "system" || m.Role == "developer" {
			continue
		}
		if len(m.ToolCalls) > 0 || m.Role == "tool" || json.Unmarshal(m.Content, &text) != nil || !blank(text) {
			return true
		}
	}
	return false
}

// forget takes back a session whose first turn was refused. It is made of nothing but
// the request, so when that fails an empty session stays, and the log says so.
func (s *Server) forget(ctx context.Context, id session.ID) {
	if err := s.config.Sessions.Delete(context.WithoutCancel(ctx), id); err != nil {
		s.config.Log.Warn().Err(err).Str("session", string(id)).Msg("session of a refused request stays")
	}
}

func readChat(body []byte) (chat chatRequest, err error) {
	f, err := newForeignForm(body)
	if err != nil {
		return chat, err
	}
	if chat.project = orEmpty(f.text("model")); chat.project == "" {
		f.refuse("model", "must name a project: GET /v1/models lists them")
	}
	messages := f.messages()
	if len(f.errors) == 0 {
		var at int
		if chat.Input, at = f.lastInput(messages); len(f.errors) == 0 {
			chat.history = messages[:at]
		}
	}
	f.take("stream", &chat.stream, "true or false")
	var options struct {
		Usage bool `json:"include_usage"`
	}
	f.take("stream_options", &options, "an object with include_usage")
	chat.Mode, chat.usage = session.ModeEnqueue, options.Usage
	f.refuseMisleading()
	return chat, f.doneForeign()
}

// refuseMisleading refuses what would get another answer than the one that was asked
// for. What only influences the answer is let pass.
func (f *form) refuseMisleading() {
	choices := 1
	if f.take("n", &choices, "1"); choices != 1 {
		f.refuse("n", "must be 1: a session has one history")
	}
	var format struct {
		Type string `json:"type"`
	}
	if f.take("response_format", &format, "an object with a type") && format.Type != "text" {
		f.refuse("response_format", "must be of type text: nothing here makes an agent answer in another form")
	}
	var modalities []string
	f.take("modalities", &modalities, "a list of strings")
	for _, m := range modalities {
		if m != "text" {
			f.refuse("modalities", "must be text alone")
			break
		}
	}
	var choice string
	raw, given := f.fields["tool_choice"]
	if given && (json.Unmarshal(raw, &choice) != nil || choice == "required") {
		f.refuse("tool_choice", "must be none or auto: the agent has its own tools and runs them itself")
	}
}

// answerChat waits for the end of the turn and answers with its text. A client that
// leaves gets none, and the turn goes on.
func (s *Server) answerChat(w http.ResponseWriter, r *http.Request, events Subscription, head chatHead) {
	defer events.Close()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.stream.stop, func() { cancel(errStopping) })()
	var text chatText
	for text.last == nil {
		batch, err := events.Next(ctx)
		if r.Context().Err() != nil {
			return
		}
		if err != nil {
			break
		}
		for i := range batch {
			text.add(&batch[i])
		}
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // else the usual time holds
	if failure, status := text.failure(); failure != nil {
		w.Header().Set("X-Should-Retry", "false") // a new request would be a new turn
		writeBody(w, status, "application/json", openAIFailure{*failure})
		return
	}
	writeBody(w, http.StatusOK, "application/json", text.completion(head))
}

// modelList is what chat programs choose from.
type modelList struct {
	Object string        `json:"object"`
	Data   []openAIModel `json:"data"`
}

type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // 0: nobody knows since when a project has been there
	OwnedBy string `json:"owned_by"`
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) error {
	list := modelList{Object: "list", Data: []openAIModel{}}
	for _, p := range s.config.Projects.List() {
		list.Data = append(list.Data, openAIModel{ID: p.Name, Object: "model", OwnedBy: "loadline"})
	}
	return writeJSON(w, http.StatusOK, list)
}
