// Package worker is the engine: it runs one turn over one history. It asks the
// model, runs the tools that the answer calls, caps what they return, and goes on
// until the model asks for no more. It keeps nothing between turns.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// Log is where the events of a turn go. It is safe for concurrent use.
type Log interface {
	// Commit stores durable events, all or none, and then publishes them. It sets
	// each Seq. It fails with session.ErrStale when the session belongs to somebody
	// else now, and with session.ErrStorage when the disk refused.
	Commit(ctx context.Context, events []session.Event) error
	// Emit publishes an event that is not durable.
	Emit(ev session.Event)
}

// Keeper keeps the whole of outputs that the limit cuts. It is safe for concurrent
// use.
type Keeper interface {
	// Keep keeps the output of result n of a session and says how that went, as the
	// result will say it. It must not fail a turn.
	Keep(id session.ID, n int64, whole string) session.KeptOutput
}

// Config is what an engine is made of. Its zero fields are mistakes, but for
// Window, Budget, Compaction, Instructions, RecallMaxBytes, the interceptors and
// Keeper.
type Config struct {
	Provider       llm.Provider
	Window         llm.Window  // of its model
	Budget         *llm.Budget // of its key; nil is no limit
	Compaction     Compaction
	Tools          *tool.Set
	Instructions   string // the system text of each request
	RecallMaxBytes int    // of History.Recall that a request tells; at least manifest.MinLimitBytes count
	Before         []BeforeTool
	After          []AfterTool
	Keeper         Keeper // nil keeps nothing

	MaxSteps        int           // model requests in one turn
	MaxCallsPerStep int           // calls of one answer that become items
	MaxAttempts     int           // requests of one step, the first included
	RetryMaxWait    time.Duration // longest wait between two attempts
	ToolTimeout     time.Duration // of one call

	Metrics *Metrics
	Log     zerolog.Logger
}

// Engine runs turns, many at once. It never changes.
type Engine struct {
	Config
	limits manifest.ToolOutput
}

// New makes an engine. The limits come first, because a worker without a cap on
// tool output must not exist: limits below the minimum are an error.
func New(limits manifest.ToolOutput, c Config) (*Engine, error) {
	if limits.DefaultMaxBytes < manifest.MinLimitBytes || limits.StepMaxBytes < manifest.MinLimitBytes {
		return nil, fmt.Errorf("tool output limits: default %d and step %d must be at least %d bytes",
			limits.DefaultMaxBytes, limits.StepMaxBytes, manifest.MinLimitBytes)
	}
	if c.Provider == nil || c.Tools == nil || c.Metrics == nil || c.MaxSteps < 1 || c.MaxCallsPerStep < 1 || c.MaxAttempts < 1 || c.ToolTimeout <= 0 {
		return nil, errors.New("worker: incomplete configuration")
	}
	return &Engine{Config: c, limits: limits}, nil
}

// History is the items of one session in order of number. One turn at a time owns
// it; a turn appends what it has committed.
type History struct {
	Items []session.Item
	// Recall is what the session is told beside the instructions: it stays the same
	// from turn to turn. Empty for nothing.
	Recall string
	// Gauge is what the requests of the session have shown so far.
	Gauge Gauge
}

// next is the number of the next item.
func (h *History) next() int64 {
	if len(h.Items) == 0 {
		return 1
	}
	return h.Items[len(h.Items)-1].N + 1
}

// End is a cause that ends a turn's context and says how the turn ends.
type End struct {
	State session.TurnState // cancelled or interrupted
	Why   session.TurnError
}

func (e *End) Error() string { return e.Why.Detail }

// The causes that end a turn from outside.
var (
	ErrCancelled      = &End{session.TurnCancelled, session.TurnError{Code: session.CodeCancelled, Detail: "the turn was cancelled"}}
	ErrSessionDeleted = &End{session.TurnCancelled, session.TurnError{Code: session.CodeSessionDeleted, Detail: "the session was deleted"}}
	ErrSuperseded     = &End{session.TurnCancelled, session.TurnError{Code: session.CodeSuperseded, Detail: "a turn of mode interrupt took its place"}}
	ErrServerStopping = &End{session.TurnInterrupted, session.TurnError{Code: session.CodeServerStopping, Detail: "the server stopped before the turn was done"}}
	ErrServerKilled   = &End{session.TurnInterrupted, session.TurnError{Code: session.CodeServerKilled, Detail: "the server was killed while the turn ran, and the manifest says not to resume (worker.on_restart)"}}
)
