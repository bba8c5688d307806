package session

import "encoding/json"

// ItemKind tells which field of an Item is set.
type ItemKind string

// The kinds of item.
const (
	KindUserMessage      ItemKind = "user_message"
	KindAssistantMessage ItemKind = "assistant_message"
	KindReasoning        ItemKind = "reasoning"
	KindToolCall         ItemKind = "tool_call"
	KindToolResult       ItemKind = "tool_result"
	KindSummary          ItemKind = "summary"
)

// Item is one entry of a session's history. Exactly the field of its kind is set.
// An item is never changed once it is stored.
type Item struct {
	N         int64    `json:"n"` // 1, 2, 3 … in its session
	SessionID ID       `json:"session_id"`
	TurnID    TurnID   `json:"turn_id"`
	At        Time     `json:"at"`
	Kind      ItemKind `json:"kind"`

	UserMessage      *UserMessage      `json:"user_message,omitempty"`
	AssistantMessage *AssistantMessage `json:"assistant_message,omitempty"`
	Reasoning        *Reasoning        `json:"reasoning,omitempty"`
	ToolCall         *ToolCall         `json:"tool_call,omitempty"`
	ToolResult       *ToolResult       `json:"tool_result,omitempty"`
	Summary          *Summary          `json:"summary,omitempty"`
}

// UserMessage is what the person said.
type UserMessage struct {
	Text string `json:"text"`
}

// AssistantMessage is what the model said.
type AssistantMessage struct {
	Text       string `json:"text"`
	Incomplete bool   `json:"incomplete,omitempty"` // the answer ended before its end
}

// Reasoning is what the model thought, byte for byte. It may be sent back only to
// the same provider and model.
type Reasoning struct {
	Text      string `json:"text"` // may be empty beside a signature or redacted data
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"` // opaque data in place of the text
}

// ToolCall is one call that the model asked for. Its number is the call's id.
type ToolCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // a JSON object; absent when Raw is set
	Raw       string          `json:"raw,omitempty"`       // what the model wrote instead of an object
	// Effect is what the call could do when it was stored, which is before it ran;
	// empty means EffectPossible, or nothing when Raw is set. Of a call without a result, after a crash, it is
	// what is known.
	Effect Effect `json:"effect,omitempty"`
}

// ToolResult is the answer to one call.
type ToolResult struct {
	CallN      int64       `json:"call_n"` // the item number of its call
	Tool       string      `json:"tool"`
	Failed     bool        `json:"failed"`
	Summary    string      `json:"summary"` // one or two lines, never blank
	Content    *string     `json:"content,omitempty"`
	Truncated  *Truncated  `json:"truncated,omitempty"`
	KeptOutput *KeptOutput `json:"kept_output,omitempty"`
}

// Truncated is the fact that a result's content was cut. KeptBytes and
// DroppedBytes add up to OriginalBytes; the marker counts as neither.
type Truncated struct {
	Limit         int   `json:"limit"` // bytes
	OriginalBytes int64 `json:"original_bytes"`
	KeptBytes     int64 `json:"kept_bytes"`
	DroppedBytes  int64 `json:"dropped_bytes"`
}

// KeptOutput says that the whole output can be read on, or why it was not kept.
type KeptOutput struct {
	Bytes int64  `json:"bytes,omitempty"`
	Error string `json:"error,omitempty"` // "quota" or "io"
}

// Summary is a line of the server's own, or one that stands for a range of items.
type Summary struct {
	Text  string `json:"text"`
	FromN int64  `json:"from_n,omitempty"`
	ToN   int64  `json:"to_n,omitempty"`
}
