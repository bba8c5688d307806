package demo

import (
	"regexp"
	"strconv"
	"strings"

	"loadline/internal/session"
)

// plain is a request in plain words, and the call that it means.
type plain struct {
	tool      string
	example   string // for the help
	hint      string // how a project gets this tool, when it may lack it
	form      *regexp.Regexp
	arguments func(groups []string) any
}

type pathArguments struct {
	Path string `json:"path"`
}

type writeArguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type patternArguments struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
}

type queryArguments struct {
	Query string `json:"query"`
}

type belowArguments struct {
	Below int `json:"below"`
}

type commandArguments struct {
	Command string `json:"command"`
}

// memoryTool is there in a project that has a memory.
const memoryTool = "MemorySearch"

// primesTool is there only in a project whose model is the demo.
const primesTool = "Primes"

// name is one word, or several in quotes.
const name = "(\"[^\"]+\"|'[^']+'|`[^`]+`|\\S+)"

// What people write, each with its arguments as groups.
var (
	listForm        = regexp.MustCompile(`(?i)^(?:ls|(?:list|show)(?: me)?(?: all)?(?: the)?(?: files)?)(?: in ` + name + `)?$|^(?:what|which) files are (?:there|here)$`)
	listPatternForm = regexp.MustCompile(`(?i)^(?:list|show|find)(?: me)?(?: all)?(?: the)? (\S*\*\S*)(?: files)?$`)
	readForm        = regexp.MustCompile(`(?i)^(?:read|open|show|print|cat)(?: me)?(?: the)?(?: file)? ` + name + `$`)
	grepForm        = regexp.MustCompile(`(?i)^(?:search for|search|look for|find|grep for|grep)(?: the word)? (.+)$`)
	primesForm      = regexp.MustCompile(`(?i)^(?:list|show|count)(?: me)?(?: all)?(?: the)? primes (?:below|under|up to) ([\d,]{1,9})$`)
	writeForm       = regexp.MustCompile(`(?is)^(?:write|save) (.+) (?:to|in|into)(?: the)?(?: file)? ` + name + `$`)
	toldForm        = regexp.MustCompile(`(?i)^what (?:do|can) you remember[?.!]*$`)
	recallForm      = regexp.MustCompile(`(?i)^(?:recall|what do you (?:know|remember) about) (.+)$`)
	runForm         = regexp.MustCompile("(?is)^run (.+)$")
)

// plains are tried in this order.
func plains() []plain {
	return []plain{
		{tool: "Glob", example: "list the files", form: listForm, arguments: listArguments},
		{tool: primesTool, example: "list the primes below 100000", form: primesForm, arguments: belowArgument},
		{tool: "Glob", example: "list *.md files", form: listPatternForm, arguments: listPatternArguments},
		{tool: "Read", example: "read README.md", form: readForm, arguments: func(g []string) any {
			return pathArguments{unquote(g[1])}
		}},
		{tool: "Grep", example: "search for TODO", form: grepForm, arguments: func(g []string) any {
			return patternArguments{Pattern: regexp.QuoteMeta(unquote(g[1]))}
		}},
		{tool: memoryTool, example: "what do you remember about reports", form: recallForm, arguments: func(g []string) any {
			return queryArguments{unquote(g[1])}
		}, hint: " A manifest with enabled = true in [memory] brings it."},
		{tool: "Write", example: "write hello to notes.txt", form: writeForm, arguments: func(g []string) any {
			return writeArguments{unquote(g[2]), unquote(g[1])}
		}, hint: ` A project with permission = "write" has it.`},
		{tool: "Bash", example: "run date", form: runForm, arguments: func(g []string) any {
			return commandArguments{unquote(g[1])}
		}, hint: " A manifest with enabled = true in [tools.Bash] brings it."},
	}
}

func listArguments(groups []string) any {
	folder := strings.TrimRight(unquote(groups[1]), "/")
	if folder == "." {
		folder = ""
	}
	return patternArguments{Pattern: "**/*", Path: folder}
}

func listPatternArguments(groups []string) any {
	pattern := unquote(groups[1])
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	return patternArguments{Pattern: pattern}
}

func belowArgument(groups []string) any {
	below, _ := strconv.Atoi(strings.ReplaceAll(groups[1], ",", "")) // digits alone
	return belowArguments{below}
}

// politeness is what people put around a request.
var politeness = regexp.MustCompile(`(?i)^(?:(?:please|can you|could you|would you|now),?\s+)+|(?:\s+please)?\s*(?:[!?]+|\b\.+)?\s*$`)

// understand finds what a plain request means, and the arguments of its call.
func understand(input string) (p plain, arguments string, understood bool) {
	input = politeness.ReplaceAllString(input, "")
	for _, p := range plains() {
		if groups := p.form.FindStringSubmatch(input); groups != nil {
			encoded, err := session.EncodeJSON(p.arguments(groups))
			return p, string(encoded), err == nil
		}
	}
	return plain{}, "", false
}

// unquote takes off the quotes that people put around names.
func unquote(s string) string {
	for _, q := range []string{"`", `"`, "'"} {
		if inner, ok := strings.CutPrefix(s, q); ok && strings.HasSuffix(inner, q) {
			return strings.TrimSuffix(inner, q)
		}
	}
	return s
}
