-- +goose Up
-- What its person calls a program that signed in: name is only what it calls
-- itself.
ALTER TABLE signins ADD COLUMN called TEXT NOT NULL DEFAULT '';
ALTER TABLE signin_requests ADD COLUMN called TEXT NOT NULL DEFAULT '';
UPDATE signins SET called = 'Program ' || substr(id, 2, 6) WHERE resource <> '';

-- +goose Down
ALTER TABLE signin_requests DROP COLUMN called;
ALTER TABLE signins DROP COLUMN called;
