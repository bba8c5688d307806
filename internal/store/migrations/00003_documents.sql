-- +goose Up

-- What a new session is told is the newest version of its project's summary that
-- there was when it was made: it stays the same to the session's end.
ALTER TABLE sessions ADD COLUMN recall BIGINT NOT NULL DEFAULT 0; -- the last row of document_versions by then

CREATE TABLE documents (
    row     INTEGER PRIMARY KEY,
    project TEXT   NOT NULL,
    name    TEXT   NOT NULL,
    version BIGINT NOT NULL,                      -- the newest
    UNIQUE (project, name)
);

CREATE TABLE document_versions (
    row           INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: see sessions.recall
    document      BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    text          TEXT   NOT NULL,
    records       TEXT   NOT NULL,                -- a JSON array of session.RecordRef
    reason        TEXT   NOT NULL,
    restored_from BIGINT NOT NULL,                -- 0: it was not
    created_at    BIGINT NOT NULL,
    UNIQUE (document, version)
);

-- Search over the newest versions of documents, at twice their row plus one, and over
-- the records that are open or applied, at twice their row. Terms are made by the
-- server, begin with what stands for their project, and are separated by spaces.
CREATE VIRTUAL TABLE memory_index USING fts5 (terms, tokenize = 'ascii');
INSERT INTO memory_index (memory_index, rank) VALUES ('secure-delete', 1);
