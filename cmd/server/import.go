package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"loadline/internal/session"
)

// newImport makes the command that gives a document to the server at.
func newImport(at *remote, stdout, stderr io.Writer) *cobra.Command {
	query := url.Values{}
	c := &cobra.Command{
		Use: "import FILE", Short: "Make a session out of a document: an export, or the messages of another program",
		Long: `Make a session out of a document: an export, or the messages of another program, those
of OpenAI's or Anthropic's API. All of it comes in or nothing. The id of the new session
goes to standard output, what had to be repaired to standard error.`,
		Example: `  server sessions import session.json
  server sessions import messages.json --format openai --title "Rescued"
  server sessions export ID --server http://old:8080 | server sessions import -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("it needs one file; - is standard input")
			}
			return nil
		},
	}
	project := c.Flags().String("project", "", "the `PROJECT` of the session; the default one without it")
	format := c.Flags().String("format", "", "`FORM` of the document: loadline, openai or anthropic; found out without it")
	title := c.Flags().String("title", "", "the session's `TITLE`; that of an export without it")
	c.RunE = interruptible(func(ctx context.Context, args []string) error {
		for name, value := range map[string]string{"project": *project, "format": *format, "title": *title} {
			if value != "" {
				query.Set(name, value)
			}
		}
		made, err := at.importFile(ctx, args[0], query, newProgress(stderr))
		if err != nil {
			return err
		}
		return tellImport(made, stdout, stderr)
	})
	return c
}

// importFile sends a file, or standard input when its name is "-".
func (r remote) importFile(ctx context.Context, name string, query url.Values, say progress) (made session.Imported, err error) {
	document := os.Stdin
	if name != "-" {
		if document, err = os.Open(name); err != nil {
			return made, err
		}
		defer document.Close()
	}
	defer say("")
	sent := io.TeeReader(document, &counter{say: say, done: "sent"})
	answer, err := r.ask(ctx, http.MethodPost, "/v1/sessions/import?"+query.Encode(), sent)
	if err != nil {
		return made, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswerBytes)).Decode(&made); err != nil {
		return made, fmt.Errorf("the answer of %s: %w", r.url, err)
	}
	return made, nil
}

func tellImport(made session.Imported, stdout, stderr io.Writer) error {
	for _, repair := range made.Repairs {
		fmt.Fprintf(stderr, "entry %d: %s: %s\n", repair.Index, repair.Code, oneLine(repair.Detail, 200))
	}
	if more := made.RepairsTotal - len(made.Repairs); more > 0 {
		fmt.Fprintf(stderr, "and %d more repairs\n", more)
	}
	_, err := fmt.Fprintln(stdout, made.Session.ID)
	return err
}
