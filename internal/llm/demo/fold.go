package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// The tools of a request to fold records into documents.
const (
	readDocumentTool  = "ReadDocument"
	writeDocumentTool = "WriteDocument"
	finishTool        = "FinishConsolidation"
)

const (
	summaryName      = "summary"
	maxSummaryBytes  = 2000
	maxDocumentBytes = 30_000
)

// existing is how such a request lists a document that there is.
var existing = regexp.MustCompile(`(?m)^- (\w+), \d+ bytes$`)

// quotedRecord is a record as such a request quotes it, on one line.
type quotedRecord struct {
	N     int64  `json:"n"`
	Kind  string `json:"kind"`
	Claim string `json:"claim"`
	Why   string `json:"why"`
}

type closedRecord struct {
	Record int64  `json:"record"`
	Reason string `json:"reason"`
}

// home is the document that a kind of record belongs into, and title its first line.
func home(kind string) (name, title string) {
	switch kind {
	case "preference":
		return "preferences", "# Preferences"
	case "decision", "constraint":
		return "decisions", "# Decisions"
	case "open_question":
		return "open_questions", "# Open questions"
	}
	return "lessons", "# Lessons and facts"
}

// fold reads the documents that records belong into, then writes them, each record as
// one line more, and finishes. It tries once.
func fold(r llm.Request) []llm.Block {
	request := lastInput(r.Items)
	records := quoted[quotedRecord](request)
	read, tried := readSoFar(r.Items)
	if tried {
		return []llm.Block{text(describe(lastResults(r.Items)))}
	}
	wanted := map[string]bool{summaryName: true}
	for _, record := range records {
		name, _ := home(record.Kind)
		wanted[name] = true
	}
	var reads []llm.Block
	for _, found := range existing.FindAllStringSubmatch(request, -1) {
		name := found[1]
		if part, begun := read[name]; wanted[name] && (!begun || !part.whole) {
			reads = append(reads, call(readDocumentTool, readArguments{name, len(part.text)}))
		}
	}
	if len(reads) > 0 {
		return reads
	}
	return write(records, read)
}

type readArguments struct {
	Name   string `json:"name"`
	Offset int    `json:"offset"`
}

// part is what has been read of a document.
type part struct {
	text  string
	whole bool
}

// readSoFar puts together what was read of documents, and reports whether anything
// else has been tried already.
func readSoFar(items []session.Item) (read map[string]part, tried bool) {
	read, asked := map[string]part{}, map[int64]string{}
	for _, it := range items {
		if it.ToolCall != nil && it.ToolCall.Tool == readDocumentTool {
			var arguments readArguments
			_ = json.Unmarshal(it.ToolCall.Arguments, &arguments) // our own
			asked[it.N] = arguments.Name
		}
		if result := it.ToolResult; result != nil {
			name, ours := asked[result.CallN]
			if !ours || result.Failed {
				return nil, true
			}
			p := read[name]
			p.add(result)
			read[name] = p
		}
	}
	return read, false
}

func (p *part) add(r *session.ToolResult) {
	content := ""
	if r.Content != nil {
		content = *r.Content
	}
	if p.whole = r.Truncated == nil; !p.whole {
		content = content[:min(int64(len(content)), r.Truncated.KeptBytes)] // without the marker
	}
	p.text += content
}

// write makes the last answer.
func write(records []quotedRecord, read map[string]part) []llm.Block {
	texts, order := map[string]string{}, []string{}
	for name, p := range read {
		texts[name] = p.text
	}
	summary := strings.TrimPrefix(texts[summaryName], summaryTitle)
	closed := []closedRecord{}
	for _, record := range records {
		name, title := home(record.Kind)
		line := statementLine(&record)
		reason := "applied"
		switch now := texts[name]; {
		case strings.Contains(now, "\n- "+plainClaim(&record)):
			reason = "duplicate"
		case len(now)+len(line) > maxDocumentBytes:
			reason = "discarded"
		default:
			if now == "" {
				texts[name] = title + "\n"
			}
			texts[name] += "\n" + line
			order = appendOnce(order, name)
			summary += "\n" + line
		}
		closed = append(closed, closedRecord{record.N, reason})
	}
	var blocks []llm.Block
	for _, name := range order {
		blocks = append(blocks, call(writeDocumentTool, map[string]string{"name": name, "text": texts[name]}))
	}
	if len(order) > 0 {
		blocks = append(blocks, call(writeDocumentTool, map[string]string{"name": summaryName, "text": summaryTitle + shortened(summary)}))
	}
	return append(blocks, call(finishTool, map[string]any{"records": closed}))
}

const summaryTitle = "# What this project remembers\n"

// statementLine is a record as a line of a document.
func statementLine(r *quotedRecord) string {
	line := "- " + plainClaim(r)
	if r.Kind == "decision" {
		line += " Reason: " + oneLine(r.Why)
	}
	return fmt.Sprintf("%s [^%d]", line, r.N)
}

func plainClaim(r *quotedRecord) string { return oneLine(r.Claim) }

// oneLine is a text that neither cites, nor strikes, nor ends its line.
func oneLine(s string) string {
	return strings.NewReplacer("[^", "[", "~~", "~").Replace(strings.Join(strings.Fields(s), " "))
}

// shortened drops the oldest lines of a summary that is too long.
func shortened(lines string) string {
	for len(lines) > maxSummaryBytes {
		end := strings.Index(lines[1:], "\n")
		if end < 0 {
			return lines
		}
		lines = lines[1+end:]
	}
	return lines
}

func appendOnce(names []string, name string) []string {
	for _, known := range names {
		if known == name {
			return names
		}
	}
	return append(names, name)
}
