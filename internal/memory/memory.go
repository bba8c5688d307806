// Package memory distils the histories of sessions into records, past a pointer in
// each session that always goes forward. Turns never wait for it. Everything that it
// writes to a session goes through the session's owner, together with the notice.
package memory

import (
	"context"

	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/worker"
)

// Histories is what extraction reads of sessions.
type Histories interface {
	Backlog(ctx context.Context, id session.ID) (session.Backlog, error)
	// Notes is the page after an item. It ends before the first item of a turn that
	// has not ended.
	Notes(ctx context.Context, id session.ID, after int64, limit int) ([]session.Note, error)
}

// Backlogs tells about all sessions of a project.
type Backlogs interface {
	Backlogs(ctx context.Context, project string, minBytes int64) ([]session.ID, error)
	BacklogTotal(ctx context.Context, project string) (items, bytes int64, err error)
}

// Letters finds dead letters.
type Letters interface {
	DeadLetter(ctx context.Context, id session.DeadLetterID) (session.DeadLetter, error)
	CountDeadLetters(ctx context.Context) (int64, error)
	LastDeadLetter(ctx context.Context) (made, succeeded session.Time, err error)
}

// Store is all that extraction reads.
type Store interface {
	Histories
	Backlogs
	Letters
}

// Host owns the sessions.
type Host interface {
	// Commit stores a batch that concerns no turn, calls stored, and publishes. It
	// fails with session.ErrNotFound when the session is gone, and with
	// session.ErrStale when it belongs to somebody else now.
	Commit(ctx context.Context, id session.ID, b *session.Batch, stored func()) error
}

// Project is how memory works in a project that has it.
type Project struct {
	Name     string
	Settings manifest.Memory
	Limits   manifest.ToolOutput
	// Engine is what an engine is made of that asks the project's model for
	// extraction. Tools, instructions and bounds on steps and attempts are set here.
	Engine worker.Config
	// Consolidation is likewise for consolidation.
	Consolidation worker.Config
}
