package memory

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// The tools of a consolidation.
const (
	readTool   = "ReadDocument"
	writeTool  = "WriteDocument"
	editTool   = "EditDocument"
	finishTool = "FinishConsolidation"
)

//go:embed desk.json
var deskSpecs string

// function is a tool that is one function.
type function struct {
	spec session.ToolSpec
	run  func(context.Context, tool.Call) (session.Output, error)
}

// Spec implements tool.Tool.
func (f function) Spec() session.ToolSpec { return f.spec }

// Run implements tool.Tool.
func (f function) Run(ctx context.Context, call tool.Call) (session.Output, error) {
	return f.run(ctx, call)
}

// tools are the tools that work at the desk.
func (d *desk) tools() *tool.Set {
	return tool.NewSet(embedded(deskSpecs, map[string]func(context.Context, tool.Call) (session.Output, error){
		readTool: d.runRead, writeTool: d.runWrite, editTool: d.runEdit, finishTool: d.runFinish,
	})...)
}

// embedded makes tools of their embedded specs.
func embedded(specs string, runs map[string]func(context.Context, tool.Call) (session.Output, error)) []tool.Tool {
	var list []session.ToolSpec
	if err := json.Unmarshal([]byte(specs), &list); err != nil {
		panic("an embedded list of tools: " + err.Error())
	}
	var all []tool.Tool
	for _, spec := range list {
		all = append(all, function{spec, runs[spec.Name]})
	}
	return all
}

func (d *desk) runRead(_ context.Context, call tool.Call) (session.Output, error) {
	var args struct {
		Name   string
		Offset int
	}
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	text, err := d.read(args.Name)
	if err != nil {
		return session.Output{}, err
	}
	if text == "" {
		return session.Output{Summary: fmt.Sprintf("%s: %s does not exist yet", readTool, args.Name)}, nil
	}
	return piece(readTool+" "+args.Name, text, args.Offset, call.LimitBytes)
}

func (d *desk) runWrite(_ context.Context, call tool.Call) (session.Output, error) {
	var args struct{ Name, Text string }
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	if strings.TrimSpace(args.Text) == "" {
		return session.Output{}, fmt.Errorf("%w: text is blank", tool.ErrArguments)
	}
	return d.written(writeTool, args.Name, d.write(args.Name, args.Text))
}

func (d *desk) runEdit(_ context.Context, call tool.Call) (session.Output, error) {
	var args struct{ Name, Old, New string }
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	return d.written(editTool, args.Name, d.edit(args.Name, args.Old, args.New))
}

func (d *desk) written(toolName, name string, err error) (session.Output, error) {
	if err != nil {
		return session.Output{}, fmt.Errorf("nothing was changed: %w", err)
	}
	text, err := d.read(name)
	return session.Output{Summary: fmt.Sprintf("%s: %s has %s bytes now", toolName, name, tool.Grouped(int64(len(text))))}, err
}

func (d *desk) runFinish(_ context.Context, call tool.Call) (session.Output, error) {
	var args struct{ Records []closing }
	err := tool.Decode(call.Arguments, &args)
	if err == nil {
		err = d.finish(args.Records)
	}
	if err != nil {
		return session.Output{}, fmt.Errorf("not finished: %w", err)
	}
	return session.Output{Summary: finishTool + ": done"}, nil
}

// piece is as much of a text, from an offset in bytes on, as fits into a result.
func piece(title, text string, offset, limitBytes int) (session.Output, error) {
	if offset < 0 || offset > len(text) {
		return session.Output{}, fmt.Errorf("%w: offset is %d, the text has %d bytes", tool.ErrArguments, offset, len(text))
	}
	rest := strings.ToValidUTF8(text[offset:], "") // an offset inside a character
	shown := rest
	if len(rest) > limitBytes {
		shown = tool.Cut(rest, limitBytes-tool.MarkerMaxBytes)
	}
	next := len(text) - len(rest) + len(shown)
	summary := fmt.Sprintf("%s: bytes %d to %d of %d", title, len(text)-len(rest), next, len(text))
	if next < len(text) {
		summary += fmt.Sprintf("; go on with offset %d", next)
	}
	return session.Output{Summary: summary, Content: &shown, Unseen: int64(len(text) - next)}, nil
}
