// Package tool says what a tool must do, and keeps the set of them that a project
// has. The tools themselves live in folders below, each x.go beside x.md, the text
// that the model is shown.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"loadline/internal/session"
)

// Tool is something that a model can call. One value serves many calls at once.
type Tool interface {
	// Spec is what the model is told. It never changes.
	Spec() session.ToolSpec
	// Run does one call. What the call got wrong is an Output with Failed set, or
	// an error, whose text becomes the content of the result beside whatever the
	// Output holds; neither ends the turn. Run returns soon after ctx ends, and
	// holds at most the capture limit of output in memory.
	Run(ctx context.Context, call Call) (session.Output, error)
}

// Call is one call of a tool.
type Call struct {
	SessionID  session.ID      // that it belongs to
	N          int64           // its number in the session's history
	Arguments  json.RawMessage // a JSON object
	LimitBytes int             // how much of the content will be kept
	// Progress shows a line of progress to whoever watches the stream. Never nil;
	// safe for concurrent use.
	Progress func(line string)
}

// ErrArguments is wrapped by errors about arguments that a tool does not take.
var ErrArguments = errors.New("bad arguments")

// Decode reads the arguments of a call into a struct, strictly: unknown fields and
// wrong types are errors that wrap ErrArguments and say what was wrong. Fields
// that the arguments leave out keep the value they have in into.
func Decode(arguments json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field == "" {
			return fmt.Errorf("%w: they must be an object, not %s", ErrArguments, wrong.Value)
		} else if ok {
			return fmt.Errorf("%w: %q must be %s, not %s", ErrArguments, wrong.Field, article(wrong.Type.Kind().String()), wrong.Value)
		}
		return fmt.Errorf("%w: %s", ErrArguments, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%w: more than one JSON value", ErrArguments)
	}
	return nil
}

func article(kind string) string {
	switch kind {
	case "int", "int64":
		return "an integer"
	case "bool":
		return "a boolean"
	case "slice":
		return "an array"
	}
	return "a " + kind
}

// Set is the tools of a project, in order of their names. It never changes.
type Set struct {
	tools []Tool
	specs []session.ToolSpec
}

// NewSet makes a set. Two tools of the same name are a programmer's mistake.
func NewSet(tools ...Tool) *Set {
	s := &Set{tools: slices.Clone(tools)}
	slices.SortFunc(s.tools, func(a, b Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	for i, t := range s.tools {
		spec := t.Spec()
		if i > 0 && s.specs[i-1].Name == spec.Name {
			panic("two tools are named " + spec.Name)
		}
		if spec.Effect == "" {
			spec.Effect = session.EffectPossible
		}
		s.specs = append(s.specs, spec)
	}
	return s
}

// With is a set of these tools and more.
func (s *Set) With(more ...Tool) *Set { return NewSet(slices.Concat(s.tools, more)...) }

// Find returns the tool with exactly this name.
func (s *Set) Find(name string) (Tool, bool) {
	i, found := slices.BinarySearchFunc(s.specs, name, func(spec session.ToolSpec, name string) int {
		return strings.Compare(spec.Name, name)
	})
	if !found {
		return nil, false
	}
	return s.tools[i], true
}

// Effect is what a call of the tool with this name can do: none when there is no
// such tool.
func (s *Set) Effect(name string) session.Effect {
	for _, spec := range s.specs {
		if spec.Name == name {
			return spec.Effect
		}
	}
	return session.EffectNone
}

// Specs lists what the model is told. The caller must not change it.
func (s *Set) Specs() []session.ToolSpec { return s.specs }

// Names lists the names, sorted.
func (s *Set) Names() []string {
	names := make([]string, len(s.specs))
	for i, spec := range s.specs {
		names[i] = spec.Name
	}
	return names
}
