package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

const (
	// resultFor is how long a result is kept after it came.
	resultFor = time.Hour
	// unfinishedFor is how long one that has not come is waited for.
	unfinishedFor = 24 * time.Hour
	// maxResults of one principal are kept, and maxResultBytes of them together;
	// the oldest go first. One alone may be as large as it is.
	maxResults     = 64
	maxResultBytes = 16 << 20
)

// Result is what became of a call whose client could not wait for it.
type Result struct {
	ID        string
	User      string
	Principal string // who called
	Title     string // what was called for, in a few words
	Created   time.Time
	Done      time.Time // when it came; zero: not yet
	Data      []byte    // JSON, as FinishResult was given it
}

// AddResult notes a call whose result is to come, and forgets what is old.
// ErrNotFound when the user left the hub.
func (s *Store) AddResult(ctx context.Context, r Result) error {
	return s.begin(ctx, "add result", func(tx *sql.Tx) error {
		now := s.steady()
		if _, err := tx.ExecContext(ctx, `DELETE FROM results WHERE ends_at < ?`, ms(now)); err != nil {
			return fmt.Errorf("forget results: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM results WHERE done > 0 AND principal = ?1 AND id NOT IN
			(SELECT id FROM results WHERE principal = ?1 ORDER BY created DESC, id LIMIT ?2)`, r.Principal, maxResults-1); err != nil {
			return fmt.Errorf("forget results: %w", err)
		}
		return affected(tx.ExecContext(ctx, `INSERT INTO results (id, user_id, principal, title, created, ends_at)
			SELECT ?, id, ?, ?, ?, ? FROM users WHERE id = ? AND removed = 0`, r.ID, r.Principal, r.Title, ms(s.now()), ms(now.Add(unfinishedFor)), r.User))
	})
}

// FinishResult keeps the result of a call; older ones of its principal go when
// they are too large together. ErrNotFound when it was not waited for.
func (s *Store) FinishResult(ctx context.Context, id string, data []byte) error {
	return s.begin(ctx, "keep result", func(tx *sql.Tx) error {
		if err := affected(tx.ExecContext(ctx, `UPDATE results SET done = ?, result = ?, ends_at = ? WHERE id = ? AND done = 0`,
			ms(s.now()), data, ms(s.steady().Add(resultFor)), id)); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM results WHERE id IN (SELECT id FROM
			(SELECT id, sum(length(result)) OVER (ORDER BY done DESC, id = ?1 DESC, id) AS total FROM results
				WHERE principal = (SELECT principal FROM results WHERE id = ?1) AND done > 0)
			WHERE total > ?2 AND id <> ?1)`, id, maxResultBytes)
		if err != nil {
			return fmt.Errorf("forget results: %w", err)
		}
		return nil
	})
}

// Result gives a call of a principal's. ErrNotFound when there is none, or it
// was an hour ago.
func (s *Store) Result(ctx context.Context, principal, id string) (Result, error) {
	return scanResult(s.db.QueryRowContext(ctx, `SELECT id, user_id, principal, title, created, done, result FROM results
		WHERE id = ? AND principal = ? AND ends_at >= ?`, id, principal, ms(s.steady())).Scan)
}

// Results lists the calls of a principal, the newest first, without their Data.
func (s *Store) Results(ctx context.Context, principal string) ([]Result, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, user_id, principal, title, created, done, x'' FROM results
		WHERE principal = ? AND ends_at >= ? ORDER BY created DESC, id`, principal, ms(s.steady()))
	if err != nil {
		return nil, fmt.Errorf("list results: %w", err)
	}
	defer rows.Close()
	list := []Result{}
	for rows.Next() {
		r, err := scanResult(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list results: %w", err)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// AbandonResults gives data to every call whose result has not come: whoever
// was to bring it has ended.
func (s *Store) AbandonResults(ctx context.Context, data []byte) error {
	_, err := s.db.ExecContext(ctx, `UPDATE results SET done = ?, result = ?, ends_at = ? WHERE done = 0`,
		ms(s.now()), data, ms(s.steady().Add(resultFor)))
	if err != nil {
		return fmt.Errorf("abandon results: %w", err)
	}
	return nil
}

func scanResult(scan func(...any) error) (Result, error) {
	var r Result
	var created, done int64
	if err := scan(&r.ID, &r.User, &r.Principal, &r.Title, &created, &done, &r.Data); err != nil {
		return Result{}, one(err)
	}
	r.Created, r.Done = fromMS(created), fromMS(done)
	return r, nil
}
