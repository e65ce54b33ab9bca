-- +goose Up
-- A chat that is bound to a folder of a computer of AutoGPT's wire 1.1. The
-- grant is the computer's own word, kept and given back as it is.
CREATE TABLE bindings (
    session     TEXT PRIMARY KEY, -- also the sandbox's id
    user_id     TEXT NOT NULL,
    machine     TEXT NOT NULL REFERENCES machines (id) ON DELETE CASCADE,
    root        TEXT NOT NULL, -- the folder, as the computer names it
    fingerprint TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    root_grant  TEXT NOT NULL,
    env         TEXT NOT NULL, -- JSON object of strings, for every command
    created     INTEGER NOT NULL
);
CREATE INDEX bindings_machine ON bindings (machine);

-- The folder that programs get on such a computer, as its person set it.
CREATE TABLE folders (
    machine TEXT PRIMARY KEY REFERENCES machines (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL, -- who set it: one that another user set counts no more
    folder  TEXT NOT NULL
);

-- +goose Down
DROP TABLE folders;
DROP TABLE bindings;
