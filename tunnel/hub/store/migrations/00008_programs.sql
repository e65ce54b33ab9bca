-- +goose Up
-- Programs that signed themselves up (RFC 7591). Anybody can: they are bounded,
-- and those that nobody let in are forgotten.
CREATE TABLE programs (
    id        TEXT PRIMARY KEY,
    name      TEXT NOT NULL, -- as it calls itself
    redirects TEXT NOT NULL, -- JSON array of strings
    source    TEXT NOT NULL, -- the network that it came from
    created   INTEGER NOT NULL
);
CREATE INDEX programs_created ON programs (created);

-- What a token may be used at; '' for a computer's.
ALTER TABLE signins ADD COLUMN resource TEXT NOT NULL DEFAULT '';
ALTER TABLE signin_requests ADD COLUMN resource TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE signin_requests DROP COLUMN resource;
ALTER TABLE signins DROP COLUMN resource;
DROP TABLE programs;
