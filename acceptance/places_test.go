package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/file"
	"loadline/internal/tool/shell"
	"loadline/internal/tool/tooltest"
	"loadline/internal/worker"
)

// bash is the real tool, in a folder.
func bash(t *testing.T, dir string) tool.Tool {
	t.Helper()
	return shell.New(shell.Config{Dir: dir, CaptureMaxBytes: 1 << 20, MaxTimeout: 20 * time.Second})
}

// files are the real tools that read and write a folder.
func files(t *testing.T, dir string) []tool.Tool {
	t.Helper()
	workspace, err := file.Open(dir, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { workspace.Close() })
	return append(workspace.ReadTools(), workspace.WriteTools()...)
}

func deniesDenied(text string) worker.BeforeTool {
	return func(_ context.Context, call worker.Call) (v worker.Verdict) {
		if call.Tool == "Denied" {
			v.Answer = &session.Output{Summary: "denied", Content: &text, Failed: true}
		}
		return v
	}
}

func growsGrown(text string) worker.AfterTool {
	return func(_ context.Context, call worker.Call, out session.Output) session.Output {
		if call.Tool == "Grown" {
			out.Content = &text
		}
		return out
	}
}

// What is stored, streamed, sent to the model and read back after a restart is the
// same, for every way in which content comes to be cut.
func TestCutIsTheSameInAllPlaces(t *testing.T) {
	huge := strings.Repeat("0123456789é\n", 3000)
	leavesOut := func(context.Context) (session.Output, error) {
		return session.Output{Summary: "left some out", Unseen: 77}, nil
	}
	step, failed := llmtest.Step{}, []bool{}
	for _, c := range []struct {
		call   llmtest.Call
		failed bool
	}{
		{llmtest.Call{Tool: "Prints", Arguments: `{}`}, false},
		{llmtest.Call{Tool: "Prints", Arguments: `["` + strings.Repeat("y", 300)}, true},
		{llmtest.Call{Tool: "Fails", Arguments: `{}`}, true},
		{llmtest.Call{Tool: "Hangs", Arguments: `{}`}, true},
		{llmtest.Call{Tool: "Denied", Arguments: `{}`}, true},
		{llmtest.Call{Tool: "Grown", Arguments: `{}`}, false},
		{llmtest.Call{Tool: "LeavesOut", Arguments: `{}`}, false},
		{llmtest.Call{Tool: strings.Repeat("Unknown", 9), Arguments: `{}`}, true},
		{llmtest.Call{Tool: "Bash", Arguments: `{"command":"seq 100000"}`}, false},
		{llmtest.Call{Tool: "Bash", Arguments: `{"command":"seq 100000; exit 3"}`}, true},
	} {
		step.Calls, failed = append(step.Calls, c.call), append(failed, c.failed)
	}
	cut := llmtest.Step{Calls: calls("Grown").Calls, Stop: llm.StopLength}
	eachProtocol(t, setup{
		manifest: "[worker]\ntool_timeout = \"1s\"\n[worker.tool_output]\ndefault_max_bytes = 128\n",
		tools:    []tool.Tool{prints("Prints", huge), fails("Fails", huge), hangs("Hangs", huge), prints("Denied", "x"), prints("Grown", "x"), does("LeavesOut", leavesOut), bash(t, t.TempDir())},
		before:   []worker.BeforeTool{deniesDenied(huge)}, after: []worker.AfterTool{growsGrown(huge)},
		script: []llmtest.Step{step, cut, says("ok")},
	}, func(t *testing.T, w *world) { samePlaces(t, w, append(failed, true)) })
}

