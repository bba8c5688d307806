package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"loadline/internal/session"
)

func insertRecord(c *connection, r *session.Record) error {
	evidence, err := session.EncodeJSON(r.Evidence)
	if err != nil {
		return err
	}
	inserted, err := c.exec("insert_record", string(r.ID), r.Project, string(r.SessionID), string(r.Kind), r.Claim, r.Why,
		string(evidence), nullTime(r.StaleAfter), int64(r.CreatedAt))
	if err != nil {
		return err
	}
	if n, err := inserted.RowsAffected(); n == 0 || err != nil {
		return err // it was there
	}
	row, err := inserted.LastInsertId()
	if err != nil {
		return err
	}
	return indexMemory(c, recordPlace(row), r.Project, r.Claim+"\n"+r.Why)
}

// Records returns up to limit records of a project after the given one, the oldest
// first; an empty after starts there. State and kind narrow the choice unless they
// are empty. Like a page of items it ends at 4 MiB of texts, so only an empty page
// says that there is no next record.
func (s *Store) Records(ctx context.Context, project string, state session.RecordState, kind session.RecordKind, after session.RecordID, limit int) ([]session.Record, error) {
	records := []session.Record{}
	bytes := 0
	args := []any{project, string(state), string(kind), string(after), bounded(limit)}
	err := s.reader.each(ctx, "records", args, func(rows *sql.Rows) (bool, error) {
		r, err := scanRecord(rows)
		if err != nil {
			return false, err
		}
		if bytes += len(r.Claim) + len(r.Why); len(records) > 0 && bytes > maxPageBytes {
			return false, nil
		}
		records = append(records, r)
		return true, nil
	})
	if err != nil {
		return nil, s.failed("read records", err)
	}
	return records, nil
}

func scanRecord(row scanner) (r session.Record, err error) {
	var evidence string
	var staleAfter, closedAt sql.NullInt64
	var reason sql.NullString
	err = row.Scan(&r.N, &r.ID, &r.Project, &r.SessionID, &r.Kind, &r.Claim, &r.Why, &evidence, &staleAfter, &r.State, &reason, &r.CreatedAt, &closedAt)
	if err != nil {
		return r, err
	}
	r.StaleAfter, r.ClosedAt = session.Time(staleAfter.Int64), session.Time(closedAt.Int64)
	r.Reason = session.CloseReason(reason.String)
	if err := json.Unmarshal([]byte(evidence), &r.Evidence); err != nil {
		return r, fmt.Errorf("evidence of %s: %w", r.ID, err)
	}
	return r, nil
}
