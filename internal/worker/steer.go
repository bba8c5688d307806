package worker

import (
	"context"

	"loadline/internal/session"
)

// Helm is a Log through which the running turn is steered. The Log of a turn need
// not be one.
type Helm interface {
	// Asking is the context of the turn's requests. When it ends, with an *End as its
	// cause, the turn ends at its next safe point: while the model is asked at once,
	// but never while its calls run.
	Asking() context.Context
	// Enter stores the inputs that wait to enter the turn, as items from number n on,
	// publishes them and returns them; usually there are none.
	Enter(ctx context.Context, n int64) ([]session.Item, error)
}

// nextStep takes in what has been said since the last step, and returns the context
// of the next one's requests.
func (r *run) nextStep(ctx context.Context) (context.Context, error) {
	helm, steered := r.sink.(Helm)
	if steered && ctx.Err() == nil {
		ctx = helm.Asking()
	}
	if ctx.Err() != nil {
		return ctx, context.Cause(ctx)
	}
	if !steered {
		return ctx, nil
	}
	items, err := helm.Enter(context.WithoutCancel(ctx), r.history.next())
	r.history.Items = append(r.history.Items, items...)
	return ctx, err
}
