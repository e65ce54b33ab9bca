-- +goose Up
-- Whose a sandbox is: its key's user, who is its machine's too.
ALTER TABLE sandboxes ADD COLUMN user_id TEXT NOT NULL DEFAULT 'owner';
CREATE INDEX sandboxes_user ON sandboxes (user_id, ended);

-- +goose Down
DROP INDEX sandboxes_user;
ALTER TABLE sandboxes DROP COLUMN user_id;
