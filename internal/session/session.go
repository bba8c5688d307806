// Package session holds the nouns of Loadline as data: sessions, turns, items,
// events, tool outputs. They have one JSON form, which is stored, streamed and
// served. The package imports nothing of ours and does no input or output.
package session

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/google/uuid"
)

const (
	idPrefix     = "ses_"
	turnIDPrefix = "trn_"
)

// ID names a session: "ses_" and the 32 lower-case hex digits of a UUID v7, so
// that ids sort by their time of creation.
type ID string

// NewID makes a fresh id. It is safe for concurrent use.
func NewID() ID { return ID(idPrefix + newHex()) }

// ParseID checks the form of s. It returns ErrNotFound for any other text: a
// malformed id names nothing.
func ParseID(s string) (ID, error) {
	if !wellFormed(s, idPrefix) {
		return "", ErrNotFound
	}
	return ID(s), nil
}

// State tells whether a session has a running turn.
type State string

// The states of a session.
const (
	StateIdle    State = "idle"
	StateRunning State = "running"
)

// Session is a durable conversation in one project.
type Session struct {
	ID        ID                `json:"id"`
	Project   string            `json:"project"`
	Title     string            `json:"title"`
	Metadata  map[string]string `json:"metadata"` // never nil: {} when empty
	State     State             `json:"state"`
	Queued    int               `json:"queued"`   // turns waiting for the running one
	LastSeq   int64             `json:"last_seq"` // of its newest durable event; 0 before the first
	CreatedAt Time              `json:"created_at"`
	UpdatedAt Time              `json:"updated_at"`
}

// Errors that callers branch on. Each layer wraps them with what it knows.
var (
	// ErrNotFound means that no such session, turn or item exists.
	ErrNotFound = errors.New("not found")
	// ErrBusy refuses a turn with mode reject while another runs in the same session.
	ErrBusy = errors.New("session is running a turn")
	// ErrNotRunning refuses to steer a turn that does not run, or not any more.
	ErrNotRunning = errors.New("the expected turn is not running")
	// ErrQueueFull refuses a turn when too many wait in the same session.
	ErrQueueFull = errors.New("too many turns are queued in this session")
	// ErrKeyReused refuses an idempotency key that came with another body before.
	ErrKeyReused = errors.New("idempotency key was used with another body")
	// ErrUnknownProject refuses a session for a project that the manifest does not name.
	ErrUnknownProject = errors.New("unknown project")
	// ErrProjectRequired refuses a session without a project when there is no obvious one.
	ErrProjectRequired = errors.New("project is required")
	// ErrStale fails a commit by an owner from whom the session has been taken over.
	ErrStale = errors.New("session was taken over by another owner")
	// ErrStorage means that the disk or the database refused; nothing was stored.
	ErrStorage = errors.New("storage failed")
	// ErrOutputGone means that a whole output was kept and has been removed since.
	ErrOutputGone = errors.New("the output is not kept any more")
	// ErrStopping refuses new work while the server stops.
	ErrStopping = errors.New("server is stopping")
	// ErrSlow ends a subscription whose reader lags too far; it resumes by cursor.
	ErrSlow = errors.New("reader is too slow")
)

func newHex() string {
	id := uuid.Must(uuid.NewV7())
	return hex.EncodeToString(id[:])
}

func wellFormed(s, prefix string) bool {
	digits, ok := strings.CutPrefix(s, prefix)
	if !ok || len(digits) != 32 {
		return false
	}
	for _, c := range []byte(digits) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
