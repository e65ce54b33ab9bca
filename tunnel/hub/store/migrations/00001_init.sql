-- +goose Up
CREATE TABLE users (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    created INTEGER NOT NULL -- Unix milliseconds, as every time below
);
INSERT INTO users (id, name, created) VALUES ('owner', 'owner', unixepoch() * 1000);

-- Keys of programs and tokens of machines. Only hashes are kept.
CREATE TABLE tokens (
    id        TEXT PRIMARY KEY,
    user_id   TEXT NOT NULL REFERENCES users (id),
    kind      TEXT NOT NULL CHECK (kind IN ('key', 'machine')),
    hash      BLOB NOT NULL UNIQUE, -- SHA-256
    prefix    TEXT NOT NULL,        -- the first characters, for display
    name      TEXT NOT NULL,
    machine   TEXT NOT NULL DEFAULT '', -- '' until a new machine comes with it
    created   INTEGER NOT NULL,
    last_used INTEGER NOT NULL DEFAULT 0,
    revoked   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX tokens_machine ON tokens (machine) WHERE kind = 'machine';

-- What the hub says of itself to the localpc-hub commands.
CREATE TABLE about (
    address TEXT NOT NULL
);

CREATE TABLE machines (
    id        TEXT PRIMARY KEY,
    user_id   TEXT NOT NULL REFERENCES users (id),
    name      TEXT NOT NULL,
    platform  TEXT NOT NULL DEFAULT '',
    arch      TEXT NOT NULL DEFAULT '',
    software  TEXT NOT NULL DEFAULT '',
    epoch     INTEGER NOT NULL DEFAULT 0, -- rises with each connection
    online    INTEGER NOT NULL DEFAULT 0,
    last_seen INTEGER NOT NULL DEFAULT 0,
    created   INTEGER NOT NULL,
    -- The newest entry of the machine's own record that it told of, and when it
    -- first told of one that does not follow: its record was cut off.
    record_seq  INTEGER NOT NULL DEFAULT 0,
    record_hash TEXT NOT NULL DEFAULT '',
    record_cut  INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE sandboxes (
    id        TEXT PRIMARY KEY, -- also the id of the machine's session
    machine   TEXT NOT NULL REFERENCES machines (id),
    principal TEXT NOT NULL, -- the key's id
    template  TEXT NOT NULL,
    metadata  TEXT NOT NULL, -- JSON object of strings
    folder    TEXT NOT NULL, -- on the machine, as the person chose
    mode      TEXT NOT NULL,
    started   INTEGER NOT NULL, -- when the person agreed
    ends_at   INTEGER NOT NULL,
    ended     INTEGER NOT NULL DEFAULT 0,
    reason    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX sandboxes_principal ON sandboxes (principal, ended, started, id);
CREATE INDEX sandboxes_machine ON sandboxes (machine, ended);

-- +goose Down
DROP TABLE sandboxes;
DROP TABLE machines;
DROP TABLE about;
DROP TABLE tokens;
DROP TABLE users;
