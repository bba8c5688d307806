package artifact

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// ToolName is the tool that reads kept outputs.
const ToolName = "ReadOutput"

const (
	maxBack         = 1000
	maxPatternBytes = 4096
	cutsPage        = 50 // cut results that are asked for at a time
)

//go:embed readoutput.md
var readOutputText string

// Results finds results in a history.
type Results interface {
	// CutResults lists results that were cut, those before item n, the newest first.
	CutResults(ctx context.Context, id session.ID, n int64, limit int) ([]session.Item, error)
}

// Tool reads the outputs of a keeper for the model of their session. Its own results
// are no outputs to read.
func (k *Keeper) Tool(results Results) tool.Tool { return &readOutput{k, results} }

type readOutput struct {
	keeper  *Keeper
	results Results
}

func (t *readOutput) Spec() session.ToolSpec {
	return session.ToolSpec{Name: ToolName, Effect: session.EffectRead, Description: strings.TrimSpace(readOutputText), Parameters: json.RawMessage(`{"type":"object","properties":{` +
		`"back":{"type":"integer","minimum":1,"maximum":1000,"description":"Which cut result: 1 (default) is the newest, 2 the one before."},` +
		`"offset":{"type":"integer","description":"Byte to begin at; default 0; negative counts from the end."},` +
		`"limit":{"type":"integer","minimum":1,"description":"How many bytes to show; default: as many as fit."},` +
		`"pattern":{"type":"string","description":"Regular expression (RE2): show only lines that match."}},` +
		`"additionalProperties":false}`)}
}

// request is the arguments of one call.
type request struct {
	Back    int
	Offset  int64
	Limit   int64
	Pattern string

	matcher *regexp.Regexp // nil without a pattern
}

// check finds arguments that are out of range.
func (r *request) check() (err error) {
	switch {
	case r.Back < 1 || r.Back > maxBack:
		return fmt.Errorf(`%w: "back" is 1 to %d`, tool.ErrArguments, maxBack)
	case r.Limit < 1:
		return fmt.Errorf(`%w: "limit" is 1 or more`, tool.ErrArguments)
	case len(r.Pattern) > maxPatternBytes:
		return fmt.Errorf(`%w: "pattern" has at most %d bytes`, tool.ErrArguments, maxPatternBytes)
	case r.Pattern == "":
		return nil
	}
	if r.matcher, err = regexp.Compile(r.Pattern); err != nil {
		return fmt.Errorf("%w: %w; the syntax is RE2", tool.ErrArguments, err)
	}
	return nil
}

func (t *readOutput) Run(ctx context.Context, call tool.Call) (session.Output, error) {
	r := request{Back: 1, Limit: math.MaxInt64}
	if err := tool.Decode(call.Arguments, &r); err != nil {
		return session.Output{}, err
	}
	if err := r.check(); err != nil {
		return session.Output{}, err
	}
	item, cuts, err := t.find(ctx, call, r.Back)
	if err != nil {
		return session.Output{}, err
	}
	if cuts < r.Back {
		return notThere(cuts), nil
	}
	kept := item.ToolResult.KeptOutput
	if kept == nil || kept.Error != "" {
		return lost(item, "was not kept"), nil
	}
	f, err := t.keeper.open(item.SessionID, item.N, kept.Bytes)
	if errors.Is(err, session.ErrOutputGone) {
		return lost(item, "is not kept any more"), nil
	}
	if err == nil {
		defer f.Close()
		var out session.Output
		if out, err = r.run(ctx, f, item, call.LimitBytes); err == nil {
			return out, nil
		}
	}
	if ctx.Err() != nil {
		return session.Output{}, context.Cause(ctx)
	}
	t.keeper.Logger.Error().Err(err).Str("session", string(call.SessionID)).Int64("n", item.N).Msg("kept output cannot be read")
	return session.Output{}, fmt.Errorf("the output of %s cannot be read: the storage failed", named(item))
}

// find returns the result that was cut so many back, and how many there are up to it.
func (t *readOutput) find(ctx context.Context, call tool.Call, back int) (found session.Item, cuts int, err error) {
	for before := call.N; ; {
		page, err := t.results.CutResults(ctx, call.SessionID, before, cutsPage)
		if err != nil || len(page) == 0 {
			return session.Item{}, cuts, err
		}
		for _, item := range page {
			if item.ToolResult.Tool == ToolName {
				continue
			}
			if cuts++; cuts == back {
				return item, cuts, nil
			}
		}
		before = page[len(page)-1].N
	}
}

func notThere(cuts int) session.Output {
	switch cuts {
	case 0:
		return failed("no such output", "No result before this step was cut: what you see of them is all there is.")
	case 1:
		return failed("no such output", `Only one result before this step was cut: leave "back" out to read it.`)
	}
	return failed("no such output", fmt.Sprintf(`Only %d results before this step were cut: "back" is at most that.`, cuts))
}

func lost(item session.Item, how string) session.Output {
	return failed(fmt.Sprintf("the output of %s %s", named(item), how),
		fmt.Sprintf("The whole output of %s %s. If you need more of it, call %s again with a narrower query.", named(item), how, item.ToolResult.Tool))
}

func failed(summary, text string) session.Output {
	return session.Output{Summary: ToolName + ": " + summary, Content: &text, Failed: true}
}

func named(item session.Item) string {
	return fmt.Sprintf("%s (result %d)", item.ToolResult.Tool, item.N)
}

// run reads or searches the output of a result. The content is at most limitBytes.
func (r *request) run(ctx context.Context, f *os.File, item session.Item, limitBytes int) (session.Output, error) {
	size := item.ToolResult.KeptOutput.Bytes
	start := r.Offset
	if start < 0 {
		start = max(0, size+start)
	}
	if start >= size {
		return failed("nothing is there", fmt.Sprintf("The output of %s has %d bytes; offset %d is beyond its end.", named(item), size, r.Offset)), nil
	}
	start, err := runeStart(f, start)
	if err != nil {
		return session.Output{}, err
	}
	room := int(min(r.Limit, int64(limitBytes)))
	if r.matcher != nil {
		return r.search(ctx, f, item, start, room)
	}
	text, err := page(f, start, room)
	if err != nil {
		return session.Output{}, err
	}
	end := start + int64(len(text))
	summary := fmt.Sprintf("%s: bytes %d to %d of %d of the output of %s", ToolName, start, end, size, named(item))
	missing := item.ToolResult.Truncated.OriginalBytes - size
	switch {
	case end < size:
		summary += fmt.Sprintf("; go on with offset %d", end)
	case missing > 0:
		summary += fmt.Sprintf(", its end; %s more bytes were not collected", tool.Grouped(missing))
	default:
		summary += ", its end"
	}
	return session.Output{Summary: summary, Content: &text}, nil
}

// runeStart is where the rune begins that holds the byte at offset.
func runeStart(f io.ReaderAt, offset int64) (int64, error) {
	from := max(0, offset-utf8.UTFMax+1)
	buf := make([]byte, offset-from+1)
	if _, err := f.ReadAt(buf, from); err != nil {
		return 0, err
	}
	for offset > from && !utf8.RuneStart(buf[offset-from]) {
		offset--
	}
	return offset, nil
}

// page reads as many whole runes as fit into so many bytes, at least one.
func page(f io.ReaderAt, start int64, bytes int) (string, error) {
	buf := make([]byte, bytes+utf8.UTFMax)
	n, err := f.ReadAt(buf, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	_, one := utf8.DecodeRune(buf[:n])
	return tool.Cut(string(buf[:n]), max(one, bytes)), nil
}
