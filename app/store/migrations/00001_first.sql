-- +goose Up
CREATE TABLE entries (
    seq  INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    ref  TEXT NOT NULL,
    body TEXT NOT NULL,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL,
    sig  TEXT NOT NULL
);
CREATE INDEX entries_ref ON entries (ref, seq) WHERE ref <> '';
CREATE INDEX entries_kind ON entries (kind, seq);

-- The record only grows, by the next number.
-- +goose StatementBegin
CREATE TRIGGER entries_next BEFORE INSERT ON entries
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries)
BEGIN SELECT RAISE(ABORT, 'this is not the next entry of the record'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
-- +goose StatementEnd

CREATE TABLE grants (
    id        TEXT PRIMARY KEY,
    hub       TEXT NOT NULL,
    principal TEXT NOT NULL,
    session   TEXT NOT NULL,
    rule      TEXT NOT NULL, -- consent.Rule as JSON
    deny      INTEGER NOT NULL,
    scope     TEXT NOT NULL,
    choice    TEXT NOT NULL, -- consent.Choice as JSON
    name      TEXT NOT NULL,
    created   INTEGER NOT NULL, -- Unix milliseconds, as the others
    expires   INTEGER NOT NULL, -- 0: never
    last_used INTEGER NOT NULL
);
CREATE UNIQUE INDEX grants_rule ON grants (rule, deny, scope, session);
CREATE INDEX grants_principal ON grants (hub, principal);

-- +goose Down
DROP TABLE grants;
DROP TABLE entries;
