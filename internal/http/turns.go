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
	follow := prefers(r, eventStream, "application/json")
	var turn session.Turn
	var replayed bool
	var events Subscription
	if follow {
		turn, replayed, events, err = s.config.Turns.SubmitAndFollow(r.Context(), id, body, key)
	} else {
		turn, replayed, err = s.config.Turns.Submit(r.Context(), id, body, key)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", sessionPath(id)+"/turns/"+string(turn.ID))
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	if !follow {
		return writeJSON(w, http.StatusAccepted, turn)
	}
	s.stream.followNew(w, r, events, appendEvent)
	return nil
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
	valid := len(values) == 1 && key != "" && len(key) <= maxKeyBytes
	for _, c := range []byte(key) {
		valid = valid && c > ' ' && c <= '~'
	}
	if !valid {
		return nil, newProblem(codeInvalidParameter, fmt.Sprintf("Idempotency-Key must be one value of 1 to %d visible ASCII characters", maxKeyBytes))
	}
	canonical, err := session.EncodeJSON(body)
	if err != nil {
		return nil, err
	}
	return &session.SubmitKey{Key: key, BodyHash: sha256.Sum256(canonical)}, nil
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
