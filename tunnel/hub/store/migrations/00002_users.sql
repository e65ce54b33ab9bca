-- +goose Up
-- People. 'owner' exists from the start; an embedded hub has nobody else.
ALTER TABLE users ADD COLUMN role TEXT NOT NULL DEFAULT 'member' CHECK (role IN ('owner', 'member'));
ALTER TABLE users ADD COLUMN login TEXT;                          -- the name as names are compared; NULL when removed
ALTER TABLE users ADD COLUMN handle BLOB;                         -- what a passkey knows the person by
ALTER TABLE users ADD COLUMN password TEXT NOT NULL DEFAULT '';   -- argon2id, PHC string; '' for none
ALTER TABLE users ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;  -- when the person first chose how to log in
ALTER TABLE users ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;
UPDATE users SET role = 'owner', login = 'owner', handle = randomblob(32) WHERE id = 'owner';
CREATE UNIQUE INDEX users_login ON users (login);
CREATE UNIQUE INDEX users_handle ON users (handle);

-- Links that let a person choose how to log in, each good once.
CREATE TABLE invites (
    hash    BLOB PRIMARY KEY, -- SHA-256
    user_id TEXT NOT NULL REFERENCES users (id),
    kind    TEXT NOT NULL CHECK (kind IN ('setup', 'join', 'reset')),
    expires INTEGER NOT NULL -- 0: until it is used
);

CREATE TABLE passkeys (
    id         TEXT PRIMARY KEY,
    credential BLOB NOT NULL UNIQUE, -- the id that the authenticator gave it
    user_id    TEXT NOT NULL REFERENCES users (id),
    name       TEXT NOT NULL,
    data       BLOB NOT NULL, -- JSON: public key, counter, flags
    created    INTEGER NOT NULL,
    last_used  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- Browsers that are logged in, or about to be (user_id is NULL).
CREATE TABLE browsers (
    id      TEXT PRIMARY KEY, -- SHA-256 of the cookie, in base64
    user_id TEXT REFERENCES users (id),
    data    BLOB NOT NULL,
    agent   TEXT NOT NULL DEFAULT '',
    address TEXT NOT NULL DEFAULT '',
    created INTEGER NOT NULL,
    seen    INTEGER NOT NULL,
    expires INTEGER NOT NULL
);
CREATE INDEX browsers_user ON browsers (user_id);
CREATE INDEX browsers_expires ON browsers (expires);

-- +goose Down
DROP TABLE browsers;
DROP TABLE passkeys;
DROP TABLE invites;
DROP INDEX users_handle;
DROP INDEX users_login;
ALTER TABLE users DROP COLUMN removed;
ALTER TABLE users DROP COLUMN claimed;
ALTER TABLE users DROP COLUMN password;
ALTER TABLE users DROP COLUMN handle;
ALTER TABLE users DROP COLUMN login;
ALTER TABLE users DROP COLUMN role;
