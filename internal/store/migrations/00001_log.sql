-- +goose Up

-- Rows refer to each other by the integer "row"; ids are the names that the
-- world sees. Times are Unix microseconds. There are no foreign keys: one writer
-- makes every row, and a session is swept in pieces after its deletion.

CREATE TABLE sessions (
    row        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: see graves
    id         TEXT   NOT NULL UNIQUE,
    project    TEXT   NOT NULL,
    title      TEXT   NOT NULL,
    metadata   TEXT   NOT NULL,                   -- a JSON object of strings
    generation BIGINT NOT NULL,
    queued     BIGINT NOT NULL CHECK (queued >= 0),
    running    BIGINT NOT NULL CHECK (running IN (0, 1)),
    last_seq   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE turns (
    row                 INTEGER PRIMARY KEY,      -- in order of submit
    session             BIGINT NOT NULL,
    id                  TEXT   NOT NULL,
    state               TEXT   NOT NULL,
    input               TEXT   NOT NULL,
    mode                TEXT   NOT NULL,
    created_at          BIGINT NOT NULL,
    started_at          BIGINT,
    ended_at            BIGINT,
    steps               BIGINT NOT NULL,
    input_tokens        BIGINT NOT NULL,
    cached_input_tokens BIGINT NOT NULL,
    output_tokens       BIGINT NOT NULL,
    error_code          TEXT,
    error_detail        TEXT,
    UNIQUE (session, id)
);
CREATE INDEX open_turns ON turns (session) WHERE ended_at IS NULL;

-- One row for each durable event. An item is stored in the row of its event.
CREATE TABLE log (
    row     INTEGER PRIMARY KEY,
    session BIGINT  NOT NULL,
    seq     BIGINT  NOT NULL,
    code    INTEGER NOT NULL,                     -- type of the event, or kind of the item
    turn    BIGINT,
    at      BIGINT  NOT NULL,
    n       BIGINT,                               -- number of the item
    text    TEXT,                                 -- NULL: none, or the input of its turn
    data    TEXT,                                 -- the tool of a call, or JSON of what has no column
    UNIQUE (session, seq)
);
CREATE UNIQUE INDEX items ON log (session, n) WHERE n IS NOT NULL;

CREATE TABLE submit_keys (
    row        INTEGER PRIMARY KEY,               -- in order of time
    session    BIGINT NOT NULL,
    key        TEXT   NOT NULL,
    body_hash  BLOB   NOT NULL,
    turn_id    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (session, key)
);

-- Deleted sessions of which rows are left.
CREATE TABLE graves (session INTEGER PRIMARY KEY);
