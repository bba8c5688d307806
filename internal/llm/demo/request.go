package demo

import (
	"regexp"
	"strconv"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	defaultSlowWords = 200
	maxSlowWords     = 10_000
)

// notice is the first line of the first answer of a session.
const notice = "No model is configured, so this is the demo, which follows a few plain requests. " +
	"For a model, set [model] in a manifest, as docs/manifest.toml shows, and start the server with --manifest FILE."

// reply decides what to say: about the results of the last calls when the request
// ends with some, else to what the user asked.
func reply(r llm.Request) []llm.Block {
	switch {
	case has(r.Tools, submitTool):
		return extract(r)
	case has(r.Tools, finishTool):
		return fold(r)
	}
	if results := lastResults(r.Items); len(results) > 0 {
		return []llm.Block{text(describe(results))}
	}
	blocks := obey(lastInput(r.Items), r.System, r.Tools)
	if answeredBefore(r.Items) {
		return blocks
	}
	for i, b := range blocks {
		if b.Kind == session.KindAssistantMessage {
			blocks[i].Text = notice + "\n\n" + b.Text
			break
		}
	}
	return blocks
}

// lastResults returns the results that the request ends with; lines of the
// server's own may follow them.
func lastResults(items []session.Item) []*session.ToolResult {
	end := len(items)
	for end > 0 && items[end-1].Kind == session.KindSummary {
		end--
	}
	start := end
	for start > 0 && items[start-1].Kind == session.KindToolResult {
		start--
	}
	var results []*session.ToolResult
	for _, it := range items[start:end] {
		results = append(results, it.ToolResult)
	}
	return results
}

func lastInput(items []session.Item) string {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind == session.KindUserMessage {
			return strings.TrimSpace(items[i].UserMessage.Text)
		}
	}
	return ""
}

func answeredBefore(items []session.Item) bool {
	for _, it := range items {
		if it.Kind == session.KindAssistantMessage {
			return true
		}
	}
	return false
}

// obey turns what the user asked into text and calls.
func obey(input, system string, tools []session.ToolSpec) []llm.Block {
	command, rest := input, ""
	if blank := strings.IndexAny(input, " \t\n"); blank >= 0 {
		command, rest = input[:blank], input[blank:]
	}
	switch command {
	case "/slow":
		return []llm.Block{text(count(rest))}
	case "/think":
		return think(strings.TrimSpace(rest))
	case "/help":
		return []llm.Block{text(help(tools))}
	}
	if calls := directCalls(input); len(calls) > 0 {
		return append([]llm.Block{text(announce(calls))}, calls...)
	}
	if said := statements(input); len(said) > 0 {
		return []llm.Block{text(heard(said, has(tools, memoryTool)))}
	}
	if toldForm.MatchString(input) {
		return []llm.Block{text(told(system))}
	}
	p, arguments, understood := understand(input)
	switch {
	case !understood:
		return []llm.Block{text(help(tools))}
	case !has(tools, p.tool):
		return []llm.Block{text("That needs the tool " + p.tool + ", which this project does not have." + p.hint + "\n\n" + help(tools))}
	}
	call := llm.Block{Kind: session.KindToolCall, Tool: p.tool, Text: arguments}
	return []llm.Block{text(announce([]llm.Block{call})), call}
}

func text(s string) llm.Block { return llm.Block{Kind: session.KindAssistantMessage, Text: s} }

// count is a long text in which a gap or a double is easily seen.
func count(argument string) string {
	n, err := strconv.Atoi(strings.TrimSpace(argument))
	if err != nil || n < 1 {
		n = defaultSlowWords
	}
	var b strings.Builder
	b.WriteString("Counting:")
	for i := range min(n, maxSlowWords) {
		b.WriteByte(' ')
		b.WriteString(strconv.Itoa(i + 1))
	}
	return b.String()
}

func think(about string) []llm.Block {
	if about == "" {
		about = "nothing in particular"
	}
	return []llm.Block{
		{Kind: session.KindReasoning, Text: "The user wants me to think about this: " + about + ". A demo has no thoughts of its own, but this is where a model's would be."},
		text("I have thought about it. The reasoning is an item of its own, before this message."),
	}
}

// directCall is a line that names a tool: "/Glob", and its arguments if any.
var directCall = regexp.MustCompile(`(?m)^/([A-Za-z][\w-]*)(?:[ \t\r]+|$)`)

// directCalls reads lines of the form /Tool {json}. The arguments may go on over
// the following lines, and are passed on as they are: what is wrong with them, or
// with the name, the user should hear from the server.
func directCalls(input string) []llm.Block {
	if !strings.HasPrefix(input, "/") {
		return nil
	}
	var calls []llm.Block
	found := directCall.FindAllStringSubmatchIndex(input, -1)
	for i, at := range found {
		end := len(input)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		arguments := strings.TrimSpace(input[at[1]:end])
		if arguments == "" {
			arguments = "{}"
		}
		calls = append(calls, llm.Block{Kind: session.KindToolCall, Tool: input[at[2]:at[3]], Text: arguments})
	}
	return calls
}

func has(tools []session.ToolSpec, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
