package http

import (
	"context"
	"io"
	"net/http"

	"loadline/internal/manifest"
	"loadline/internal/session"
)

// Sessions makes and changes sessions.
type Sessions interface {
	// Create makes an idle session. An empty project means the obvious one.
	Create(ctx context.Context, project, title string, metadata map[string]string) (session.Session, error)
	// Update sets what is not nil; metadata is replaced whole.
	Update(ctx context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error)
	// Delete cancels what runs in the session, and deletes all of it.
	Delete(ctx context.Context, id session.ID) error
}

// SessionLog reads stored sessions.
type SessionLog interface {
	Session(ctx context.Context, id session.ID) (session.Session, error)
	// Sessions lists those whose title holds a text, with a smaller id than before,
	// newest first; "" is all.
	Sessions(ctx context.Context, title string, before session.ID, limit int) ([]session.Session, error)
}

// Turns takes and cancels turns.
type Turns interface {
	// Submit returns when the turn is stored. With a key that the session has seen
	// with the same body it returns that turn as it is now, and replayed.
	Submit(ctx context.Context, id session.ID, submission session.Submission, key *session.SubmitKey) (turn session.Turn, replayed bool, err error)
	// SubmitAndFollow also yields the events of the turn alone, from its turn.queued;
	// io.EOF follows its terminal event.
	SubmitAndFollow(ctx context.Context, id session.ID, submission session.Submission, key *session.SubmitKey) (turn session.Turn, replayed bool, events Subscription, err error)
	// Cancel returns the turn after its terminal event is stored.
	Cancel(ctx context.Context, id session.ID, turn session.TurnID) (session.Turn, error)
	// Diagnose looks at a session without changing anything.
	Diagnose(ctx context.Context, id session.ID) (session.Diagnosis, error)
}

// TurnLog reads stored turns.
type TurnLog interface {
	Turn(ctx context.Context, id session.ID, turn session.TurnID) (session.Turn, error)
	// Turns lists those with a larger id than after, ascending.
	Turns(ctx context.Context, id session.ID, after session.TurnID, limit int) ([]session.Turn, error)
	// OpenTurns lists the running turn, if there is one, then the others in the order
	// in which they will run.
	OpenTurns(ctx context.Context, id session.ID) ([]session.Turn, error)
}

// History reads stored items and events, ascending, with a number above after.
type History interface {
	Item(ctx context.Context, id session.ID, n int64) (session.Item, error)
	Items(ctx context.Context, id session.ID, after int64, limit int) ([]session.Item, error)
	// Events lists none above upTo.
	Events(ctx context.Context, id session.ID, after, upTo int64, limit int) ([]session.Event, error)
}

// Outputs has the whole of outputs of which the history holds a part.
type Outputs interface {
	// Output opens that of result n, of which so many bytes were kept. It fails with
	// session.ErrOutputGone when it was removed since.
	Output(id session.ID, n, keptBytes int64) (io.ReadSeekCloser, error)
}

// Subscription is a place in a session's stream. It is an alias of an unnamed type,
// so that what it is made by need not know this package.
type Subscription = interface {
	// Next waits for the next events, in order. The slice is its own again with the
	// next call. io.EOF ends the stream, session.ErrSlow a reader that lags.
	Next(ctx context.Context) ([]session.Event, error)
	Close()
}

// Streams follows sessions.
type Streams interface {
	Subscribe(ctx context.Context, id session.ID, from session.Cursor) (Subscription, error)
	// SubscribeTurn yields the events of one turn alone, from its turn.queued; io.EOF
	// follows its terminal event.
	SubscribeTurn(ctx context.Context, id session.ID, turn session.TurnID) (Subscription, error)
}

// Projects tells what a project is given. An empty name means the obvious one.
type Projects interface {
	// Has reports whether the manifest names a project.
	Has(project string) bool
	// List is all of them, by name.
	List() []Project
	Tools(project string) ([]Tool, error)
	// Manifest is the effective manifest as a JSON object, its secrets masked.
	Manifest(project string) (any, error)
}

// Project is a project as a client sees it.
type Project struct {
	Name       string              `json:"name"`
	Permission manifest.Permission `json:"permission"`
	Model      string              `json:"model"`             // provider and name
	Memory     bool                `json:"memory"`            // whether it is enabled
	Default    bool                `json:"default,omitempty"` // whether it is meant where none is named
}

// Page is the page for people.
type Page interface {
	http.Handler
	// Has reports whether there is a file at a path.
	Has(path string) bool
}

// Tool is a tool as a client sees it.
type Tool struct {
	session.ToolSpec
	LimitBytes int `json:"limit_bytes"` // how much of a result's content is kept
}
