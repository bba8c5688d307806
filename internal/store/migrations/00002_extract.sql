-- +goose Up

-- What extraction has before it, by session. The number and the size of the items
-- after the pointer are kept with each append, so that nobody has to count.
ALTER TABLE sessions ADD COLUMN extracted_n   BIGINT NOT NULL DEFAULT 0; -- the pointer: last item consumed
ALTER TABLE sessions ADD COLUMN backlog_items BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN backlog_bytes BIGINT NOT NULL DEFAULT 0; -- of session.Note
ALTER TABLE sessions ADD COLUMN backlogged    BIGINT NOT NULL DEFAULT 0; -- 1: there are such items

UPDATE sessions SET
    backlog_items = (SELECT count(*) FROM log l WHERE l.session = sessions.row AND l.n IS NOT NULL),
    backlog_bytes = (SELECT coalesce(sum(CASE
            WHEN l.code = 16 THEN iif(coalesce(l.text, t.input) = '', 0, 40 + octet_length(coalesce(l.text, t.input)))
            WHEN l.code IN (17, 22) THEN iif(l.text = '', 0, 40 + octet_length(l.text))
            WHEN l.code IN (19, 20) THEN 40 + octet_length(l.data)
            WHEN l.code = 21 THEN 40 + octet_length(l.data ->> '$.tool') + octet_length(l.data ->> '$.summary')
            ELSE 0 END), 0)
        FROM log l LEFT JOIN turns t ON t.row = l.turn WHERE l.session = sessions.row AND l.n IS NOT NULL);

UPDATE sessions SET backlogged = backlog_items > 0;

-- Of columns that change only with the first item after a pointer, and with the last:
-- an index over the sizes would be written with each append.
CREATE INDEX backlogs ON sessions (project) WHERE backlogged = 1;

-- What the next pass of a session must know of its last ones: session.Retrying.
CREATE TABLE extract_retries (
    session    INTEGER PRIMARY KEY,
    more       BIGINT NOT NULL,
    to_n       BIGINT NOT NULL,
    max_items  BIGINT NOT NULL,
    item_bytes BIGINT NOT NULL,
    failures   BIGINT NOT NULL
);

-- The audit trail.
CREATE TABLE passes (
    row     INTEGER PRIMARY KEY,
    session BIGINT NOT NULL,
    id      TEXT   NOT NULL UNIQUE,
    ended_at BIGINT NOT NULL,
    outcome TEXT   NOT NULL,
    data    TEXT   NOT NULL                       -- the pass as JSON
);
CREATE INDEX passes_of_session ON passes (session, row);
CREATE INDEX passes_succeeded ON passes (ended_at) WHERE outcome IN ('staged', 'empty');

CREATE TABLE dead_letters (
    row         INTEGER PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    session     BIGINT NOT NULL,
    from_n      BIGINT NOT NULL,                  -- moves on as a redrive goes on
    to_n        BIGINT NOT NULL,
    outcome     TEXT   NOT NULL,
    failures    BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    redriven_at BIGINT                            -- NULL: not yet
);
CREATE INDEX open_letters ON dead_letters (session) WHERE redriven_at IS NULL;

-- Records belong to the project and stay when their session is deleted.
CREATE TABLE records (
    row         INTEGER PRIMARY KEY,
    id          TEXT   NOT NULL UNIQUE,
    project     TEXT   NOT NULL,
    session_id  TEXT   NOT NULL,
    kind        TEXT   NOT NULL,
    claim       TEXT   NOT NULL,
    why         TEXT   NOT NULL,
    evidence    TEXT   NOT NULL,                  -- a JSON array of numbers of items
    stale_after BIGINT,
    state       TEXT   NOT NULL,
    reason      TEXT,
    created_at  BIGINT NOT NULL,
    closed_at   BIGINT
);
CREATE INDEX records_of_project ON records (project, row);
CREATE INDEX open_records ON records (project, row) WHERE state = 'open';
