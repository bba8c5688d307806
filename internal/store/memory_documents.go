package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"loadline/internal/session"
)

// Documents returns the newest versions of a project's documents, without their
// texts, in order of their names.
func (s *Store) Documents(ctx context.Context, project string) ([]session.Document, error) {
	return s.manyDocuments(ctx, project, "documents", project)
}

// DocumentVersions returns up to limit versions of a document before the given one,
// without their texts, the newest first; a before of 0 starts there.
func (s *Store) DocumentVersions(ctx context.Context, project string, name session.DocumentName, before int64, limit int) ([]session.Document, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	versions, err := s.manyDocuments(ctx, project, "document_versions", project, string(name), before, bounded(limit))
	if err == nil && len(versions) == 0 {
		_, err = s.Document(ctx, project, name, 0)
	}
	return versions, err
}

func (s *Store) manyDocuments(ctx context.Context, project, query string, args ...any) ([]session.Document, error) {
	documents := []session.Document{}
	err := s.reader.each(ctx, query, args, func(rows *sql.Rows) (bool, error) {
		d, err := scanDocument(rows)
		d.Text = ""
		documents = append(documents, d)
		return true, err
	})
	if err != nil {
		return nil, s.failed("read documents of project "+project, err)
	}
	return documents, nil
}

// Document returns one version of a document; version 0 is the newest.
func (s *Store) Document(ctx context.Context, project string, name session.DocumentName, version int64) (d session.Document, err error) {
	query, args := "document_now", []any{project, string(name)}
	if version != 0 {
		query, args = "document_version", append(args, version)
	}
	err = s.reader.one(ctx, query, args, func(rows *sql.Rows) error {
		d, err = scanDocument(rows)
		return err
	})
	switch {
	case errors.Is(err, session.ErrNotFound) && version != 0:
		return d, fmt.Errorf("version %d of document %s of project %s: %w", version, name, project, err)
	case errors.Is(err, session.ErrNotFound):
		return d, fmt.Errorf("document %s of project %s: %w", name, project, err)
	case err != nil:
		return d, s.failed(fmt.Sprintf("read document %s of project %s", name, project), err)
	}
	return d, nil
}

func scanDocument(row scanner) (d session.Document, err error) {
	var records string
	if err := row.Scan(&d.Project, &d.Name, &d.Version, &d.Text, &records, &d.Reason, &d.RestoredFrom, &d.CreatedAt); err != nil {
		return d, err
	}
	d.TextBytes = len(d.Text)
	if err := json.Unmarshal([]byte(records), &d.Records); err != nil {
		return d, fmt.Errorf("records of document %s: %w", d.Name, err)
	}
	return d, nil
}

// Recall returns the summary that the session's project had when the session was
// made, or empty text: the same for as long as the session lives, unless the document
// is deleted.
func (s *Store) Recall(ctx context.Context, id session.ID) (string, error) {
	var d session.Document
	err := s.reader.one(ctx, "recall", []any{string(id)}, func(rows *sql.Rows) (err error) {
		d, err = scanDocument(rows)
		return err
	})
	if errors.Is(err, session.ErrNotFound) {
		return "", nil
	}
	return d.Text, s.readError(id, err)
}

// RestoreDocument makes a new version of a document that says what an older one
// said. It returns the new one.
func (s *Store) RestoreDocument(ctx context.Context, project string, name session.DocumentName, version int64) (restored session.Document, err error) {
	old, err := s.Document(ctx, project, name, version)
	if err != nil {
		return old, err
	}
	err = s.write(ctx, fmt.Sprintf("restore document %s of project %s", name, project), func(c *connection) error {
		now, err := scanDocument(rowOf{c, "document_now", []any{project, string(name)}})
		if err != nil {
			return notFound(err) // deleted since it was read
		}
		restored = old
		restored.Version, restored.Reason, restored.RestoredFrom = now.Version+1, session.VersionRestored, old.Version
		restored.CreatedAt = session.Now()
		return insertVersion(c, &restored)
	})
	return restored, err
}

