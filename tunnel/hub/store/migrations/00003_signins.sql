-- +goose Up
-- A sign-in is one family of tokens: of one client, for one user and, once one
-- came with it, one machine.
CREATE TABLE signins (
    id        TEXT PRIMARY KEY,
    user_id   TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    client    TEXT NOT NULL,
    scope     TEXT NOT NULL, -- separated by spaces
    machine   TEXT NOT NULL DEFAULT '', -- '' until a machine comes with it
    name      TEXT NOT NULL DEFAULT '', -- as the machine called itself, with its system and address
    system    TEXT NOT NULL DEFAULT '',
    address   TEXT NOT NULL DEFAULT '',
    created   INTEGER NOT NULL,
    last_used INTEGER NOT NULL DEFAULT 0,
    revoked   INTEGER NOT NULL DEFAULT 0,
    reason    TEXT NOT NULL DEFAULT ''
);
CREATE INDEX signins_user ON signins (user_id, revoked);
CREATE INDEX signins_machine ON signins (machine, revoked);

-- Only hashes are kept. A refresh token that was used stays, retired, so that
-- its second use is known for what it is.
CREATE TABLE signin_tokens (
    hash    BLOB PRIMARY KEY, -- SHA-256
    signin  TEXT NOT NULL REFERENCES signins (id) ON DELETE CASCADE,
    kind    TEXT NOT NULL CHECK (kind IN ('access', 'refresh')),
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    retired INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX signin_tokens_signin ON signin_tokens (signin, kind, created);
CREATE INDEX signin_tokens_expires ON signin_tokens (expires);

-- Sign-ins that wait for a person, by a browser or by a typed code. Anybody can
-- make one: they are few, short and swept.
CREATE TABLE signin_requests (
    id           TEXT PRIMARY KEY,
    status       TEXT NOT NULL CHECK (status IN ('waiting', 'approved', 'denied', 'used')),
    client       TEXT NOT NULL,
    scope        TEXT NOT NULL,
    redirect     TEXT NOT NULL DEFAULT '', -- '' for a device
    state        TEXT NOT NULL DEFAULT '',
    nonce        TEXT NOT NULL DEFAULT '',
    challenge    TEXT NOT NULL DEFAULT '',
    machine      TEXT NOT NULL DEFAULT '',
    machine_name TEXT NOT NULL DEFAULT '',
    system       TEXT NOT NULL DEFAULT '',
    address      TEXT NOT NULL DEFAULT '',
    source       TEXT NOT NULL DEFAULT '', -- the network of the address, for counting
    match        TEXT NOT NULL DEFAULT '',
    device_hash  BLOB UNIQUE, -- SHA-256 of the device code
    user_code    BLOB UNIQUE, -- keyed with the hub's secret: it is too short for a plain hash
    code_hash    BLOB UNIQUE, -- SHA-256 of the code given at the approval
    user_id      TEXT NOT NULL DEFAULT '',
    signin       TEXT NOT NULL DEFAULT '', -- what came of it
    created      INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    polled       INTEGER NOT NULL DEFAULT 0,
    poll_every   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX signin_requests_source ON signin_requests (source);
CREATE INDEX signin_requests_expires ON signin_requests (expires);

-- +goose Down
DROP TABLE signin_requests;
DROP TABLE signin_tokens;
DROP TABLE signins;
