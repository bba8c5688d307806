package acceptance

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"loadline/internal/session"
)

// onDemo starts a server whose model is the demo, which runs the commands it is told.
func onDemo(t *testing.T) (p *process, dataDir string) {
	t.Helper()
	p = launch(t, "")
	p.kill()
	p.cmd.Args = append(p.cmd.Args, "--model", "demo/demo")
	p.boot()
	return p, filepath.Join(filepath.Dir(p.cmd.Args[slices.Index(p.cmd.Args, "--manifest")+1]), "data")
}

// restoreFrom starts a server on a backup.
func (p *process) restoreFrom(dir string) {
	p.t.Helper()
	p.kill()
	p.cmd.Args = append(p.cmd.Args, "--data", dir)
	p.boot()
}

// backup is the command that copies a data folder.
func (p *process) backup(from, to string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), p.cmd.Path, "backup", "--data", from, "--to", to)
	cmd.Stderr = p.t.Output()
	return cmd
}

// Turns run, outputs are kept, and meanwhile copies are made. On each of them a server
// starts that has all that was acknowledged, and goes on with it.
func TestBackupUnderLoadRestores(t *testing.T) {
	p, data := onDemo(t)
	const turns = 2
	ids := map[session.ID]session.TurnID{} // the last turn of each
	for range 3 {
		id := p.newSession()
		for i := range turns {
			ids[id] = p.post(id, fmt.Sprintf(`/Bash {"command":"seq 2000%d"}`, i)).ID
		}
	}
	folder := t.TempDir()
	var copies []string
	for running := true; running; {
		to := filepath.Join(folder, strconv.Itoa(len(copies)))
		if err := p.backup(data, to).Run(); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
		running = slices.ContainsFunc(pages[session.Session](p.client, "/v1/sessions"), func(s session.Session) bool { return s.State != session.StateIdle })
	}
	t.Logf("%d copies while turns ran", len(copies))
	if len(copies) < 3 {
		t.Fatal("the turns ended too soon: nothing was copied while they ran")
	}
	for _, dir := range []string{copies[0], copies[len(copies)/2], copies[len(copies)-1]} {
		p.restoreFrom(dir)
		for id, last := range ids {
			p.await(id, last)
			p.wholeAfter(id, turns)
		}
	}
}

// wholeAfter fails unless the session has had so many turns and all that they kept.
func (p *process) wholeAfter(id session.ID, turns int) {
	p.t.Helper()
	p.inOrder(id)
	inputs, kept := 0, 0
	for _, item := range p.items(id) {
		if item.UserMessage != nil {
			inputs++
		}
		if item.ToolResult == nil || item.ToolResult.KeptOutput == nil {
			continue
		}
		answer, text := p.send("GET", fmt.Sprintf("/v1/sessions/%s/items/%d/output", id, item.N), nil)
		if answer.StatusCode != http.StatusOK || int64(len(text)) != item.ToolResult.KeptOutput.Bytes || !strings.HasPrefix(string(text), "1\n2\n3\n") {
			p.t.Errorf("output %d: %s, %d bytes, want %d", item.N, answer.Status, len(text), item.ToolResult.KeptOutput.Bytes)
		}
		kept++
	}
	if inputs != turns || kept < turns-1 { // a command that ran in the moment of the copy is not run again
		p.t.Errorf("%d inputs and %d kept outputs, want %d", inputs, kept, turns)
	}
}

// However a backup ends before its time, nothing has the name of a whole one.
func TestBackupThatEndsEarlyIsNone(t *testing.T) {
	p, data := onDemo(t)
	id := p.newSession()
	for range 60 { // half a megabyte each
		p.post(id, strings.Repeat("long ", 100_000))
	}
	to := filepath.Join(t.TempDir(), "copy")
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		cmd := p.backup(data, to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for begun := false; !begun; { // the copy has begun when its database has bytes
			info, err := os.Stat(filepath.Join(to+".part", "loadline.db"))
			begun = err == nil && info.Size() > 0
			if _, err := os.Stat(to); err == nil {
				t.Fatal("the backup was done before it could be ended")
			}
		}
		if err := cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: the backup says that it is done", end)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v left a folder that looks whole: %v", end, err)
		}
		if _, err := os.Stat(to + ".part"); (err == nil) != (end == syscall.SIGKILL) {
			t.Errorf("%v: the unfinished folder: %v", end, err)
		}
	}
	if err := p.backup(data, to).Run(); err != nil {
		t.Errorf("after one that was killed: %v", err)
	}
	if _, err := os.Stat(to + ".part"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the killed one left is there: %v", err)
	}
	before := len(pages[session.Turn](p.client, turnsOf(id)))
	p.restoreFrom(to)
	if after := len(pages[session.Turn](p.client, turnsOf(id))); after != before {
		t.Errorf("%d turns in the backup, want %d", after, before)
	}
}
