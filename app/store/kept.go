package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// KeptState is how far what a request changed is. Serialised.
type KeptState string

const (
	KeptOpen   KeptState = "open"   // under way
	KeptWhole  KeptState = "kept"   // can be undone
	KeptUndone KeptState = "undone" // was put back
	// KeptRedone: was put back, and that was undone.
	KeptRedone KeptState = "redone"
)

// Kept is one request whose changes are noted.
type Kept struct {
	Request string
	Session string // "" for an undoing
	Folder  string
	// FolderID and About are JSON of who keeps them.
	FolderID string
	About    string
	Time     time.Time
	Place    int64 // the order in which they ended; 0 while under way
	State    KeptState
	Undoes   []string // requests that it put back
	Bytes    int64    // of its old versions
}

// KeptStep is one change of a request. Object is the name of the file in the
// directory of kept versions that was there before.
type KeptStep struct {
	N      int
	Object string
	Body   string
}

// inTx does all of fn or nothing.
func (s *Store) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

const insertStep = `INSERT INTO kept_steps (request, n, object, body) VALUES (?,?,?,?)
	ON CONFLICT (request, n) DO UPDATE SET object = excluded.object, body = excluded.body`

// KeepSteps notes steps of a request, which is noted with the first of them; a
// step of a number that is there already is replaced.
func (s *Store) KeepSteps(ctx context.Context, k Kept, steps ...KeptStep) error {
	undoes, err := json.Marshal(k.Undoes)
	if err != nil {
		return err
	}
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO kept (request, session, folder, folder_id, time, place, state, undoes, bytes, about)
			VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (request) DO UPDATE SET bytes = excluded.bytes, about = excluded.about`,
			k.Request, k.Session, k.Folder, k.FolderID, millis(k.Time), k.Place, k.State, string(undoes), k.Bytes, k.About); err != nil {
			return err
		}
		insert, err := tx.PrepareContext(ctx, insertStep)
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, st := range steps {
			if _, err := insert.ExecContext(ctx, k.Request, st.N, st.Object, st.Body); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropSteps forgets steps that were not made.
func (s *Store) DropSteps(ctx context.Context, request string, ns ...int) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for _, n := range ns {
			if _, err := tx.ExecContext(ctx, `DELETE FROM kept_steps WHERE request = ? AND n = ?`, request, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// KeepEnded closes the notes of a request: it is the last that ended, and can be
// undone. What it put back is undone from now on, with its steps gone; what that
// had put back itself is in effect again.
func (s *Store) KeepEnded(ctx context.Context, request string, bytes int64) (place int64, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(place), 0) + 1 FROM kept`).Scan(&place); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE kept SET place = ?, state = ?, bytes = ? WHERE request = ?`, place, KeptWhole, bytes, request); err != nil {
			return err
		}
		undoes, err := undoesOf(ctx, tx, request)
		if err != nil {
			return err
		}
		for _, of := range undoes {
			before, err := undoesOf(ctx, tx, of)
			if err != nil {
				return err
			}
			for _, b := range before {
				if _, err := tx.ExecContext(ctx, `UPDATE kept SET state = ? WHERE request = ? AND state = ?`, KeptRedone, b, KeptUndone); err != nil {
					return err
				}
			}
			if _, err := tx.ExecContext(ctx, `UPDATE kept SET state = ?, bytes = 0 WHERE request = ?`, KeptUndone, of); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM kept_steps WHERE request = ?`, of); err != nil {
				return err
			}
		}
		return nil
	})
	return place, err
}

func undoesOf(ctx context.Context, tx *sql.Tx, request string) (out []string, err error) {
	var text string
	if err := tx.QueryRowContext(ctx, `SELECT undoes FROM kept WHERE request = ?`, request).Scan(&text); err != nil {
		return nil, err
	}
	return out, json.Unmarshal([]byte(text), &out)
}

// Kepts are all requests whose changes are noted, in the order in which they
// ended; those under way come first.
func (s *Store) Kepts(ctx context.Context) ([]Kept, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT request, session, folder, folder_id, time, place, state, undoes, bytes, about FROM kept ORDER BY place`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Kept
	for rows.Next() {
		var k Kept
		var at int64
		var undoes string
		if err := rows.Scan(&k.Request, &k.Session, &k.Folder, &k.FolderID, &at, &k.Place, &k.State, &undoes, &k.Bytes, &k.About); err != nil {
			return nil, err
		}
		k.Time = fromMillis(at)
		if err := json.Unmarshal([]byte(undoes), &k.Undoes); err != nil {
			return nil, fmt.Errorf("kept %s: %w", k.Request, err)
		}
		out = append(out, k)
	}
	return out, rows.Err()
}

// KeptSteps are the steps of a request in their order.
func (s *Store) KeptSteps(ctx context.Context, request string) ([]KeptStep, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT n, object, body FROM kept_steps WHERE request = ? ORDER BY n`, request)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []KeptStep
	for rows.Next() {
		var st KeptStep
		if err := rows.Scan(&st.N, &st.Object, &st.Body); err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, rows.Err()
}

// KeptObjects are the names of all kept versions that a step knows.
func (s *Store) KeptObjects(ctx context.Context) (map[string]bool, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT object FROM kept_steps WHERE object <> ''`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]bool{}
	for rows.Next() {
		var a string
		if err := rows.Scan(&a); err != nil {
			return nil, err
		}
		out[a] = true
	}
	return out, rows.Err()
}

// DropKept forgets a request and its steps.
func (s *Store) DropKept(ctx context.Context, request string) error {
	_, err := s.exec(ctx, `DELETE FROM kept WHERE request = ?`, request)
	return err
}

// ForgetUndoes makes an undoing one that puts back nothing but its own steps.
func (s *Store) ForgetUndoes(ctx context.Context, request string) error {
	_, err := s.exec(ctx, `UPDATE kept SET undoes = '[]' WHERE request = ?`, request)
	return err
}
