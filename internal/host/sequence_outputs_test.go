package host_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"loadline/internal/artifact"
	"loadline/internal/session"
	"loadline/internal/store"
)

// readOutput is the tool that reads kept outputs.
const readOutput = artifact.ToolName

// smallQuota has outputs swept, and larger ones refused, soon.
const smallQuota = 400_000

// newKeeper keeps outputs beside the store.
func (s *sequence) newKeeper(quotaBytes int64, db *store.Store) *artifact.Keeper {
	keeper, err := artifact.Open(s.ctx, artifact.Config{
		Dir: s.outputs(), QuotaBytes: quotaBytes, MaxAge: 365 * 24 * time.Hour, Log: db, Logger: zerolog.Nop(),
	})
	if err != nil {
		s.Fatal(err)
	}
	return keeper
}

func (s *sequence) outputs() string { return filepath.Join(s.dir, "outputs") }

// drawLook is a call that reads on in an output.
func drawLook(r *rapid.T) string {
	look := map[string]any{}
	if back := rapid.IntRange(0, 4).Draw(r, "back"); back > 0 {
		look["back"] = back
	}
	if rapid.Bool().Draw(r, "at an offset") {
		look["offset"] = rapid.SampledFrom([]int{0, 1, 16300, 250_000, -1, -20_000}).Draw(r, "offset")
	}
	if rapid.IntRange(0, 3).Draw(r, "search") == 0 {
		look["pattern"] = rapid.SampledFrom([]string{"line", "^x+$", "(", "あ"}).Draw(r, "pattern")
	}
	return readOutput + ":" + asJSON(look)
}

// checkOutputs holds of each cut result that what is kept begins with what is shown
// and is clean text; and that nothing else is kept, unless a turn runs, whose results
// may not be stored yet.
func (s *sequence) checkOutputs(items []session.Item, running session.TurnID) {
	s.Helper()
	named := map[string]bool{}
	for _, item := range items {
		r := item.ToolResult
		if r == nil {
			continue
		}
		if r.KeptOutput == nil && r.Truncated != nil && r.Truncated.KeptBytes > 0 && item.N > s.foreign || r.KeptOutput != nil && r.Truncated == nil {
			s.Fatalf("result %d: cut %v, kept %v", item.N, r.Truncated, r.KeptOutput)
		}
		if r.KeptOutput == nil || r.KeptOutput.Error != "" {
			continue
		}
		named[strconv.FormatInt(item.N, 10)] = true
		s.checkOutput(item)
	}
	if running != "" {
		return
	}
	files, err := os.ReadDir(filepath.Join(s.outputs(), string(s.id)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	for _, file := range files {
		if !named[file.Name()] {
			s.Fatalf("the file %s is kept, and no result tells of it", file.Name())
		}
	}
}

func (s *sequence) checkOutput(item session.Item) {
	s.Helper()
	r := item.ToolResult
	f, err := s.life.keeper.Output(s.id, item.N, r.KeptOutput.Bytes)
	if errors.Is(err, session.ErrOutputGone) && s.swept {
		return
	}
	if err != nil {
		s.Fatalf("output of result %d: %v", item.N, err)
	}
	defer f.Close()
	whole, err := io.ReadAll(f)
	if err != nil {
		s.Fatal(err)
	}
	shown := (*r.Content)[:r.Truncated.KeptBytes]
	if !strings.HasPrefix(string(whole), shown) || !utf8.Valid(whole) || strings.Contains(string(whole), "\x00") {
		s.Fatalf("the output of result %d does not begin with the %d bytes that are shown, or is no clean text", item.N, len(shown))
	}
}

// deleteSession holds that with a session all of it is gone.
func (s *sequence) deleteSession() {
	s.Helper()
	if err := s.life.host.Delete(s.ctx, s.id); err != nil {
		s.Fatalf("delete: %v", err)
	}
	s.life.keeper.Delete(s.id)
	if _, err := s.life.store.Session(s.ctx, s.id); !errors.Is(err, session.ErrNotFound) {
		s.Fatalf("a deleted session is found: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.outputs(), string(s.id))); !errors.Is(err, os.ErrNotExist) {
		s.Fatalf("the outputs of a deleted session are there: %v", err)
	}
}
