package manifest

// MinLimitBytes is the smallest limit of a tool output: room for the note that
// tells how much was cut, and some text before it.
const MinLimitBytes = 128

// ToolOutput is the section [worker.tool_output]: how many bytes of UTF-8 a tool
// may put into the history. All limits are at least MinLimitBytes; none is
// unlimited. It is the only type for these limits.
type ToolOutput struct {
	// DefaultMaxBytes is the limit of a result of any tool without an entry in
	// PerTool. Default 16384.
	DefaultMaxBytes int `toml:"default_max_bytes" min:"128"`
	// StepMaxBytes is what the results of one step share. Default 131072.
	StepMaxBytes int `toml:"step_max_bytes" min:"128"`
	// CaptureMaxBytes is how much output a tool collects in memory before it only
	// goes on counting. Default 8 MiB.
	CaptureMaxBytes int `toml:"capture_max_bytes" min:"128"`
	// PerTool is the limit of single tools by registered name, exact case.
	PerTool map[string]int `toml:"per_tool,omitempty" min:"128" keys:"tool"`
}

// Limit is the largest result that the tool of this name can get, in bytes.
func (t ToolOutput) Limit(tool string) int {
	limit, own := t.PerTool[tool]
	if !own {
		limit = t.DefaultMaxBytes
	}
	return max(MinLimitBytes, min(limit, t.StepMaxBytes))
}

// CallLimit is the limit in bytes of one call of the tool in a step of so many
// calls, which share the budget of the step evenly, never to less than
// MinLimitBytes.
func (t ToolOutput) CallLimit(tool string, calls int) int {
	share := max(MinLimitBytes, t.StepMaxBytes/max(1, calls))
	return min(t.Limit(tool), share)
}
