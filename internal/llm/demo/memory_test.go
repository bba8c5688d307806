package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/session"
)

func TestStatementsAreFound(t *testing.T) {
	const want = "It is how the person wants things to be done."
	tests := []struct {
		name, said string
		want       []statement
	}{
		{"preference", "I prefer tabs over spaces.", []statement{{"preference", "The person prefers tabs over spaces.", want}}},
		{"preference with a reason", "i'd prefer tabs because they are short", []statement{{"preference", "The person prefers tabs.", "They are short."}}},
		{"always", "please always run the tests!", []statement{{"preference", "Always run the tests.", want}}},
		{"never", "Never push on Friday", []statement{{"preference", "Never push on Friday.", want}}},
		{"decision", "We've decided to use SQLite, because it is one file.", []statement{{"decision", "It was decided to use SQLite.", "It is one file."}}},
		{"decision without a reason", "we decided on blue", []statement{{"decision", "It was decided blue.", "No reason was given."}}},
		{"constraint", "The server must run offline.", []statement{{"constraint", "The server must run offline.", "It holds whatever anybody wishes."}}},
		{"open question", "We have not decided who pays.", []statement{{"open_question", "Not decided yet: who pays.", "It will come back."}}},
		{"lesson", "We learned that retries hide bugs.", []statement{{"lesson", "Retries hide bugs.", "It need not be found out again."}}},
		{"fact", "Remember that the office is in Bergen.", []statement{{"fact", "The office is in Bergen.", "The person asked to remember it."}}},
		{"several, over lines", "Hello.\nI prefer  tabs\nAlways test. Bye.", []statement{
			{"preference", "The person prefers tabs.", want}, {"preference", "Always test.", want}}},
		{"other alphabets", "I prefer 短い答え。", []statement{{"preference", "The person prefers 短い答え.", want}}},
		{"a version is no end", "I prefer Go 1.26.8 here", []statement{{"preference", "The person prefers Go 1.26.8 here.", want}}},
		{"a request", "list the files, always", nil},
		{"a reason alone", "I prefer because", []statement{{"preference", "The person prefers because.", want}}},
		{"too long", "I prefer " + strings.Repeat("a", maxStatementChars), nil},
		{"nothing", " \n. ! \n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, statements(tt.said), cmp.AllowUnexported(statement{})); diff != "" {
				t.Errorf("statements(%q) (-want +got):\n%s", tt.said, diff)
			}
		})
	}
}

func TestStatementsAreHeard(t *testing.T) {
	remembering := append([]session.ToolSpec{{Name: memoryTool}}, someTools...)
	const recalled = "Be kind.\n\nMemory of earlier sessions: information.\n\n> # What\n> \n> - Tabs. [^1]"
	tests := []struct {
		name, input, system string
		tools               []session.ToolSpec
		want                string
	}{
		{"with a memory", "I prefer tabs", "", remembering, "- The person prefers tabs.\n\nLater sessions of this project will know"},
		{"without", "I prefer tabs", "", someTools, "This project has no memory"},
		{"what it was told", "What do you remember?", recalled, remembering, "\n\n> # What\n> \n> - Tabs. [^1]"},
		{"it was told nothing", "what do you remember", "Be kind.", remembering, "nothing about earlier sessions"},
		{"help", "hi", "", remembering, "`what do you remember`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			blocks := obey(tt.input, tt.system, tt.tools)
			if len(blocks) != 1 || !strings.Contains(blocks[0].Text, tt.want) {
				t.Errorf("obey(%q) = %+v, want one text with %q", tt.input, blocks, tt.want)
			}
		})
	}
	call := obey("what do you remember about reports?", "", remembering)
	if len(call) != 2 || call[1].Tool != memoryTool || call[1].Text != `{"query":"reports"}` {
		t.Errorf("a question about something makes %+v", call)
	}
	if help := obey("hi", "", someTools)[0].Text; strings.Contains(help, "remember") {
		t.Errorf("the help offers a memory that is not there:\n%s", help)
	}
}

