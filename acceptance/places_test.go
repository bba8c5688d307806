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

// What is stored, streamed, sent to the model and read back after a restart is the
// same, for every way in which content comes to be cut.
func TestCutIsTheSameInAllPlaces(t *testing.T) {
	huge := strings.Repeat("0123456789é\n", 3000)
	denies := func(context.Context, worker.Call) worker.Verdict {
		return worker.Verdict{Answer: &session.Output{Summary: "denied", Content: &huge, Failed: true}}
	}
	grows := func(_ context.Context, _ worker.Call, out session.Output) session.Output {
		out.Content = &huge
		return out
	}
	leavesOut := func(context.Context) (session.Output, error) {
		return session.Output{Summary: "left some out", Unseen: 77}, nil
	}
	for _, c := range []struct {
		name   string
		setup  setup
		step   llmtest.Step
		failed bool
	}{
		{"success", setup{tools: []tool.Tool{prints("Echo", huge)}}, calls("Echo", "Echo"), false},
		{"error", setup{tools: []tool.Tool{fails("Echo", huge)}}, calls("Echo"), true},
		{"timeout", setup{tools: []tool.Tool{hangs("Echo", huge)}, manifest: "[worker]\ntool_timeout = \"20ms\"\n"}, calls("Echo"), true},
		{"denial", setup{tools: []tool.Tool{prints("Echo", "x")}, before: []worker.BeforeTool{denies}}, calls("Echo"), true},
		{"substitute", setup{tools: []tool.Tool{prints("Echo", "x")}, after: []worker.AfterTool{grows}}, calls("Echo"), false},
		{"unknown tool", setup{tools: []tool.Tool{prints(strings.Repeat("Echo", 16), "x"), prints(strings.Repeat("Test", 16), "x")}}, calls("Eco"), true},
		{"bad arguments", setup{tools: []tool.Tool{prints("Echo", "x")}}, callsWith("Echo", `["`+strings.Repeat("y", 300)), true},
		{"answer that was cut", setup{tools: []tool.Tool{prints("Echo", "x")}, after: []worker.AfterTool{grows}}, llmtest.Step{Calls: calls("Echo").Calls, Stop: "length"}, true},
		{"left out by the tool", setup{tools: []tool.Tool{does("Echo", leavesOut)}}, calls("Echo"), false},
		{"head and tail of a command", setup{tools: []tool.Tool{bash(t, t.TempDir())}}, callsWith("Bash", `{"command":"seq 100000"}`), false},
		{"head and tail of a failed command", setup{tools: []tool.Tool{bash(t, t.TempDir())}}, callsWith("Bash", `{"command":"seq 100000; exit 3"}`), true},
	} {
		for _, protocol := range []string{"openai", "anthropic"} {
			t.Run(c.name+"/"+protocol, func(t *testing.T) {
				s := c.setup
				s.protocol = protocol
				s.manifest += "[worker.tool_output]\ndefault_max_bytes = 160\n"
				s.script = []llmtest.Step{c.step, says("ok")}
				w := start(t, s)
				samePlaces(t, w, c.failed)
			})
		}
	}
}

func samePlaces(t *testing.T, w *world, failed bool) {
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
	for _, r := range results(stored) {
		if content := contentOf(r); r.Failed != failed || r.Truncated == nil || len(content) > 160 || !strings.HasSuffix(content, markerEnd) {
			t.Errorf("failed %v, truncated %+v: %q", r.Failed, r.Truncated, content)
		}
		want = append(want, modelled(r))
	}
	sent := w.model.Requests()
	if diff := cmp.Diff(want, lastResults(sent[len(sent)-1])); diff != "" {
		t.Errorf("stored and sent to the model differ: %s", diff)
	}
	before := sent[len(sent)-1].Messages
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
