package session

// Lease is the right to write to a session, until somebody else takes it over.
type Lease struct {
	SessionID  ID
	Generation int64 // raised at each take-over, checked in every commit
}

// Batch is what one commit adds to a session: all of it is stored, or nothing.
type Batch struct {
	Lease  Lease
	Events []Event    // durable ones; the commit gives each its Seq, in this order
	Key    *SubmitKey // stored with a submitted turn; nil when the client named none
	// Extracted is stored with the notices of memory extraction; else nil.
	Extracted *Extracted
}

// SubmitKey makes a submitted turn repeatable without doing it twice.
type SubmitKey struct {
	Key      string   // the client's Idempotency-Key
	BodyHash [32]byte // of what it came with
	TurnID   TurnID   // the turn that it made
}
