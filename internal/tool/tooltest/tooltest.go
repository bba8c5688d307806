// Package tooltest holds tools for the tests of other packages.
package tooltest

import (
	"context"
	"encoding/json"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// Func is a tool made of a function. It takes any arguments.
type Func struct {
	Name string
	// RunFunc does a call. Nil returns the summary "done" and no content.
	RunFunc func(context.Context, tool.Call) (session.Output, error)
}

// Spec is what the model is told.
func (f Func) Spec() session.ToolSpec {
	return session.ToolSpec{Name: f.Name, Description: "Does what the test wants.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

// Run does a call.
func (f Func) Run(ctx context.Context, call tool.Call) (session.Output, error) {
	if f.RunFunc == nil {
		return session.Output{Summary: "done"}, nil
	}
	return f.RunFunc(ctx, call)
}

// Returning is a tool that answers each call with content.
func Returning(name, content string) Func {
	return Func{Name: name, RunFunc: func(context.Context, tool.Call) (session.Output, error) {
		return session.Output{Summary: name + ": done", Content: &content}, nil
	}}
}

// Panicking is a tool that panics with value in each call.
func Panicking(name string, value any) Func {
	return Func{Name: name, RunFunc: func(context.Context, tool.Call) (session.Output, error) { panic(value) }}
}

// Blocking is a tool whose calls wait until they are released or their context ends.
// Each call sends on Entered when it runs.
type Blocking struct {
	Func
	Entered chan struct{} // unbuffered
	release chan struct{}
}

// NewBlocking makes a Blocking tool.
func NewBlocking(name string) *Blocking { return newBlocking(name, false) }

// NewStubborn makes a Blocking tool that ignores its context: only Release ends its
// calls.
func NewStubborn(name string) *Blocking { return newBlocking(name, true) }

func newBlocking(name string, stubborn bool) *Blocking {
	b := &Blocking{Entered: make(chan struct{}), release: make(chan struct{})}
	b.Func = Func{Name: name, RunFunc: func(ctx context.Context, _ tool.Call) (session.Output, error) {
		if stubborn {
			ctx = context.WithoutCancel(ctx)
		}
		return b.wait(ctx)
	}}
	return b
}

func (b *Blocking) wait(ctx context.Context) (session.Output, error) {
	select {
	case b.Entered <- struct{}{}:
	case <-b.release:
	case <-ctx.Done():
		return session.Output{}, context.Cause(ctx)
	}
	select {
	case <-b.release:
		return session.Output{Summary: b.Name + ": released"}, nil
	case <-ctx.Done():
		return session.Output{}, context.Cause(ctx)
	}
}

// Release ends all calls, those to come too. It may be called once.
func (b *Blocking) Release() { close(b.release) }
