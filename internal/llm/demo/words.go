package demo

import (
	"fmt"
	"strconv"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	shownLines     = 8   // of a result's content
	shownLineBytes = 160 // of each of these lines
)

// help says what the demo can do with these tools.
func help(tools []session.ToolSpec) string {
	var b strings.Builder
	b.WriteString("Here is what you can ask me:\n\n")
	for _, p := range plains() {
		if has(tools, p.tool) {
			fmt.Fprintf(&b, "- `%s`\n", p.example)
		}
	}
	if has(tools, memoryTool) {
		b.WriteString("- `I prefer short answers`, `we decided to use SQLite because it is one file`: things to remember\n")
		b.WriteString("- `what do you remember`: what later sessions are told of them\n")
	}
	if len(tools) > 0 {
		b.WriteString("- `/Glob {\"pattern\":\"**/*\"}`: any tool, with the arguments you want; several such lines run at once\n")
	}
	b.WriteString("- `/slow 200`: count to 200 slowly, to try dropping the stream and resuming it\n")
	b.WriteString("- `/think` and a few words: an answer with reasoning\n")
	if len(tools) == 0 {
		b.WriteString("\nThis project has no tools.")
		return b.String()
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	b.WriteString("\nThe tools of this project: " + strings.Join(names, ", ") + ".")
	return b.String()
}

// announce says what is about to run.
func announce(calls []llm.Block) string {
	if len(calls) == 1 {
		return "Running " + calls[0].Tool + "."
	}
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.Tool
	}
	const shown = 10
	if len(names) > shown {
		names = append(names[:shown], "…")
	}
	return fmt.Sprintf("Running %d tools at once: %s.", len(calls), strings.Join(names, ", "))
}

// describe tells what came back from the tools.
func describe(results []*session.ToolResult) string {
	parts := make([]string, len(results))
	for i, r := range results {
		parts[i] = describeOne(r)
	}
	return strings.Join(parts, "\n\n")
}

func describeOne(r *session.ToolResult) string {
	text := r.Summary
	if !strings.HasPrefix(text, r.Tool) {
		text = r.Tool + ": " + text
	}
	if r.Failed {
		text = "That did not work. " + text
	}
	content := ""
	if r.Content != nil {
		content = *r.Content
	}
	if t := r.Truncated; t != nil {
		content = content[:min(int64(len(content)), t.KeptBytes)] // without the marker
	}
	if strings.TrimSpace(content) != "" {
		text += "\n\n" + excerpt(content)
	}
	if t := r.Truncated; t != nil {
		text += fmt.Sprintf("\n\nThe output was over its limit of %s bytes, so it was cut: %s bytes kept, %s bytes dropped. A narrower request shows the rest.",
			grouped(int64(t.Limit)), grouped(t.KeptBytes), grouped(t.DroppedBytes))
	}
	return text
}

// excerpt shows the first lines of a content in a fence that they cannot close.
func excerpt(content string) string {
	content = strings.TrimRight(content, "\n")
	lines := strings.SplitN(content, "\n", shownLines+1)
	more := 0
	if len(lines) > shownLines {
		more = strings.Count(lines[shownLines], "\n") + 1
		lines = lines[:shownLines]
	}
	for i, line := range lines {
		if len(line) > shownLineBytes {
			lines[i] = strings.ToValidUTF8(line[:shownLineBytes], "") + " …"
		}
	}
	shown := strings.Join(lines, "\n")
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	shown = fence + "\n" + shown + "\n" + fence
	switch more {
	case 0:
		return shown
	case 1:
		return shown + "\n\n… and one more line."
	}
	return shown + "\n\n… and " + grouped(int64(more)) + " more lines."
}

// grouped writes n, which is not negative, with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
