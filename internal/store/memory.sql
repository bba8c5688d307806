-- name: move_pointer
UPDATE sessions SET extracted_n = $3, backlog_items = max(0, backlog_items - $4), backlog_bytes = max(0, backlog_bytes - $5),
    backlogged = backlog_items > $4
WHERE row = $1 AND extracted_n = $2

-- name: begin_backlog
UPDATE sessions SET backlogged = 1 WHERE row = $1

-- name: set_retry
INSERT INTO extract_retries (session, more, to_n, max_items, item_bytes, failures) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (session) DO UPDATE SET more = $2, to_n = $3, max_items = $4, item_bytes = $5, failures = $6

-- name: clear_retry
DELETE FROM extract_retries WHERE session = $1

-- name: insert_pass
INSERT INTO passes (session, id, ended_at, outcome, data) VALUES ($1, $2, $3, $4, $5)

-- name: insert_record
INSERT INTO records (id, project, session_id, kind, claim, why, evidence, stale_after, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9)
ON CONFLICT (id) DO NOTHING

-- name: insert_letter
INSERT INTO dead_letters (id, session, from_n, to_n, outcome, failures, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: redrive_letter
UPDATE dead_letters SET from_n = $3 + 1, redriven_at = iif($3 >= to_n, $4, NULL)
WHERE id = $1 AND session = $2 AND redriven_at IS NULL AND from_n <= $3

-- name: sweep_passes
DELETE FROM passes WHERE row IN (SELECT row FROM passes WHERE session = $1 LIMIT $2)

-- name: sweep_retries
DELETE FROM extract_retries WHERE session IN (SELECT session FROM extract_retries WHERE session = $1 LIMIT $2)

-- name: sweep_letters
DELETE FROM dead_letters WHERE row IN (SELECT row FROM dead_letters WHERE session = $1 LIMIT $2)

-- name: backlog
SELECT s.project, s.extracted_n, s.backlog_items, s.backlog_bytes,
    coalesce(r.more, 0), coalesce(r.to_n, 0), coalesce(r.max_items, 0), coalesce(r.item_bytes, 0), coalesce(r.failures, 0)
FROM sessions s LEFT JOIN extract_retries r ON r.session = s.row WHERE s.id = $1

-- name: backlogs
SELECT id FROM sessions INDEXED BY backlogs WHERE project = $1 AND backlogged = 1 AND backlog_bytes >= $2
UNION SELECT s.id FROM extract_retries r JOIN sessions s ON s.row = r.session WHERE s.project = $1

-- name: backlog_total
SELECT coalesce(sum(backlog_items), 0), coalesce(sum(backlog_bytes), 0)
FROM sessions INDEXED BY backlogs WHERE project = $1 AND backlogged = 1

-- name: notes
SELECT l.n, l.code, CASE l.code WHEN 16 THEN coalesce(l.text, t.input) WHEN 17 THEN l.text WHEN 22 THEN l.text END,
    CASE WHEN l.code IN (19, 20, 21, 22, 23, 24) THEN l.data END
FROM log l JOIN turns t ON t.row = l.turn
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.n > $2 AND t.ended_at IS NOT NULL
ORDER BY l.n LIMIT $3

-- name: passes
SELECT data FROM passes WHERE session = (SELECT row FROM sessions WHERE id = $1)
    AND row > coalesce((SELECT row FROM passes WHERE id = $2), 0)
ORDER BY row LIMIT $3

-- name: dead_letter
SELECT l.id, s.project, s.id, l.from_n, l.to_n, l.outcome, l.failures, l.created_at
FROM dead_letters l JOIN sessions s ON s.row = l.session

-- name: dead_letter_by_id
WHERE l.id = $1 AND l.redriven_at IS NULL

-- name: dead_letters
WHERE s.project = $1 AND l.redriven_at IS NULL AND l.row > coalesce((SELECT row FROM dead_letters WHERE id = $2), 0)
ORDER BY l.row LIMIT $3

-- name: count_letters
SELECT count(*) FROM dead_letters l JOIN sessions s ON s.row = l.session WHERE l.redriven_at IS NULL

-- name: last_letter
SELECT coalesce(max(created_at), 0) FROM dead_letters

-- name: last_success
SELECT coalesce(max(ended_at), 0) FROM passes INDEXED BY passes_succeeded WHERE outcome IN ('staged', 'empty')

-- name: record
SELECT row, id, project, session_id, kind, claim, why, evidence, stale_after, state, reason, created_at, closed_at FROM records

-- name: records
WHERE project = $1 AND ($2 = '' OR state = $2) AND ($3 = '' OR kind = $3)
    AND row > coalesce((SELECT row FROM records WHERE id = $4), 0)
ORDER BY row LIMIT $5

-- name: open_records
WHERE project = $1 AND state = 'open' AND row > coalesce((SELECT row FROM records WHERE id = $2), 0)
ORDER BY row LIMIT $3

-- name: record_hit
WHERE row = $1

-- name: records_with
WHERE project = $1 AND (state = 'open' OR reason = 'applied') AND (claim LIKE $2 ESCAPE '\' OR why LIKE $2 ESCAPE '\')
ORDER BY row DESC LIMIT $3
