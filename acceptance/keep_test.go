package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loadline/internal/artifact"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// openOutputs opens the keeper of outputs, as the manifest wants it.
func (w *world) openOutputs() {
	w.t.Helper()
	settings := w.manifest.Artifacts
	var err error
	w.outputs, err = artifact.Open(w.t.Context(), artifact.Config{
		Dir: filepath.Join(w.manifest.Store.Dir, "outputs"), QuotaBytes: settings.QuotaBytes, MaxAge: time.Duration(settings.MaxAge),
		Log: w.store, Logger: w.log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// keptFiles lists the files that hold outputs, below a data folder.
func keptFiles(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "outputs", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func outputOf(id session.ID, n int64) string {
	return fmt.Sprintf("/v1/sessions/%s/items/%d/output", id, n)
}

// countsPrints is a tool that prints text and counts how often it runs.
func countsPrints(name, text string, runs *atomic.Int32) tool.Tool {
	return does(name, func(context.Context) (session.Output, error) {
		runs.Add(1)
		return session.Output{Summary: name + ": done", Content: &text}, nil
	})
}

// readsOn is a model that reads pages of the newest cut output for as long as the
// summaries say how to go on.
func readsOn(got *strings.Builder) llmtest.Step {
	goOn := regexp.MustCompile(`go on with offset (\d+)$`)
	return replies(func(r llmtest.Request) llmtest.Step {
		summary, text, _ := strings.Cut(lastResults(r)[0], "\n\n")
		got.WriteString(text)
		next := goOn.FindStringSubmatch(summary)
		if next == nil {
			return says("I have read all of it")
		}
		return callsWith(artifact.ToolName, fmt.Sprintf(`{"offset":%s}`, next[1]))
	})
}

// What the limit cut is read on to its end by the model, and by a client, without
// the tool running again; after a restart too; until the session is deleted.
func TestCutOutputIsReadOnWithoutItsTool(t *testing.T) {
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "%d 日本語 of the output\n", i)
	}
	whole := text.String()
	var runs atomic.Int32
	w := start(t, setup{tools: []tool.Tool{countsPrints("Lists", whole, &runs)}, script: []llmtest.Step{calls("Lists"), callsWith(artifact.ToolName, `{}`)}})
	var read strings.Builder
	w.model.Otherwise = readsOn(&read)
	id := w.newSession()
	if turn := w.say(id, "list, then read all"); turn.State != session.TurnCompleted {
		t.Fatalf("the turn: %s %v", turn.State, turn.Error)
	}
	if read.String() != whole {
		t.Errorf("the model has read %d bytes of %d", read.Len(), len(whole))
	}
	r := results(w.items(id))
	cutAsItShould(t, r[0], whole, 16384)
	if kept := r[0].KeptOutput; kept == nil || *kept != (session.KeptOutput{Bytes: int64(len(whole))}) {
		t.Errorf("kept_output is %+v", kept)
	}
	for _, page := range r[1:] {
		if page.Truncated != nil || page.KeptOutput != nil || page.Failed || len(contentOf(page)) > 16384 {
			t.Errorf("a page: %q, %d bytes, truncated %v", page.Summary, len(contentOf(page)), page.Truncated)
		}
	}

	w.restart()
	w.model.Add(callsWith(artifact.ToolName, `{"offset":-10}`, `{"pattern":"^39\\d\\d .*of"}`, `{"back":2}`), says("ok"))
	w.say(id, "the end, please")
	r = results(w.items(id))[len(r):]
	if tail := contentOf(r[0]); tail != whole[len(whole)-10:] {
		t.Errorf("after the restart its end is %q", tail)
	}
	if found := contentOf(r[1]); strings.Count(found, "\n") != 100 || !strings.HasPrefix(found, "3901:") {
		t.Errorf("after the restart it finds %.200q", found)
	}
	if !r[2].Failed || !strings.Contains(contentOf(r[2]), "Only one result before this step was cut") {
		t.Errorf("further back: %+v", r[2])
	}
	answer, sent := w.send("GET", outputOf(id, 3), nil)
	if answer.StatusCode != http.StatusOK || string(sent) != whole {
		t.Errorf("a client gets %s and %d bytes", answer.Status, len(sent))
	}
	answer, sent = w.send("GET", outputOf(id, 3), nil, "Range", "bytes=70000-", "If-Range", answer.Header.Get("ETag"))
	if answer.StatusCode != http.StatusPartialContent || string(sent) != whole[70000:] {
		t.Errorf("a client that resumes gets %s and %d bytes", answer.Status, len(sent))
	}
	if runs.Load() != 1 {
		t.Errorf("the tool ran %d times", runs.Load())
	}
	w.model.Otherwise = llmtest.Step{}
	w.stillFine(id)

	if answer := w.do("DELETE", "/v1/sessions/"+string(id), nil, nil); answer.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %s", answer.Status)
	}
	if left := keptFiles(t, w.manifest.Store.Dir); len(left) > 0 {
		t.Errorf("after the deletion there are %v", left)
	}
	if answer, _ := w.send("GET", outputOf(id, 3), nil); answer.StatusCode != http.StatusNotFound {
		t.Errorf("after the deletion: %s", answer.Status)
	}
}

// A client that looks into a large output waits for no more than it asked for.
func TestRangeOfAKeptOutputIsQuick(t *testing.T) {
	const rangeBytes, most = 64 << 10, 20 * time.Millisecond
	whole := strings.Repeat("0123456789abcdef", 8<<20/16)
	w := start(t, setup{tools: []tool.Tool{prints("Lists", whole)}, script: []llmtest.Step{calls("Lists"), says("ok")}})
	id := w.newSession()
	w.say(id, "go")
	best := time.Hour
	for i := range 10 {
		first := i * 700_001
		began := time.Now()
		answer, text := w.send("GET", outputOf(id, 3), nil, "Range", fmt.Sprintf("bytes=%d-%d", first, first+rangeBytes-1))
		best = min(best, time.Since(began))
		if answer.StatusCode != http.StatusPartialContent || string(text) != whole[first:first+rangeBytes] {
			t.Errorf("range at %d: %s, %d bytes", first, answer.Status, len(text))
		}
	}
	if best > most {
		t.Errorf("64 KiB take at best %s, want at most %s", best, most)
	}
	t.Logf("64 KiB of 8 MiB take at best %s", best)
}

// When keeping fails, or what was kept is gone, the result says why and the session
// goes on.
func TestOutputThatIsNotKeptHurtsNobody(t *testing.T) {
	whole := strings.Repeat("x", 50_000)
	for _, c := range []struct {
		name, manifest, code string
		harm                 func(w *world) // before the turn
	}{
		{"quota", "[artifacts]\nquota_bytes = 40960\n", "quota", func(*world) {}},
		{"disk", "", "io", func(w *world) {
			if err := os.WriteFile(filepath.Join(w.manifest.Store.Dir, "outputs"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, setup{manifest: c.manifest, tools: []tool.Tool{prints("Lists", whole)}, script: []llmtest.Step{calls("Lists"), callsWith(artifact.ToolName, `{}`), says("I see")}})
			c.harm(w)
			id := w.newSession()
			if turn := w.say(id, "go"); turn.State != session.TurnCompleted {
				t.Errorf("the turn: %s %v", turn.State, turn.Error)
			}
			r := results(w.items(id))
			cutAsItShould(t, r[0], whole, 16384)
			if kept := r[0].KeptOutput; kept == nil || *kept != (session.KeptOutput{Error: c.code}) {
				t.Errorf("kept_output is %+v", kept)
			}
			if !r[1].Failed || !strings.Contains(contentOf(r[1]), "Lists (result 3) was not kept") {
				t.Errorf("reading on: %+v %q", r[1], contentOf(r[1]))
			}
			if left := keptFiles(t, w.manifest.Store.Dir); len(left) > 0 {
				t.Errorf("on disk are %v", left)
			}
			if answer, text := w.send("GET", outputOf(id, 3), nil); answer.StatusCode != http.StatusNotFound || !strings.Contains(string(text), "kept_output of the result says why") {
				t.Errorf("a client gets %s %s", answer.Status, text)
			}
			w.stillFine(id)
		})
	}
}

// A process that is killed leaves no output without its result, and keeps the others.
// The files are invisible to the tools of a project in whose folder they lie.
func TestOutputsOfAKilledServer(t *testing.T) {
	p := launch(t, "", bashed("seq -f 'hidden %g' 20000; echo ran >>ran"), bashed("cat hold"))
	data := filepath.Join(p.dir, "data")
	p.kill()
	p.cmd.Args = append(p.cmd.Args, "--data", data)
	p.boot()
	hold := p.fifo("hold")
	id := p.newSession()
	turn := p.post(id, "go")
	command := p.running(hold)
	defer command.Close()
	kept := filepath.Join(data, "outputs", string(id), "3")
	for _, name := range []string{"5", "6.part"} { // as if it had been killed just before the commit
		if err := os.WriteFile(filepath.Join(filepath.Dir(kept), name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.model.Add(llmtest.Step{Calls: []llmtest.Call{
		{Tool: "Grep", Arguments: `{"pattern":"hidden"}`},
		{Tool: "Glob", Arguments: `{"pattern":"**/*"}`},
		{Tool: "Read", Arguments: fmt.Sprintf(`{"path":"data/outputs/%s/3"}`, id)},
		{Tool: artifact.ToolName, Arguments: `{"pattern":"hidden 19999"}`},
	}}, says("ok"))
	p.crash()
	if ended := p.await(id, turn.ID); ended.State != session.TurnCompleted {
		t.Errorf("the turn: %s %v", ended.State, ended.Error)
	}
	if left := keptFiles(t, data); len(left) != 1 || left[0] != kept {
		t.Errorf("on disk are %v, want %s alone", left, kept)
	}
	r := results(p.items(id))[2:]
	for _, r := range r[:3] {
		if text := contentOf(r); strings.Contains(text, "hidden 1") || strings.Contains(text, "outputs/"+string(id)+"/3\n") {
			t.Errorf("%s shows %.300q", r.Tool, text)
		}
	}
	if text := contentOf(r[3]); text != "19999:226881:hidden 19999\n" && !strings.HasSuffix(text, ":hidden 19999\n") {
		t.Errorf("ReadOutput shows %.300q", text)
	}
	if p.ran() != 1 {
		t.Errorf("the command ran %d times", p.ran())
	}
	p.stillFine(id)
}
