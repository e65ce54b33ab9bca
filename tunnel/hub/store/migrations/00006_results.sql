-- +goose Up
-- What became of calls whose clients could not wait for it: MCP answers
-- "pending" with an id, and the result is asked for by it later.
CREATE TABLE results (
    id        TEXT PRIMARY KEY,
    user_id   TEXT NOT NULL REFERENCES users (id),
    principal TEXT NOT NULL, -- who called, and alone may ask for it
    title     TEXT NOT NULL, -- what was called for, in a few words
    created   INTEGER NOT NULL,
    done      INTEGER NOT NULL DEFAULT 0,  -- when it came; 0: not yet
    result    BLOB NOT NULL DEFAULT x'',   -- JSON
    ends_at   INTEGER NOT NULL -- it is forgotten then
);
CREATE INDEX results_principal ON results (principal, created);

-- +goose Down
DROP TABLE results;
