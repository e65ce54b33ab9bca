-- +goose Up
-- Nothing was ever kept there: what an undoing puts back is a copy.
ALTER TABLE kept_steps DROP COLUMN source;

-- +goose Down
ALTER TABLE kept_steps ADD COLUMN source TEXT NOT NULL DEFAULT '';
