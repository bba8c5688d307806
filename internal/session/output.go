package session

import "encoding/json"

// Output is what a tool returns, and what interceptors see and may replace.
//
// A tool that itself left bytes out of Content says how many in Unseen. One that
// chose a head and a tail of a longer output for Content sets Full to the whole
// that it collected, and Unseen to the bytes produced less len(*Content). Who
// replaces one of Content, Unseen and Full replaces all three.
type Output struct {
	Summary string  // one or two lines, at most 4096 bytes, never blank
	Content *string // nil when there is none
	Failed  bool    // the tool could not do what it was asked
	Unseen  int64   // bytes that the tool left out of Content
	Full    string  // the whole collected output; usually empty
}

// Text makes the content of an Output.
func Text(s string) *string { return &s }

// ToolSpec is a tool as the model is told of it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of its arguments, an object
	// Effect is EffectRead or EffectPossible. Empty, for a tool that does not say,
	// means EffectPossible.
	Effect Effect `json:"effect"`
}

// Effect says whether doing a call twice can do harm.
type Effect string

// The effects of calls.
const (
	EffectRead     Effect = "read"   // it changes nothing
	EffectPossible Effect = "effect" // it may change something
	EffectNone     Effect = "none"   // it never runs
)
