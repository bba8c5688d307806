package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"loadline/internal/session"
)

// errPointer refuses what a pass over other items than the next ones has brought.
var errPointer = errors.New("the pointer stands elsewhere")

// applyExtracted stores what a pass has come to. It runs in the writer.
func (p *plan) applyExtracted(c *connection, row int64) error {
	x := p.extracted
	if x.To != 0 {
		if err := movePointer(c, row, x); err != nil {
			return err
		}
	}
	for i := range x.Records {
		if err := insertRecord(c, &x.Records[i]); err != nil {
			return err
		}
	}
	for i := range x.Passes {
		if err := p.insertPass(c, row, &x.Passes[i]); err != nil {
			return err
		}
	}
	if err := p.applyLetters(c, row, x); err != nil {
		return err
	}
	if x.Retry == nil {
		return nil
	}
	return setRetry(c, row, *x.Retry)
}

func movePointer(c *connection, row int64, x *session.Extracted) error {
	moved, err := c.exec("move_pointer", row, x.From-1, x.To, x.To-x.From+1, x.Bytes)
	if err != nil {
		return err
	}
	if n, err := moved.RowsAffected(); n == 0 {
		return errors.Join(errPointer, err)
	}
	return nil
}

func (p *plan) insertPass(c *connection, row int64, pass *session.Pass) error {
	data, err := session.EncodeJSON(pass)
	if err != nil {
		return err
	}
	_, err = c.exec("insert_pass", row, string(pass.ID), int64(p.at), string(pass.Outcome), string(data))
	return err
}

func (p *plan) applyLetters(c *connection, row int64, x *session.Extracted) error {
	if l := x.MadeLetter; l != nil {
		_, err := c.exec("insert_letter", string(l.ID), row, l.FromN, l.ToN, string(l.Outcome), l.Failures, int64(l.CreatedAt))
		if err != nil {
			return err
		}
	}
	if x.RedrivenTo == 0 {
		return nil
	}
	redriven, err := c.exec("redrive_letter", string(x.RedrivenLetter), row, x.RedrivenTo, int64(p.at))
	if err != nil {
		return err
	}
	if n, err := redriven.RowsAffected(); n == 0 {
		return errors.Join(errPointer, err)
	}
	return nil
}

func setRetry(c *connection, row int64, r session.Retrying) (err error) {
	if r == (session.Retrying{}) {
		_, err = c.exec("clear_retry", row)
	} else {
		_, err = c.exec("set_retry", row, r.More, r.ToN, r.MaxItems, r.ItemBytes, r.Failures)
	}
	return err
}

// Backlog returns what extraction has before it in a session.
func (s *Store) Backlog(ctx context.Context, id session.ID) (b session.Backlog, err error) {
	err = s.reader.one(ctx, "backlog", []any{string(id)}, func(rows *sql.Rows) error {
		return rows.Scan(&b.Project, &b.Pointer, &b.Items, &b.Bytes, &b.Retry.More, &b.Retry.ToN, &b.Retry.MaxItems, &b.Retry.ItemBytes, &b.Retry.Failures)
	})
	return b, s.readError(id, err)
}

// Backlogs returns the sessions of a project whose items after the pointer have
// notes of at least minBytes, and those of which more is to be read or
// read again, in no order.
func (s *Store) Backlogs(ctx context.Context, project string, minBytes int64) ([]session.ID, error) {
	var ids []session.ID
	err := s.reader.each(ctx, "backlogs", []any{project, minBytes}, func(rows *sql.Rows) (bool, error) {
		var id session.ID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return true, err
	})
	if err != nil {
		return nil, s.failed("read backlogs", err)
	}
	return ids, nil
}

// BacklogTotal returns how many items of a project's sessions are after their
// pointers, and the bytes of their notes.
func (s *Store) BacklogTotal(ctx context.Context, project string) (items, bytes int64, err error) {
	err = s.reader.one(ctx, "backlog_total", []any{project}, func(rows *sql.Rows) error {
		return rows.Scan(&items, &bytes)
	})
	if err != nil {
		return 0, 0, s.failed("read backlogs", err)
	}
	return items, bytes, nil
}

// Notes returns up to limit notes of items with numbers after the given one, in
// order: what extraction may see of them. The contents of tool results, arguments of
// calls and reasoning are not even read. The page ends before the first number that
// is not taken yet, before the first item of a turn that has not ended, and when it
// has 4 MiB of texts; only an empty page says that there is no next note now.
func (s *Store) Notes(ctx context.Context, id session.ID, after int64, limit int) ([]session.Note, error) {
	notes := []session.Note{}
	bytes := int64(0)
	err := s.reader.each(ctx, "notes", []any{string(id), after, bounded(limit)}, func(rows *sql.Rows) (bool, error) {
		note, err := scanNote(rows)
		if err != nil || note.N != after+int64(len(notes))+1 {
			return false, err
		}
		if bytes += note.Bytes(); len(notes) > 0 && bytes > maxPageBytes {
			return false, nil
		}
		notes = append(notes, note)
		return true, nil
	})
	return notes, s.readError(id, err)
}

func scanNote(rows *sql.Rows) (session.Note, error) {
	var n, kind int64
	var text, data sql.NullString
	if err := rows.Scan(&n, &kind, &text, &data); err != nil {
		return session.Note{}, err
	}
	note := session.Note{N: n, Text: text.String}
	switch code(kind) {
	case codeUserMessage:
		note.Kind = session.KindUserMessage
	case codeAssistantMessage:
		note.Kind = session.KindAssistantMessage
	case codeReasoning:
		note.Kind = session.KindReasoning
	case codeSummary:
		note.Kind = session.KindSummary
		if data.Valid { // it stands for a range
			note.Text = ""
		}
	case codeToolCall, codeToolCallRaw, codeToolCallRead, codeToolCallNone:
		note.Kind, note.Tool = session.KindToolCall, data.String
	case codeToolResult:
		var r session.ToolResult // without its content, which is elsewhere
		if err := json.Unmarshal([]byte(data.String), &r); err != nil {
			return note, fmt.Errorf("item %d: %w", n, err)
		}
		note.Kind, note.Tool, note.Failed, note.Text = session.KindToolResult, r.Tool, r.Failed, r.Summary
	default:
		return note, fmt.Errorf("item %d has the unknown code %d", n, kind)
	}
	return note, nil
}

// Passes returns up to limit passes of a session after the given one, in the order
// in which they ended; an empty after starts at the oldest.
func (s *Store) Passes(ctx context.Context, id session.ID, after session.PassID, limit int) ([]session.Pass, error) {
	passes := []session.Pass{}
	err := s.reader.each(ctx, "passes", []any{string(id), string(after), bounded(limit)}, func(rows *sql.Rows) (bool, error) {
		var data string
		if err := rows.Scan(&data); err != nil {
			return false, err
		}
		var pass session.Pass
		err := json.Unmarshal([]byte(data), &pass)
		passes = append(passes, pass)
		return true, err
	})
	if err == nil && len(passes) == 0 {
		_, err = s.Session(ctx, id)
		return passes, err
	}
	return passes, s.readError(id, err)
}