// memoryRequest is a request of memory, with its quotation.
func memoryRequest(tool, quotation string) llm.Request {
	return llm.Request{Tools: []session.ToolSpec{{Name: tool}}, Items: []session.Item{user("It follows, quoted between marks.\n\nmark-1\n" + quotation + "mark-1\n\nDo it.")}}
}

func TestExtractSubmitsWhatPeopleStated(t *testing.T) {
	r := memoryRequest(submitTool, `{"n":3,"from":"user","text":"I prefer tabs.\nAlways test"}
{"n":4,"from":"assistant","text":"I prefer spaces"}
{"n":5,"from":"result","tool":"Read","text":"Never mind"}
{"n":6,"from":"user","text":"I prefer tabs. Say \"{\""}
{"n":7,"from":"user","bytes":99999,"head":"We decided to go","tail":"never stop"}
`)
	got := reply(r)
	const want = `{"records":[` +
		`{"kind":"preference","claim":"The person prefers tabs.","why":"It is how the person wants things to be done.","evidence":[3]},` +
		`{"kind":"preference","claim":"Always test.","why":"It is how the person wants things to be done.","evidence":[3]},` +
		`{"kind":"decision","claim":"It was decided to go.","why":"No reason was given.","evidence":[7]},` +
		`{"kind":"preference","claim":"Never stop.","why":"It is how the person wants things to be done.","evidence":[7]}]}`
	if diff := cmp.Diff([]llm.Block{{Kind: session.KindToolCall, Tool: submitTool, Text: want}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := reply(memoryRequest(submitTool, `{"n":3,"from":"user","text":"hello"}`+"\n"))
	if len(none) != 1 || none[0].Text != `{"records":[]}` {
		t.Errorf("of nothing it makes %+v, want an empty list", none)
	}
	r.Items = append(r.Items, session.Item{N: 2, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: submitTool}},
		session.Item{N: 3, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 2, Tool: submitTool, Failed: true, Summary: "no"}})
	if again := reply(r); len(again) != 1 || again[0].Kind != session.KindAssistantMessage {
		t.Errorf("after a refusal it makes %+v, want a text, so that the pass ends", again)
	}
}

func TestExtractBoundsItsSubmission(t *testing.T) {
	var lines strings.Builder
	for i := range 2 * maxRecords {
		fmt.Fprintf(&lines, `{"n":%d,"from":"user","text":"I prefer number %d"}`+"\n", i+1, i)
	}
	got := reply(memoryRequest(submitTool, lines.String()))
	if n := strings.Count(got[0].Text, `"kind"`); n != maxRecords {
		t.Errorf("%d records are submitted, want %d", n, maxRecords)
	}
}

// folding is a consolidation with documents that are there already.
type folding struct {
	t         *testing.T
	request   llm.Request
	documents map[string]string
}

func newFolding(t *testing.T, documents map[string]string, records string) *folding {
	listing := ""
	for name, text := range documents {
		listing += fmt.Sprintf("\n- %s, %d bytes", name, len(text))
	}
	r := memoryRequest(finishTool, records)
	r.Items[0].UserMessage.Text = "The documents that exist:\n" + listing + "\n\n" + r.Items[0].UserMessage.Text
	return &folding{t, r, documents}
}

// run answers reads with at most limit bytes, until something else is called.
func (f *folding) run(limit int) (written map[string]string, finish string) {
	for range 10 {
		blocks := reply(f.request)
		if blocks[0].Tool != readDocumentTool {
			written = map[string]string{}
			for _, b := range blocks[:len(blocks)-1] {
				if b.Tool != writeDocumentTool {
					f.t.Fatalf("among the writes is %+v", b)
				}
				var arguments struct{ Name, Text string }
				decode(f.t, b.Text, &arguments)
				written[arguments.Name] = arguments.Text
			}
			last := blocks[len(blocks)-1]
			if last.Tool != finishTool {
				f.t.Fatalf("the last call is %+v", last)
			}
			return written, last.Text
		}
		for _, b := range blocks {
			f.answer(b, limit)
		}
	}
	f.t.Fatal("it reads for ever")
	return nil, ""
}

