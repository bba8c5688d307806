package http

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"loadline/internal/session"
)

const maxKeyBytes = 255 // of an Idempotency-Key

func (s *Server) submitTurn(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	body, err := s.readSubmission(w, r)
	if err != nil {
		return err
	}
	key, err := submitKey(r.Header, body)
	if err != nil {
		return err
	}
	if prefers(r, eventStream, "application/json") {
		return s.followTurn(w, r, id, body, key, native{})
	}
	turn, replayed, err := s.config.Turns.Submit(r.Context(), id, body, key)
	if err != nil {
		return err
	}
	setTurnHeaders(w.Header(), turn, replayed)
	return writeJSON(w, http.StatusAccepted, turn)
}

// followTurn submits a turn, and answers with its events in the form of a protocol.
func (s *Server) followTurn(w http.ResponseWriter, r *http.Request, id session.ID, body session.Submission, key *session.SubmitKey, form translation) error {
	turn, replayed, events, err := s.config.Turns.SubmitAndFollow(r.Context(), id, body, key)
	if err != nil {
		return err
	}
	setTurnHeaders(w.Header(), turn, replayed)
	s.stream.followNew(w, r, events, form)
	return nil
}

func setTurnHeaders(h http.Header, turn session.Turn, replayed bool) {
	h.Set("Location", sessionPath(turn.SessionID)+"/turns/"+string(turn.ID))
	if replayed {
		h.Set("Idempotency-Replayed", "true")
	}
}

// readSubmission reads the body of a new turn and fills in its defaults.
func (s *Server) readSubmission(w http.ResponseWriter, r *http.Request) (sub session.Submission, err error) {
	body, err := readBody(w, r, s.config.Settings.BodyMaxBytes)
	if err != nil {
		return sub, err
	}
	f, err := newForm(body)
	if err != nil {
		return sub, err
	}
	_, given := f.fields["input"]
	input, mode, expected := f.text("input"), f.text("mode"), f.text("expected_turn")
	if !given {
		f.refuse("input", "is missing: it must be a string that is not blank")
	} else if input != nil && blank(*input) {
		f.refuse("input", "is blank: it must hold some text")
	}
	sub = session.Submission{Input: orEmpty(input), Mode: session.ModeEnqueue, ExpectedTurn: session.TurnID(orEmpty(expected))}
	if mode != nil {
		sub.Mode = session.Mode(*mode)
	}
	f.checkMode(sub)
	return sub, f.done()
}

func (f *form) checkMode(sub session.Submission) {
	modes := []session.Mode{session.ModeEnqueue, session.ModeReject, session.ModeInterrupt, session.ModeSteer}
	if !slices.Contains(modes, sub.Mode) {
		f.refuse("mode", "must be one of %q", modes)
		return
	}
	_, err := session.ParseTurnID(string(sub.ExpectedTurn))
	switch steers := sub.Mode == session.ModeSteer; {
	case steers && sub.ExpectedTurn == "":
		f.refuse("expected_turn", "is missing: mode %q needs the id of the running turn", session.ModeSteer)
	case steers && err != nil:
		f.refuse("expected_turn", "must be the id of a turn")
	case !steers && sub.ExpectedTurn != "":
		f.refuse("expected_turn", "goes with mode %q only", session.ModeSteer)
	}
}

// submitKey reads the Idempotency-Key header; nil when there is none.
func submitKey(h http.Header, body session.Submission) (*session.SubmitKey, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return nil, nil
	}
	key := values[0]
	if len(values) != 1 || len(key) > maxKeyBytes || !visible(key) {
		return nil, newProblem(codeInvalidParameter, fmt.Sprintf("Idempotency-Key must be one value of 1 to %d visible ASCII characters", maxKeyBytes))
	}
	return newSubmitKey(key, body)
}

func newSubmitKey(key string, body session.Submission) (*session.SubmitKey, error) {
	canonical, err := session.EncodeJSON(body)
	if err != nil {
		return nil, err
	}
	return &session.SubmitKey{Key: key, BodyHash: sha256.Sum256(canonical)}, nil
}

// visible reports whether s has visible ASCII characters alone, at least one.
func visible(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != ""
}

func (s *Server) cancelTurn(w http.ResponseWriter, r *http.Request) error {
	id, turnID, err := turnIDs(r)
	if err != nil {
		return err
	}
	turn, err := s.config.Turns.Cancel(r.Context(), id, turnID)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, turn)
}

func (s *Server) getTurn(w http.ResponseWriter, r *http.Request) error {
	id, turnID, err := turnIDs(r)
	if err != nil {
		return err
	}
	turn, err := s.config.TurnLog.Turn(r.Context(), id, turnID)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, turn)
}

func (s *Server) listTurns(w http.ResponseWriter, r *http.Request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	after, limit, err := pageQuery(r, session.ParseTurnID)
	if err != nil {
		return err
	}
	p, err := readPage(after, limit, func(after session.TurnID, limit int) ([]session.Turn, error) {
		return s.config.TurnLog.Turns(r.Context(), id, after, limit)
	}, func(last session.Turn) session.TurnID { return last.ID })
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}

func (s *Server) listQueue(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	open, err := s.config.TurnLog.OpenTurns(r.Context(), id)
	if err != nil {
		return err
	}
	waiting := slices.DeleteFunc(open, func(t session.Turn) bool { return t.State != session.TurnQueued })
	return writeJSON(w, http.StatusOK, page[session.Turn]{Data: append([]session.Turn{}, waiting...)})
}

func (s *Server) getDiagnosis(w http.ResponseWriter, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	d, err := s.config.Turns.Diagnose(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, d)
}

func turnIDs(r *http.Request) (session.ID, session.TurnID, error) {
	id, err := sessionID(r)
	if err != nil {
		return "", "", err
	}
	turnID, err := session.ParseTurnID(chi.URLParam(r, "turn_id"))
	return id, turnID, err
}
