-- +goose Up
-- A sandbox may stand still for a while, and at its end instead of ending.
ALTER TABLE sandboxes ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;      -- since when; 0: it runs
ALTER TABLE sandboxes ADD COLUMN end_pauses INTEGER NOT NULL DEFAULT 0;  -- what ends_at means while it runs
ALTER TABLE sandboxes ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 0; -- a call to it resumes it
ALTER TABLE sandboxes ADD COLUMN life INTEGER NOT NULL DEFAULT 0;        -- milliseconds, as last asked for

-- +goose Down
ALTER TABLE sandboxes DROP COLUMN life;
ALTER TABLE sandboxes DROP COLUMN auto_resume;
ALTER TABLE sandboxes DROP COLUMN end_pauses;
ALTER TABLE sandboxes DROP COLUMN paused;
