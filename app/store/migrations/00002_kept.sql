-- +goose Up
-- Kept versions: what each request changed, and where its old versions are.
CREATE TABLE kept (
    request TEXT PRIMARY KEY,
    session TEXT NOT NULL,    -- '' for an undoing
    folder  TEXT NOT NULL,
    folder_id TEXT NOT NULL,  -- JSON
    time    INTEGER NOT NULL, -- Unix milliseconds
    place   INTEGER NOT NULL, -- the order in which they ended; 0: under way
    state   TEXT NOT NULL,    -- 'open', 'kept', 'undone', 'redone'
    undoes  TEXT NOT NULL,    -- JSON list of requests
    bytes   INTEGER NOT NULL, -- of its old versions
    about   TEXT NOT NULL     -- JSON, of who keeps them
);
CREATE INDEX kept_place ON kept (place);
CREATE INDEX kept_session ON kept (session, place) WHERE session <> '';

CREATE TABLE kept_steps (
    request TEXT NOT NULL REFERENCES kept ON DELETE CASCADE,
    n       INTEGER NOT NULL,
    object  TEXT NOT NULL, -- file in versions, '' for none
    source  TEXT NOT NULL, -- the file in versions that was put back, '' for none
    body    TEXT NOT NULL, -- JSON, of who keeps them
    PRIMARY KEY (request, n)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE kept_steps;
DROP TABLE kept;
