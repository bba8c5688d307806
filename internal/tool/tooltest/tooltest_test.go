package tooltest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"loadline/internal/session"
	"loadline/internal/tool"
)

func TestBlockingToolsEndWhenTold(t *testing.T) {
	tests := []struct {
		name           string
		tool           *Blocking
		cancel         bool
		release, ended bool
	}{
		{"released", NewBlocking("x"), false, true, true},
		{"cancelled", NewBlocking("x"), true, false, true},
		{"neither", NewBlocking("x"), false, false, false},
		{"stubborn, cancelled", NewStubborn("x"), true, false, false},
		{"stubborn, released", NewStubborn("x"), true, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := test.tool
				x.Entered, x.release = make(chan struct{}), make(chan struct{}) // of this bubble
				ctx, cancel := context.WithCancel(t.Context())
				ended := false
				go func() {
					_, _ = x.Run(ctx, tool.Call{})
					ended = true
				}()
				<-x.Entered
				if test.cancel {
					cancel()
				}
				if test.release {
					x.Release()
				}
				synctest.Wait()
				if ended != test.ended {
					t.Errorf("ended %v, want %v", ended, test.ended)
				}
				cancel()
				if !test.release {
					x.Release()
				}
			})
		})
	}
}

func TestSimpleTools(t *testing.T) {
	if out, err := Returning("Echo", "abc").Run(t.Context(), tool.Call{}); err != nil || *out.Content != "abc" || out.Summary == "" {
		t.Errorf("Returning: %+v, %v", out, err)
	}
	if out, err := (Func{Name: "x"}).Run(t.Context(), tool.Call{}); err != nil || out.Content != nil || out.Summary == "" {
		t.Errorf("Func: %+v, %v", out, err)
	}
	bad := errors.New("bad")
	f := Func{Name: "x", RunFunc: func(context.Context, tool.Call) (session.Output, error) { return session.Output{}, bad }}
	if _, err := f.Run(t.Context(), tool.Call{}); !errors.Is(err, bad) {
		t.Errorf("Func: %v, want %v", err, bad)
	}
	defer func() {
		if recover() != "ouch" {
			t.Error("Panicking did not panic with its value")
		}
	}()
	_, _ = Panicking("x", "ouch").Run(t.Context(), tool.Call{})
}
