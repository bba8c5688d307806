package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"loadline/internal/session"
)

// newSessions makes the commands for the sessions of a running server: its
// data folder belongs to it alone.
func newSessions(stdout, stderr io.Writer) *cobra.Command {
	at := remote{}
	list := &cobra.Command{
		Use: "list", Short: "List the sessions, newest first", Args: cobra.NoArgs,
		Example: "  server sessions list\n  server sessions list --json | jq -r .id",
	}
	asJSON := list.Flags().Bool("json", false, "one line of JSON for each, also on a terminal")
	title := list.Flags().String("title", "", "only those whose title holds `TEXT`")
	list.RunE = interruptible(func(ctx context.Context, _ []string) error {
		return at.list(ctx, *title, *asJSON || !onTerminal(stdout), stdout)
	})
	show := &cobra.Command{
		Use: "show ID", Short: "Print the history of a session", Args: oneSession,
		RunE: interruptible(func(ctx context.Context, args []string) error { return at.show(ctx, args[0], stdout) }),
	}
	export := &cobra.Command{
		Use: "export ID", Short: "Write a session as a document, which can be imported", Args: oneSession,
		Example: "  server sessions export ses_01940f3e7a8b7c11b2a64f1d0c9e5a21 --to session.json",
	}
	to := export.Flags().String("to", "", "the new `FILE`; without it to standard output")
	export.RunE = interruptible(func(ctx context.Context, args []string) error {
		return at.export(ctx, args[0], *to, stdout, newProgress(stderr))
	})
	all := group("sessions", "The sessions of a running server: list, show, export, import", list, show, export, newImport(&at, stdout, stderr))
	all.PersistentFlags().StringVar(&at.url, "server", cmpEnv("LOADLINE_URL", defaultURL), "`URL` of the server; the environment's LOADLINE_URL without it")
	all.Long = "List, show, export and import the sessions of a running server. If it wants a key, that is in the environment: LOADLINE_KEY."
	return all
}

func cmpEnv(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

func oneSession(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("it needs the id of one session; server sessions list names them")
	}
	if _, err := session.ParseID(args[0]); err != nil {
		return fmt.Errorf("%q is no id of a session; server sessions list names them", args[0])
	}
	return nil
}

// interruptible ends what a command does with a signal.
func interruptible(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		return run(ctx, args)
	}
}

func (r remote) list(ctx context.Context, title string, asJSON bool, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(table, "ID\tPROJECT\tSTATE\tQUEUED\tUPDATED\tTITLE")
	}
	err := pages(ctx, r, "/v1/sessions", title, func(line json.RawMessage) error {
		if asJSON {
			_, err := fmt.Fprintf(out, "%s\n", line)
			return err
		}
		var s session.Session
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		at := time.UnixMicro(int64(s.UpdatedAt)).Local().Format(time.DateTime)
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", s.ID, s.Project, s.State, s.Queued, at, oneLine(s.Title, 60))
		return err
	})
	return errors.Join(err, table.Flush())
}

// show prints a history for people.
func (r remote) show(ctx context.Context, id string, out io.Writer) error {
	return pages(ctx, r, "/v1/sessions/"+id+"/items", "", func(line json.RawMessage) error {
		var item session.Item
		if err := json.Unmarshal(line, &item); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%d  %s\n", item.N, describe(&item))
		return err
	})
}

func describe(item *session.Item) string {
	switch {
	case item.UserMessage != nil:
		return "user\n" + indented(item.UserMessage.Text)
	case item.AssistantMessage != nil:
		return "assistant\n" + indented(item.AssistantMessage.Text)
	case item.Reasoning != nil:
		return "reasoning\n" + indented(item.Reasoning.Text)
	case item.Summary != nil:
		return "summary\n" + indented(item.Summary.Text)
	case item.ToolCall != nil:
		arguments := item.ToolCall.Raw
		if arguments == "" {
			arguments = string(item.ToolCall.Arguments)
		}
		return "call " + item.ToolCall.Tool + " " + oneLine(arguments, 200)
	case item.ToolResult != nil:
		return describeResult(item.ToolResult)
	}
	return "an item of kind " + string(item.Kind) + ", which this program does not know"
}

func describeResult(r *session.ToolResult) string {
	text := fmt.Sprintf("result of %d: %s", r.CallN, oneLine(r.Summary, 200))
	if r.Failed {
		text = "failed " + text
	}
	if cut := r.Truncated; cut != nil {
		text += fmt.Sprintf(" (cut: %d of %d bytes kept, the limit is %d)", cut.KeptBytes, cut.OriginalBytes, cut.Limit)
	}
	if r.Content == nil {
		return text + "\n"
	}
	return text + "\n" + indented(*r.Content)
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n    ") + "\n"
}

// oneLine is the first line of a text, as far as so many characters of it.
func oneLine(text string, most int) string {
	line, _, more := strings.Cut(printable(text), "\n")
	if letters := []rune(line); len(letters) > most {
		line, more = string(letters[:most]), true
	}
	if more {
		line += "…"
	}
	return line
}

// printable has no character that a terminal would obey: titles, messages and results
// are foreign texts.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n', c == '\t':
			return c
		case c < ' ', c >= 0x7f && c < 0xa0, c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069: // controls, and marks that turn the writing round
			return '\ufffd'
		}
		return c
	}, text)
}

// export writes a session's document. A file gets its name once it is whole.
func (r remote) export(ctx context.Context, id, to string, stdout io.Writer, say progress) (err error) {
	answer, err := r.get(ctx, "/v1/sessions/"+id+"/export")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if to == "" {
		_, err := io.Copy(stdout, answer.Body)
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists, and is not overwritten; choose another name", to)
	}
	part, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*"+partOf)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	defer say("")
	_, err = io.Copy(io.MultiWriter(part, &counter{say: say, done: "exported"}), answer.Body)
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), to)
}

// counter says how much has been done.
type counter struct {
	say   progress
	done  string // a word for what is done
	bytes int64
}

func (c *counter) Write(b []byte) (int, error) {
	if before := c.bytes >> 20; (c.bytes+int64(len(b)))>>20 > before {
		c.say("%s: %d MiB", c.done, (c.bytes+int64(len(b)))>>20)
	}
	c.bytes += int64(len(b))
	return len(b), nil
}
