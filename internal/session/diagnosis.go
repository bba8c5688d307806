package session

// Diagnosis is what a session looks like from outside, for a person who asks why it
// does what it does. It is read without changing anything, and while turns run.
type Diagnosis struct {
	SessionID  ID     `json:"session_id"`
	State      State  `json:"state"`
	Generation int64  `json:"generation"` // raised at each take-over
	LastSeq    int64  `json:"last_seq"`
	Items      int64  `json:"items"`
	Running    *Pulse `json:"running,omitempty"`
	// Queue lists the turns that wait, in the order in which they will run.
	Queue       []TurnID    `json:"queue"`
	OpenCalls   []OpenCall  `json:"open_calls"`
	NextRequest NextRequest `json:"next_request"`
	Memory      MemoryLag   `json:"memory"`
}

// Pulse is the running turn's.
type Pulse struct {
	TurnID   TurnID `json:"turn_id"`
	Steps    int    `json:"steps"`
	Restarts int    `json:"restarts"`
	LastSign Time   `json:"last_sign_at,omitzero"` // of its last commit or delta; absent when another process has it
	Stalled  bool   `json:"stalled"`               // for longer than worker.stall_after
}

// OpenCall is a call without a result.
type OpenCall struct {
	N      int64  `json:"n"`
	TurnID TurnID `json:"turn_id"`
	Tool   string `json:"tool"`
	Effect Effect `json:"effect"`
	At     Time   `json:"at"`
}

// NextRequest projects the request that the session would send now.
type NextRequest struct {
	HistoryBytes int64         `json:"history_bytes"` // with nothing left out
	Bytes        int64         `json:"bytes"`         // as it would be sent
	Tokens       int64         `json:"tokens"`        // projected, of Bytes
	LimitTokens  int64         `json:"limit_tokens"`
	Fits         bool          `json:"fits"`
	FixedBytes   int64         `json:"fixed_bytes"` // instructions and tools
	Largest      []Contributor `json:"largest"`     // items, at most 10, the largest first
}

// Contributor is an item's part of a request.
type Contributor struct {
	N         int64    `json:"n"`
	Kind      ItemKind `json:"kind"`
	Tool      string   `json:"tool,omitempty"`
	Bytes     int64    `json:"bytes"`      // whole
	SentBytes int64    `json:"sent_bytes"` // as it would be sent; 0 when it would not
}

// MemoryLag is what extraction has before it; all 0 where there is no memory.
type MemoryLag struct {
	Pointer int64 `json:"pointer"` // number of the last item consumed
	Items   int64 `json:"items"`   // after it
	Bytes   int64 `json:"bytes"`   // of their notes
}