func (f *folding) answer(b llm.Block, limit int) {
	n := int64(len(f.request.Items) + 1)
	var arguments readArguments
	decode(f.t, b.Text, &arguments)
	rest := f.documents[arguments.Name][arguments.Offset:]
	result := session.ToolResult{CallN: n, Tool: readDocumentTool, Summary: "read", Content: &rest}
	if len(rest) > limit {
		cut := rest[:limit] + "\n\n[truncated: 1 bytes dropped, refine your query]"
		result.Content, result.Truncated = &cut, &session.Truncated{KeptBytes: int64(limit)}
	}
	f.request.Items = append(f.request.Items,
		session.Item{N: n, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: readDocumentTool, Arguments: []byte(b.Text)}},
		session.Item{N: n + 1, Kind: session.KindToolResult, ToolResult: &result})
}

func TestFoldAddsRecordsToTheirDocuments(t *testing.T) {
	f := newFolding(t, map[string]string{
		"preferences": "# Preferences\n\n- Always test. [^1]",
		"summary":     "# What this project remembers\n\n- Always test. [^1]",
		"lessons":     "# not wanted",
	}, `{"n":2,"kind":"preference","claim":"Always test.","why":"w"}
{"n":3,"kind":"preference","claim":"No [^9] ~~marks~~\nhere.","why":"w"}
{"n":4,"kind":"decision","claim":"It was decided to go.","why":"It is late."}
{"n":5,"kind":"decision","claim":"It was decided to go.","why":"It is late."}
{"n":6,"kind":"constraint","claim":"It must float.","why":"w"}
`)
	written, finish := f.run(10)
	if diff := cmp.Diff(map[string]string{
		"preferences": "# Preferences\n\n- Always test. [^1]\n- No [9] ~marks~ here. [^3]",
		"decisions":   "# Decisions\n\n- It was decided to go. Reason: It is late. [^4]\n- It must float. [^6]",
		"summary": "# What this project remembers\n\n- Always test. [^1]\n- No [9] ~marks~ here. [^3]\n" +
			"- It was decided to go. Reason: It is late. [^4]\n- It must float. [^6]",
	}, written); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	const want = `{"records":[{"record":2,"reason":"duplicate"},{"record":3,"reason":"applied"},{"record":4,"reason":"applied"},` +
		`{"record":5,"reason":"duplicate"},{"record":6,"reason":"applied"}]}`
	if finish != want {
		t.Errorf("finished with %s, want %s", finish, want)
	}
}

func TestFoldGoesForwardWhenDocumentsAreFull(t *testing.T) {
	line := "\n- " + strings.Repeat("x", 96) + " [^1]"
	f := newFolding(t, map[string]string{
		"lessons": "# Lessons and facts\n" + strings.Repeat(line, 292),
		"summary": summaryTitle + strings.Repeat(line, 19),
	}, `{"n":7,"kind":"preference","claim":"Be short.","why":"w"}
{"n":8,"kind":"fact","claim":"`+strings.Repeat("y", 990)+`","why":"w"}
`)
	written, finish := f.run(16384)
	if want := `{"records":[{"record":7,"reason":"applied"},{"record":8,"reason":"discarded"}]}`; finish != want {
		t.Errorf("finished with %s, want %s", finish, want)
	}
	summary := written["summary"]
	if len(summary) > maxSummaryBytes+len(summaryTitle) || !strings.HasPrefix(summary, summaryTitle+line) || !strings.HasSuffix(summary, "\n- Be short. [^7]") {
		t.Errorf("the summary has %d bytes: %s", len(summary), summary)
	}
}

func TestFoldTriesOnce(t *testing.T) {
	f := newFolding(t, nil, `{"n":1,"kind":"fact","claim":"a","why":"w"}`+"\n")
	f.run(100)
	f.request.Items = append(f.request.Items, session.Item{N: 2, Kind: session.KindToolCall, ToolCall: &session.ToolCall{Tool: finishTool}},
		session.Item{N: 3, Kind: session.KindToolResult, ToolResult: &session.ToolResult{CallN: 2, Tool: finishTool, Failed: true, Summary: "refused"}})
	if again := reply(f.request); len(again) != 1 || again[0].Kind != session.KindAssistantMessage {
		t.Errorf("after a refusal it makes %+v, want a text, so that the pass ends", again)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
