package session

// Outcome is how a pass of extraction ended.
type Outcome string

// The outcomes of a pass. After the first two the pointer has moved.
const (
	OutcomeStaged         Outcome = "staged"
	OutcomeEmpty          Outcome = "empty" // a valid submission without records
	OutcomeProviderError  Outcome = "provider_error"
	OutcomeContextTooLong Outcome = "context_too_long"
	OutcomeToolError      Outcome = "tool_error"
	OutcomeInvalid        Outcome = "invalid"
	OutcomeNoSubmission   Outcome = "no_submission"
	OutcomeTurnLimit      Outcome = "turn_limit"
	OutcomeStorageError   Outcome = "storage_error"
	OutcomeCancelled      Outcome = "cancelled"
)

// Outcomes lists them all.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeStaged, OutcomeEmpty, OutcomeProviderError, OutcomeContextTooLong, OutcomeToolError,
		OutcomeInvalid, OutcomeNoSubmission, OutcomeTurnLimit, OutcomeStorageError, OutcomeCancelled,
	}
}

// Succeeded reports whether the pass has consumed its items.
func (o Outcome) Succeeded() bool { return o == OutcomeStaged || o == OutcomeEmpty }

// Trigger is what started a pass.
type Trigger string

// The triggers of a pass.
const (
	TriggerThreshold Trigger = "threshold" // enough new history
	TriggerRequest   Trigger = "request"   // somebody asked for it
	TriggerRedrive   Trigger = "redrive"   // somebody asked for a dead letter to be read again
)

// PassID names a pass: "pas_" and the 32 lower-case hex digits of a UUID v7.
type PassID string

// NewPassID makes a fresh id. It is safe for concurrent use.
func NewPassID() PassID { return PassID(passIDPrefix + newHex()) }

// ParsePassID checks the form of s; any other text is ErrNotFound.
func ParsePassID(s string) (PassID, error) {
	if !wellFormed(s, passIDPrefix) {
		return "", ErrNotFound
	}
	return PassID(s), nil
}

// Pass is what one pass of extraction did: an entry of the audit trail.
type Pass struct {
	ID           PassID       `json:"id"`
	SessionID    ID           `json:"session_id"`
	Trigger      Trigger      `json:"trigger"`
	FromN        int64        `json:"from_n"` // its first item
	ToN          int64        `json:"to_n"`   // its last item
	Items        int64        `json:"items"`
	ChunkBytes   int64        `json:"chunk_bytes"` // as the model was shown them
	Outcome      Outcome      `json:"outcome"`
	Records      int64        `json:"records"` // staged
	Steps        int          `json:"steps"`   // answers of the model
	Usage        Usage        `json:"usage"`
	StartedAt    Time         `json:"started_at"`
	DurationMS   int64        `json:"duration_ms"`
	DeadLetterID DeadLetterID `json:"dead_letter_id,omitempty"` // that it made, or that it read again
}

// DeadLetterID names a dead letter: "ded_" and the 32 lower-case hex digits of a
// UUID v7.
type DeadLetterID string

// NewDeadLetterID makes a fresh id. It is safe for concurrent use.
func NewDeadLetterID() DeadLetterID { return DeadLetterID(deadLetterIDPrefix + newHex()) }

// ParseDeadLetterID checks the form of s; any other text is ErrNotFound.
func ParseDeadLetterID(s string) (DeadLetterID, error) {
	if !wellFormed(s, deadLetterIDPrefix) {
		return "", ErrNotFound
	}
	return DeadLetterID(s), nil
}

// DeadLetter is a range of items that extraction has set aside, because it failed on
// them too often. It is gone when a redrive has read all of it.
type DeadLetter struct {
	ID        DeadLetterID `json:"id"`
	Project   string       `json:"project"`
	SessionID ID           `json:"session_id"`
	FromN     int64        `json:"from_n"`
	ToN       int64        `json:"to_n"`
	Outcome   Outcome      `json:"outcome"`  // of the last pass over it
	Failures  int          `json:"failures"` // that counted
	CreatedAt Time         `json:"created_at"`
}

// ExtractStart says what came of the wish to extract from a session now.
type ExtractStart string

// What can come of it.
const (
	ExtractStarted ExtractStart = "started"
	ExtractRunning ExtractStart = "already_running" // what is there is read by the pass that runs, or by the next one
	ExtractNothing ExtractStart = "nothing_to_do"
	ExtractOff     ExtractStart = "memory_off" // in the session's project
)

// Note is what extraction may see of an item. There is no room in it for what tools
// put out, what they were called with, or what a model thought.
type Note struct {
	N      int64
	Kind   ItemKind
	Tool   string // of a call or a result
	Failed bool   // the result of a call
	Text   string // of a message, or the summary of a result
}

// noteBytes is what a note costs beside its texts when a model reads it.
const noteBytes = 40

// Bytes is about how long the note is when a model reads it; 0 when there is nothing
// to read.
func (n *Note) Bytes() int64 {
	if n.Text == "" && n.Tool == "" {
		return 0
	}
	return int64(noteBytes + len(n.Tool) + len(n.Text))
}

// NoteOf is what extraction may see of an item: nothing of a summary that stands for
// items, because it sees those.
func NoteOf(it *Item) Note {
	n := Note{N: it.N, Kind: it.Kind}
	switch {
	case it.UserMessage != nil:
		n.Text = it.UserMessage.Text
	case it.AssistantMessage != nil:
		n.Text = it.AssistantMessage.Text
	case it.ToolCall != nil:
		n.Tool = it.ToolCall.Tool
	case it.ToolResult != nil:
		n.Tool, n.Failed, n.Text = it.ToolResult.Tool, it.ToolResult.Failed, it.ToolResult.Summary
	case it.Summary != nil && it.Summary.ToN == 0:
		n.Text = it.Summary.Text
	}
	return n
}

// Backlog is what extraction has before it in one session.
type Backlog struct {
	Project string
	Pointer int64 // number of the last item consumed; 0 at first
	Items   int64 // after the pointer
	Bytes   int64 // of their notes
	Retry   Retrying
}

// Retrying is what the next pass of a session must know of its last ones. The zero
// value is that there is nothing to know.
type Retrying struct {
	More      bool  // the backlog is read in several passes, and this is not the first
	ToN       int64 // last item of the range that Failures counts; 0: none
	MaxItems  int   // the pass has at most so many; 0: what fits
	ItemBytes int   // so much of its one item is shown; 0: what fits
	Failures  int   // passes up to ToN that count toward a dead letter
}

// Extracted is what extraction adds to its session together with its notices, all or
// nothing: the pointer moves with the records.
type Extracted struct {
	Passes []Pass // one for each notice
	// From and To are what is consumed: the pointer must stand before From, and
	// moves to To. Zero: it stays.
	From, To       int64
	Bytes          int64 // of the notes from From to To
	Records        []Record
	Retry          *Retrying    // instead of what it was; nil leaves it
	MadeLetter     *DeadLetter  // for the range that is consumed
	RedrivenLetter DeadLetterID // that this pass has read again
	RedrivenTo     int64        // up to this item; the letter is gone with its last
}
