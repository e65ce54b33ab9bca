package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"localpc/consent"
)

// AppendEntry writes one entry of the record. A Seq that is not the next, since
// another running copy took it, is an error.
func (s *Store) AppendEntry(ctx context.Context, e consent.Entry) error {
	if s.appending == nil {
		return errors.New("the record was opened to read only")
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := s.appending.ExecContext(ctx,
		e.Seq, e.Time.UTC().Format(time.RFC3339Nano), e.Kind, e.Ref, string(e.Body), e.Prev, e.Hash, e.Sig)
	return err
}

const entryColumns = `seq, time, kind, ref, body, prev, hash, sig`

const appendEntry = `INSERT INTO entries (` + entryColumns + `) VALUES (?,?,?,?,?,?,?,?)`

type scanner interface{ Scan(...any) error }

func scanEntry(row scanner) (consent.Entry, error) {
	var e consent.Entry
	var at, body string
	if err := row.Scan(&e.Seq, &at, &e.Kind, &e.Ref, &body, &e.Prev, &e.Hash, &e.Sig); err != nil {
		return e, err
	}
	e.Body = json.RawMessage(body)
	// An unreadable time stays zero: its hash will not fit, and Verify says so.
	e.Time, _ = time.Parse(time.RFC3339Nano, at)
	return e, nil
}

// LastEntry returns the newest entry of a kind, "" for any.
func (s *Store) LastEntry(ctx context.Context, kind string) (consent.Entry, bool, error) {
	e, err := scanEntry(s.db.QueryRowContext(ctx, `SELECT `+entryColumns+` FROM entries WHERE ?1 = '' OR kind = ?1 ORDER BY seq DESC LIMIT 1`, kind))
	if errors.Is(err, sql.ErrNoRows) {
		return e, false, nil
	}
	return e, err == nil, err
}

// EachEntry calls fn for every entry from seq on, in order.
func (s *Store) EachEntry(ctx context.Context, from int64, fn func(consent.Entry) error) error {
	return s.each(ctx, fn, `SELECT `+entryColumns+` FROM entries WHERE seq >= ? ORDER BY seq`, from)
}

// EntriesByRef returns the entries of one request, in order.
func (s *Store) EntriesByRef(ctx context.Context, ref string) ([]consent.Entry, error) {
	var out []consent.Entry
	err := s.each(ctx, func(e consent.Entry) error { out = append(out, e); return nil },
		`SELECT `+entryColumns+` FROM entries WHERE ref = ? ORDER BY seq`, ref)
	return out, err
}

// Newest calls fn for the entries of decisions and outcomes whose body
// contains text, newest first, at most limit of them.
func (s *Store) Newest(ctx context.Context, text string, limit int, fn func(consent.Entry) error) error {
	return s.each(ctx, fn, `SELECT `+entryColumns+` FROM entries
		WHERE kind IN ('decision', 'outcome') AND (?1 = '' OR instr(lower(body), lower(?1)) > 0) ORDER BY seq DESC LIMIT ?2`, text, limit)
}

// Since calls fn for the entries of a kind written at or after t, in order.
func (s *Store) Since(ctx context.Context, kind string, t time.Time, fn func(consent.Entry) error) error {
	// As text, 10:00:00.5Z stands before 10:00:00Z; whole seconds without the
	// zone stand before both.
	return s.each(ctx, func(e consent.Entry) error {
		if e.Time.Before(t) {
			return nil
		}
		return fn(e)
	}, `SELECT `+entryColumns+` FROM entries WHERE kind = ? AND time >= ? ORDER BY seq`, kind, t.UTC().Format("2006-01-02T15:04:05"))
}

func (s *Store) each(ctx context.Context, fn func(consent.Entry) error, query string, args ...any) error {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return err
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return rows.Err()
}