// DeleteDocument deletes a document with all its versions. Nothing of it can be
// read, found or recalled after that. The records that it rests on stay.
func (s *Store) DeleteDocument(ctx context.Context, project string, name session.DocumentName) error {
	return s.write(ctx, fmt.Sprintf("delete document %s of project %s", name, project), func(c *connection) error {
		var row int64
		if err := c.queryRow("delete_document", []any{project, string(name)}, &row); err != nil {
			return notFound(err)
		}
		if _, err := c.exec("delete_versions", row); err != nil {
			return err
		}
		_, err := c.exec("unindex", documentPlace(row))
		return err
	})
}

// OpenRecords returns up to limit open records of a project after the given one, the
// oldest first; an empty after starts there.
func (s *Store) OpenRecords(ctx context.Context, project string, after session.RecordID, limit int) ([]session.Record, error) {
	var records []session.Record
	err := s.reader.each(ctx, "open_records", []any{project, string(after), bounded(limit)}, func(rows *sql.Rows) (bool, error) {
		r, err := scanRecord(rows)
		records = append(records, r)
		return true, err
	})
	if err != nil {
		return nil, s.failed("read open records of project "+project, err)
	}
	return records, nil
}

// OpenRecordsTotal returns how many records of a project are open, and the bytes of
// their texts.
func (s *Store) OpenRecordsTotal(ctx context.Context, project string) (count, bytes int64, err error) {
	err = s.reader.one(ctx, "open_records_total", []any{project}, func(rows *sql.Rows) error {
		return rows.Scan(&count, &bytes)
	})
	if err != nil {
		return 0, 0, s.failed("count open records of project "+project, err)
	}
	return count, bytes, nil
}

// Consolidate stores new versions of documents and closes the records that they come
// from, all or nothing. It returns ErrConflict when a document has another version
// than the one before the new one, or when a record is not open any more.
func (s *Store) Consolidate(ctx context.Context, done session.Consolidation) error {
	return s.write(ctx, "store a consolidation of project "+done.Project, func(c *connection) error {
		now := session.Now()
		for i := range done.Documents {
			d := done.Documents[i]
			d.Project, d.CreatedAt = done.Project, now
			if err := insertVersion(c, &d); err != nil {
				return err
			}
		}
		for _, closed := range done.Closed {
			if err := closeRecord(c, done.Project, closed, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// insertVersion stores the next version of a document, which is the first one when
// there is no document yet.
func insertVersion(c *connection, d *session.Document) (err error) {
	var row int64
	if d.Version == 1 {
		err = c.queryRow("begin_document", []any{d.Project, string(d.Name)}, &row)
	} else {
		err = c.queryRow("advance_document", []any{d.Project, string(d.Name), d.Version}, &row)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("version %d of document %s: %w", d.Version, d.Name, session.ErrConflict)
	}
	if err != nil {
		return err
	}
	records, err := session.EncodeJSON(append([]session.RecordRef{}, d.Records...)) // a list also when empty
	if err != nil {
		return err
	}
	if _, err := c.exec("insert_version", row, d.Version, d.Text, string(records), string(d.Reason), d.RestoredFrom, int64(d.CreatedAt)); err != nil {
		return err
	}
	if _, err := c.exec("unindex", documentPlace(row)); err != nil {
		return err
	}
	return indexMemory(c, documentPlace(row), d.Project, d.Text)
}

// closeRecord closes a record. Only those that were applied can still be found.
func closeRecord(c *connection, project string, closed session.ClosedRecord, now session.Time) error {
	var row int64
	err := c.queryRow("close_record", []any{string(closed.ID), project, string(closed.Reason), int64(now)}, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("record %s: %w", closed.ID, session.ErrConflict)
	}
	if err != nil || closed.Reason == session.CloseApplied {
		return err
	}
	_, err = c.exec("unindex", recordPlace(row))
	return err
}
