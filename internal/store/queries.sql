-- name: create_session
INSERT INTO sessions (id, project, title, metadata, generation, queued, running, last_seq, created_at, updated_at, recall)
VALUES ($1, $2, $3, $4, 1, 0, 0, 0, $5, $6, (SELECT coalesce(max(row), 0) FROM document_versions))

-- name: session
SELECT id, project, title, metadata, queued, running, last_seq, created_at, updated_at FROM sessions WHERE id = $1

-- name: owned
SELECT generation, id, project, title, metadata, queued, running, last_seq, created_at, updated_at FROM sessions WHERE id = $1

-- name: sessions
SELECT id, project, title, metadata, queued, running, last_seq, created_at, updated_at FROM sessions
WHERE id < $1 AND ($3 = '' OR instr(lower(title), lower($3)) > 0) ORDER BY id DESC LIMIT $2

-- name: session_exists
SELECT 1 FROM sessions WHERE id = $1

-- name: update_session
UPDATE sessions SET title = coalesce($2, title), metadata = coalesce($3, metadata), updated_at = max($4, updated_at) WHERE id = $1
RETURNING id, project, title, metadata, queued, running, last_seq, created_at, updated_at

-- name: take_over
UPDATE sessions SET generation = generation + 1 WHERE id = $1
RETURNING generation, id, project, title, metadata, queued, running, last_seq, created_at, updated_at

-- name: count_restart
UPDATE turns SET restarts = iif(steps > restart_steps + 1, 1, restarts + 1), restart_steps = steps
WHERE session = (SELECT row FROM sessions WHERE id = $1) AND ended_at IS NULL AND state = 'running'

-- name: unfinished
SELECT s.id FROM (SELECT DISTINCT session FROM turns WHERE ended_at IS NULL) t JOIN sessions s ON s.row = t.session ORDER BY s.id

-- name: bury
INSERT INTO graves (session) SELECT row FROM sessions WHERE id = $1

-- name: delete_session
DELETE FROM sessions WHERE id = $1

-- name: grave
SELECT session FROM graves LIMIT 1

-- name: sweep_log
DELETE FROM log WHERE row IN (SELECT row FROM log WHERE session = $1 LIMIT $2)

-- name: sweep_turns
DELETE FROM turns WHERE row IN (SELECT row FROM turns WHERE session = $1 LIMIT $2)

-- name: sweep_submit_keys
DELETE FROM submit_keys WHERE row IN (SELECT row FROM submit_keys WHERE session = $1 LIMIT $2)

-- name: close_grave
DELETE FROM graves WHERE session = $1

-- name: leased
SELECT row, last_seq, backlog_items FROM sessions WHERE id = $1 AND generation = $2

-- name: append_session
UPDATE sessions SET last_seq = last_seq + $2, queued = queued + $3, running = running + $4, updated_at = $5,
    backlog_items = backlog_items + $6, backlog_bytes = backlog_bytes + $7
WHERE row = $1

-- name: insert_turn
INSERT INTO turns (session, id, state, input, mode, created_at, started_at, ended_at,
    steps, input_tokens, cached_input_tokens, output_tokens, error_code, error_detail, expected_turn)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)

-- name: turn_row
SELECT row FROM turns WHERE session = $1 AND id = $2 AND state = $3

-- name: advance_turn
UPDATE turns SET state = 'running', started_at = coalesce($2, started_at), steps = steps + $3, input_tokens = input_tokens + $4,
    cached_input_tokens = cached_input_tokens + $5, output_tokens = output_tokens + $6
WHERE row = $1

-- name: end_turn
UPDATE turns SET state = $2, started_at = $3, ended_at = $4, steps = $5, input_tokens = $6,
    cached_input_tokens = $7, output_tokens = $8, error_code = $9, error_detail = $10
WHERE row = $1

-- name: insert_log
INSERT INTO log (session, seq, code, turn, at, n, text, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: purge_submit_keys
DELETE FROM submit_keys WHERE created_at <= $1 AND row IN (
    SELECT row FROM (SELECT row FROM submit_keys ORDER BY row LIMIT 2)
    UNION ALL SELECT row FROM submit_keys WHERE session = $2 AND key = $3)

-- name: insert_submit_key
INSERT INTO submit_keys (session, key, body_hash, turn_id, created_at) VALUES ($1, $2, $3, $4, $5)

-- name: submit_key
SELECT k.body_hash, k.turn_id FROM submit_keys k
WHERE k.session = (SELECT row FROM sessions WHERE id = $1) AND k.key = $2 AND k.created_at > $3

-- name: turn
SELECT t.id, t.state, t.input, t.mode, t.created_at, t.started_at, t.ended_at,
    t.steps, t.input_tokens, t.cached_input_tokens, t.output_tokens, t.error_code, t.error_detail,
    t.restarts, coalesce(t.expected_turn, '')
FROM turns t

-- name: turn_by_id
WHERE t.session = (SELECT row FROM sessions WHERE id = $1) AND t.id = $2

-- name: turn_by_row
WHERE t.session = (SELECT row FROM sessions WHERE id = $1) AND t.row = $2

-- name: turns
WHERE t.session = (SELECT row FROM sessions WHERE id = $1) AND t.id > $2 ORDER BY t.id LIMIT $3

-- name: open_turns
WHERE t.session = (SELECT row FROM sessions WHERE id = $1) AND t.ended_at IS NULL
ORDER BY t.state = 'running' DESC, CASE t.mode WHEN 'interrupt' THEN 0 WHEN 'steer' THEN 1 ELSE 2 END,
    iif(t.mode = 'interrupt', -t.row, t.row)

-- name: queued_seq
SELECT l.seq FROM log l WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.code = $3
    AND l.turn = (SELECT t.row FROM turns t WHERE t.session = l.session AND t.id = $2)
ORDER BY l.seq DESC LIMIT 1

-- name: item_entry
SELECT t.id, CASE WHEN l.at > 0 THEN l.at WHEN l.code = 1 THEN t.created_at WHEN l.code IN (2, 16) THEN t.started_at
    WHEN l.code < 7 THEN t.ended_at ELSE 0 END AS at, l.code, l.n,
    CASE WHEN l.code = 16 AND l.text IS NULL THEN t.input ELSE l.text END, l.data
FROM log l LEFT JOIN turns t ON t.row = l.turn

-- name: item
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.n = $2

-- name: items
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.n > $2 ORDER BY l.n LIMIT $3

-- name: history
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.n > $2 AND l.n <= $3 ORDER BY l.n

-- name: cut_results
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.n < $2 AND l.code = 21 AND l.data LIKE '%"truncated":{%'
ORDER BY l.n DESC LIMIT $3

-- name: steps
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.code = 9 ORDER BY l.seq DESC LIMIT $2

-- name: last_item
SELECT coalesce(max(n), 0) FROM log WHERE session = (SELECT row FROM sessions WHERE id = $1) AND n IS NOT NULL

-- name: event_entry
SELECT t.id, CASE WHEN l.at > 0 THEN l.at WHEN l.code = 1 THEN t.created_at WHEN l.code IN (2, 16) THEN t.started_at
    WHEN l.code < 7 THEN t.ended_at ELSE 0 END AS at, l.code, l.n,
    CASE WHEN l.code < 7 OR l.code = 16 AND l.text IS NULL THEN t.input ELSE l.text END, l.data, l.seq, l.turn
FROM log l LEFT JOIN turns t ON t.row = l.turn

-- name: events
WHERE l.session = (SELECT row FROM sessions WHERE id = $1) AND l.seq > $2 AND l.seq <= $3 ORDER BY l.seq LIMIT $4
