package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

const (
	recordIDPrefix     = "rec_"
	passIDPrefix       = "pas_"
	deadLetterIDPrefix = "ded_"
)

// RecordID names a record: "rec_" and 32 lower-case hex digits.
type RecordID string

// NewRecordID derives the id of the index-th record, from 0 on, that a pass over the
// items from fromN to toN of a session has staged. The same place has the same id,
// so a repeated pass cannot double a record.
func NewRecordID(id ID, fromN, toN int64, index int) RecordID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d-%d %d", id, fromN, toN, index))
	return RecordID(recordIDPrefix + hex.EncodeToString(sum[:16]))
}

// ParseRecordID checks the form of s; any other text is ErrNotFound.
func ParseRecordID(s string) (RecordID, error) {
	if !wellFormed(s, recordIDPrefix) {
		return "", ErrNotFound
	}
	return RecordID(s), nil
}

// RecordKind says what a record tells.
type RecordKind string

// The kinds of record.
const (
	RecordPreference   RecordKind = "preference"
	RecordDecision     RecordKind = "decision" // with its reason
	RecordConstraint   RecordKind = "constraint"
	RecordOpenQuestion RecordKind = "open_question"
	RecordLesson       RecordKind = "lesson"
	RecordFact         RecordKind = "fact"
)

// RecordKinds lists them all.
func RecordKinds() []RecordKind {
	return []RecordKind{RecordPreference, RecordDecision, RecordConstraint, RecordOpenQuestion, RecordLesson, RecordFact}
}

// RecordState tells whether a record waits for consolidation.
type RecordState string

// The states of a record.
const (
	RecordOpen   RecordState = "open"
	RecordClosed RecordState = "closed"
)

// CloseReason says what consolidation did with a record.
type CloseReason string

// The reasons to close a record.
const (
	CloseApplied    CloseReason = "applied"    // it is in a document
	CloseDuplicate  CloseReason = "duplicate"  // a document said it before
	CloseSuperseded CloseReason = "superseded" // a later record says otherwise
	CloseDiscarded  CloseReason = "discarded"  // not worth keeping
)

// CloseReasons lists them all.
func CloseReasons() []CloseReason {
	return []CloseReason{CloseApplied, CloseDuplicate, CloseSuperseded, CloseDiscarded}
}

// Record is one thing worth remembering that extraction has found in a session. It
// belongs to the project, and stays when its session is deleted.
type Record struct {
	ID         RecordID    `json:"id"`
	N          int64       `json:"n"` // by which documents cite it; given when it is stored
	Project    string      `json:"project"`
	SessionID  ID          `json:"session_id"`
	Kind       RecordKind  `json:"kind"`
	Claim      string      `json:"claim"`
	Why        string      `json:"why"`      // why it will matter
	Evidence   []int64     `json:"evidence"` // numbers of items, ascending
	StaleAfter Time        `json:"stale_after,omitzero"`
	State      RecordState `json:"state"`
	Reason     CloseReason `json:"reason,omitempty"` // of a closed one
	CreatedAt  Time        `json:"created_at"`
	ClosedAt   Time        `json:"closed_at,omitzero"`
}
