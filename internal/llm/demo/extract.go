package demo

import (
	"encoding/json"
	"strings"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// submitTool is the one tool of a request to find what is worth remembering.
const submitTool = "SubmitRecords"

const maxRecords = 64 // of one submission

// quotedItem is an item of a history as such a request quotes it, on one line.
type quotedItem struct {
	N    int64  `json:"n"`
	From string `json:"from"`
	Text string `json:"text"`
	Head string `json:"head"` // of a text that was too long
	Tail string `json:"tail"`
}

type submittedRecord struct {
	Kind     string  `json:"kind"`
	Claim    string  `json:"claim"`
	Why      string  `json:"why"`
	Evidence []int64 `json:"evidence"`
}

// extract submits what people stated in the quoted history. It tries once.
func extract(r llm.Request) []llm.Block {
	if results := lastResults(r.Items); len(results) > 0 {
		return []llm.Block{text(describe(results))}
	}
	records, seen := []submittedRecord{}, map[string]bool{}
	for _, item := range quoted[quotedItem](lastInput(r.Items)) {
		if item.From != "user" {
			continue
		}
		for _, s := range statements(item.Text + "\n" + item.Head + "\n" + item.Tail) {
			if !seen[s.claim] && len(records) < maxRecords {
				seen[s.claim] = true
				records = append(records, submittedRecord{s.kind, s.claim, s.why, []int64{item.N}})
			}
		}
	}
	return []llm.Block{call(submitTool, map[string]any{"records": records})}
}

// quoted are the lines of a text that are JSON objects.
func quoted[T any](text string) []T {
	var all []T
	for line := range strings.Lines(text) {
		var object T
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &object) == nil {
			all = append(all, object)
		}
	}
	return all
}

func call(tool string, arguments any) llm.Block {
	encoded, _ := session.EncodeJSON(arguments) // texts and numbers always encode
	return llm.Block{Kind: session.KindToolCall, Tool: tool, Text: string(encoded)}
}