func samePlaces(t *testing.T, w *world, failed []bool) {
	t.Helper()
	id := w.newSession()
	live := w.postStream(id, "go")
	var streamed []session.Item
	for _, ev := range live.rest() {
		if ev.Item != nil {
			streamed = append(streamed, *ev.Item)
		}
	}
	slices.SortFunc(streamed, func(a, b session.Item) int { return int(a.N - b.N) }) // results come as they finish
	stored := w.items(id)
	if diff := cmp.Diff(stored, streamed); diff != "" {
		t.Errorf("stored and streamed differ: %s", diff)
	}
	var want []string
	for i, r := range results(stored) {
		if content := contentOf(r); r.Failed != failed[i] || r.Truncated == nil || len(content) > 128 || !strings.HasSuffix(content, markerEnd) {
			t.Errorf("result %d, %s: failed %v, truncated %+v: %q", i, r.Tool, r.Failed, r.Truncated, content)
		}
		want = append(want, modelled(r))
	}
	sent := w.model.Requests()
	before := sent[len(sent)-1].Messages
	if diff := cmp.Diff(want, allResults(before)); diff != "" {
		t.Errorf("stored and sent to the model differ: %s", diff)
	}
	w.restart()
	if diff := cmp.Diff(stored, w.items(id)); diff != "" {
		t.Errorf("stored and restored differ: %s", diff)
	}
	w.stillFine(id)
	sent = w.model.Requests()
	if diff := cmp.Diff(before, sent[len(sent)-1].Messages[:len(before)]); diff != "" {
		t.Errorf("what the model is sent differs after the restart: %s", diff)
	}
}

// allResults are the results in the messages of a request.
func allResults(messages []llmtest.Message) []string {
	var texts []string
	for _, m := range messages {
		for _, result := range m.Results {
			texts = append(texts, result.Text)
		}
	}
	return texts
}

// Whatever brings a NUL or an invalid byte, none is stored, streamed or sent on.
func TestA07NoNULGetsThrough(t *testing.T) {
	dir := t.TempDir()
	elf, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	utf16 := "\xff\xfeh\x00\xe9\x00l\x00l\x00o\x00\n\x00\x3d\xd8\x00\xde\n\x00" // "héllo", "😀"
	for name, content := range map[string]string{"utf16.txt": utf16, "nul.txt": "a\x00b", "latin1.txt": "h\xe9llo\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw := "abc\x00def\xff"
	dirty := tooltest.Func{Name: "Dirty", RunFunc: func(_ context.Context, call tool.Call) (session.Output, error) {
		call.Progress(raw)
		return session.Output{Summary: raw, Content: &raw}, nil
	}}
	step := callsWith("Read", `{"path":"utf16.txt"}`, `{"path":"nul.txt"}`, `{"path":"latin1.txt"}`)
	step.Calls = append(step.Calls, callsWith("Bash", `{"command":"head -c 2048 `+elf+`"}`).Calls...)
	step.Calls = append(step.Calls, callsWith("Dirty", `{"x":"\u0000"}`, "{\x00", `["\u0000"]`).Calls...)
	step.Calls = append(step.Calls, calls("Fails", "Un\x00known").Calls...)
	step.Text, step.Reasoning = []string{"te\x00xt"}, []string{"re\x00ason"}
	w := start(t, setup{
		tools:  append(files(t, dir), bash(t, dir), dirty, fails("Fails", raw)),
		script: []llmtest.Step{step, says("ok")},
	})
	id := w.newSession()
	_, stream := w.send("POST", turnsOf(id), map[string]any{"input": "a\x00b"}, "Accept", "text/event-stream")
	_, history := w.send("GET", "/v1/sessions/"+string(id)+"/items?limit=200", nil)
	got := results(w.items(id))
	for i, want := range []string{"héllo\n2\t😀", "binary", "1\th\ufffdllo", "\ufffdELF", "abc\ufffddef\ufffd", "not a JSON object", "not a JSON object", "abc\ufffddef\ufffd", "no tool named"} {
		if text := got[i].Summary + "\n" + contentOf(got[i]); strings.Contains(want, "ELF") && !strings.Contains(text, "ELF") || !strings.Contains(want, "ELF") && !strings.Contains(text, want) {
			t.Errorf("result %d is %q, want %q in it", i, text, want)
		}
	}
	w.restart()
	if _, again := w.send("GET", "/v1/sessions/"+string(id)+"/items?limit=200", nil); string(again) != string(history) {
		t.Errorf("the history reads %s after the restart, %s before", again, history)
	}
	w.stillFine(id)
	places := map[string]string{"stream": string(stream), "history": string(history)}
	for _, request := range w.model.Requests() {
		places["request"] += string(request.Body)
	}
	for name, text := range places {
		escapes := strings.ReplaceAll(text, `\\`, "") // a backslash of the text itself escapes nothing
		if strings.Contains(text, "\x00") || strings.Contains(escapes, `\u0000`) || text != strings.ToValidUTF8(text, "") {
			t.Errorf("the %s holds a NUL or invalid text", name)
		}
	}
}
