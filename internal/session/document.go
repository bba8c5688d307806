package session

import "errors"

// DocumentName names a memory document of a project.
type DocumentName string

// The documents that a project can have.
const (
	DocumentDecisions     DocumentName = "decisions"
	DocumentPreferences   DocumentName = "preferences"
	DocumentLessons       DocumentName = "lessons"
	DocumentOpenQuestions DocumentName = "open_questions"
	DocumentSummary       DocumentName = "summary" // what new sessions are told
)

// DocumentNames lists them all.
func DocumentNames() []DocumentName {
	return []DocumentName{DocumentDecisions, DocumentPreferences, DocumentLessons, DocumentOpenQuestions, DocumentSummary}
}

// ParseDocumentName returns ErrNotFound for any other text.
func ParseDocumentName(s string) (DocumentName, error) {
	for _, name := range DocumentNames() {
		if string(name) == s {
			return name, nil
		}
	}
	return "", ErrNotFound
}

// MaxDocumentBytes bounds the text of a document.
const MaxDocumentBytes = 32 << 10

// VersionReason says how a version of a document came to be.
type VersionReason string

// The reasons of a version.
const (
	VersionConsolidated VersionReason = "consolidated" // records were folded into it
	VersionRestored     VersionReason = "restored"     // it says again what an older one said
)

// Document is one version of a memory document: Markdown that cites the records it
// rests on, as "[^12]" does the one with number 12. What is struck, "~~so~~", has been
// superseded.
type Document struct {
	Project      string        `json:"project"`
	Name         DocumentName  `json:"name"`
	Version      int64         `json:"version"`        // 1, 2, 3 … in its document
	Text         string        `json:"text,omitempty"` // never blank; left out of lists
	TextBytes    int           `json:"text_bytes"`
	Records      []RecordRef   `json:"records"` // those that the text cites, ascending; never nil
	Reason       VersionReason `json:"reason"`
	RestoredFrom int64         `json:"restored_from,omitempty"` // the older version
	CreatedAt    Time          `json:"created_at"`
}

// RecordRef names a record that a document cites.
type RecordRef struct {
	N  int64    `json:"n"`
	ID RecordID `json:"id"`
}

// Consolidation is what a pass of consolidation comes to: all of it is stored, or
// nothing.
type Consolidation struct {
	Project string
	// Documents are new versions, each numbered one more than the version that it
	// was made from.
	Documents []Document
	Closed    []ClosedRecord // the whole set that the pass was given
}

// ClosedRecord is a record that has been dealt with.
type ClosedRecord struct {
	ID     RecordID
	Reason CloseReason
}

// ErrConflict refuses a consolidation that no longer fits what is stored: a document
// has another version now, or a record is closed.
var ErrConflict = errors.New("memory was changed meanwhile")

// MaxQueryRunes bounds a search.
const MaxQueryRunes = 1000

// ErrQuery refuses a search that is blank or too long.
var ErrQuery = errors.New("a search has 1 to 1000 characters, not all of them white space")

// Hit is something that a search of a project's memory has found: a document, without
// its text, or a record.
type Hit struct {
	Document *Document `json:"document,omitempty"`
	Record   *Record   `json:"record,omitempty"`
	Excerpt  string    `json:"excerpt"` // of the text around what was found
	Score    float64   `json:"score"`   // higher is better; compares within one search only
}
