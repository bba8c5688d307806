package session

// TurnID names a turn: "trn_" and the 32 lower-case hex digits of a UUID v7.
type TurnID string

// NewTurnID makes a fresh id. It is safe for concurrent use.
func NewTurnID() TurnID { return TurnID(turnIDPrefix + newHex()) }

// ParseTurnID checks the form of s; any other text is ErrNotFound.
func ParseTurnID(s string) (TurnID, error) {
	if !wellFormed(s, turnIDPrefix) {
		return "", ErrNotFound
	}
	return TurnID(s), nil
}

// TurnState is where a turn stands.
type TurnState string

// The states of a turn; the last four are terminal.
const (
	TurnQueued      TurnState = "queued"
	TurnRunning     TurnState = "running"
	TurnCompleted   TurnState = "completed"
	TurnFailed      TurnState = "failed"
	TurnCancelled   TurnState = "cancelled"
	TurnInterrupted TurnState = "interrupted"
)

// Ended reports whether s is terminal.
func (s TurnState) Ended() bool { return s != TurnQueued && s != TurnRunning }

// Mode says what a submitted turn does when another is running.
type Mode string

// The modes of a turn.
const (
	ModeEnqueue   Mode = "enqueue"   // wait for the turns before it; the default
	ModeReject    Mode = "reject"    // fail with ErrBusy
	ModeInterrupt Mode = "interrupt" // end the running turn at its next safe point, and run before those that wait
	ModeSteer     Mode = "steer"     // enter the running turn at its next step
)

// Submission is what makes a turn.
type Submission struct {
	Input        string `json:"input"`
	Mode         Mode   `json:"mode"`
	ExpectedTurn TurnID `json:"expected_turn,omitempty"` // of mode steer
}

// Turn is one accepted user input, run to a terminal state.
type Turn struct {
	ID        TurnID    `json:"id"`
	SessionID ID        `json:"session_id"`
	State     TurnState `json:"state"`
	Input     string    `json:"input"`
	Mode      Mode      `json:"mode"`
	// ExpectedTurn is the running turn that one of mode steer was submitted for.
	ExpectedTurn TurnID `json:"expected_turn,omitempty"`
	CreatedAt    Time   `json:"created_at"`
	StartedAt    Time   `json:"started_at,omitzero"`
	EndedAt      Time   `json:"ended_at,omitzero"`
	Steps        int    `json:"steps"` // answers of the model stored so far
	Usage        Usage  `json:"usage"` // sum over its steps
	// Restarts is how often a restart of the server has found it running since it last
	// got on.
	Restarts int        `json:"restarts,omitempty"`
	Error    *TurnError `json:"error,omitempty"`
}

// Usage counts tokens. InputTokens includes the cached ones.
type Usage struct {
	InputTokens       int64 `json:"input_tokens"`
	CachedInputTokens int64 `json:"cached_input_tokens"`
	OutputTokens      int64 `json:"output_tokens"`
}

// Plus adds two usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		InputTokens:       u.InputTokens + v.InputTokens,
		CachedInputTokens: u.CachedInputTokens + v.CachedInputTokens,
		OutputTokens:      u.OutputTokens + v.OutputTokens,
	}
}

// maxTokens is more than any request can have.
const maxTokens = 1 << 40

// Bounded is the usage without counts that no request can have: services err.
func (u Usage) Bounded() Usage {
	bound := func(n int64) int64 { return max(0, min(n, maxTokens)) }
	return Usage{bound(u.InputTokens), bound(u.CachedInputTokens), bound(u.OutputTokens)}
}

// TurnError says why a turn did not complete.
type TurnError struct {
	Code   ErrorCode `json:"code"`
	Detail string    `json:"detail"` // one line for a person
}

// ErrorCode is the stable, machine-readable reason of a TurnError.
type ErrorCode string

// The codes of a turn's error, by terminal state.
const (
	// failed
	CodeStepLimit       ErrorCode = "step_limit"
	CodeEmptyResponse   ErrorCode = "empty_response"
	CodeProviderError   ErrorCode = "provider_error"
	CodeRequestTooLarge ErrorCode = "request_too_large"
	CodeInputTooLarge   ErrorCode = "input_too_large"
	CodeInternal        ErrorCode = "internal"
	CodeStorage         ErrorCode = "storage"
	// cancelled
	CodeCancelled      ErrorCode = "cancelled"
	CodeSessionDeleted ErrorCode = "session_deleted"
	CodeSuperseded     ErrorCode = "superseded"
	// interrupted
	CodeServerStopping ErrorCode = "server_stopping"
	CodeServerKilled   ErrorCode = "server_killed"
)

// AsQueued is the turn as its turn.queued event shows it.
func (t Turn) AsQueued() Turn {
	t.State, t.StartedAt, t.EndedAt = TurnQueued, 0, 0
	t.Steps, t.Usage, t.Restarts, t.Error = 0, Usage{}, 0, nil
	return t
}

// AsStarted is the turn as its turn.started event shows it.
func (t Turn) AsStarted() Turn {
	t.State, t.EndedAt = TurnRunning, 0
	t.Steps, t.Usage, t.Restarts, t.Error = 0, Usage{}, 0, nil
	return t
}
