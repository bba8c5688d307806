-- name: document
SELECT d.project, d.name, v.version, v.text, v.records, v.reason, v.restored_from, v.created_at
FROM documents d JOIN document_versions v ON v.document = d.row

-- name: document_now
WHERE d.project = $1 AND d.name = $2 AND v.version = d.version

-- name: document_version
WHERE d.project = $1 AND d.name = $2 AND v.version = $3

-- name: document_versions
WHERE d.project = $1 AND d.name = $2 AND v.version < $3 ORDER BY v.version DESC LIMIT $4

-- name: documents
WHERE d.project = $1 AND v.version = d.version ORDER BY d.name

-- name: recall
WHERE d.project = (SELECT project FROM sessions WHERE id = $1) AND d.name = 'summary'
    AND v.row <= (SELECT recall FROM sessions WHERE id = $1)
ORDER BY v.version DESC LIMIT 1

-- name: document_hit
WHERE d.row = $1 AND v.version = d.version

-- name: documents_with
WHERE d.project = $1 AND v.version = d.version AND v.text LIKE $2 ESCAPE '\' ORDER BY d.name LIMIT $3

-- name: begin_document
INSERT INTO documents (project, name, version) VALUES ($1, $2, 1) ON CONFLICT (project, name) DO NOTHING
RETURNING row

-- name: advance_document
UPDATE documents SET version = version + 1 WHERE project = $1 AND name = $2 AND version = $3 - 1
RETURNING row

-- name: insert_version
INSERT INTO document_versions (document, version, text, records, reason, restored_from, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: delete_document
DELETE FROM documents WHERE project = $1 AND name = $2 RETURNING row

-- name: delete_versions
DELETE FROM document_versions WHERE document = $1

-- name: close_record
UPDATE records SET state = 'closed', reason = $3, closed_at = $4 WHERE id = $1 AND project = $2 AND state = 'open'
RETURNING row

-- name: open_records_total
SELECT count(*), coalesce(sum(octet_length(claim) + octet_length(why)), 0) FROM records
WHERE project = $1 AND state = 'open'

-- name: index
INSERT INTO memory_index (rowid, terms) VALUES ($1, $2)

-- name: unindex
DELETE FROM memory_index WHERE rowid = $1

-- name: hits
SELECT place, rank FROM (
    SELECT rowid AS place, bm25(memory_index) AS rank FROM memory_index WHERE memory_index MATCH $1 ORDER BY rowid DESC LIMIT $3)
ORDER BY rank, place DESC LIMIT $2
