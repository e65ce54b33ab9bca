package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Program is a client that signed itself up. It proves nothing: what it says of
// itself is its own word.
type Program struct {
	ID, Name  string
	Redirects []string
	Source    string // the network that it came from
	Created   time.Time
}

// ErrCalledTaken means that a key or a program of the same person has that name:
// on their computers one could be taken for the other.
var ErrCalledTaken = errors.New("another of your programs has this name")

// nameTaken tells whether a live key or program of a user has a name, or one
// that differs only in case.
func nameTaken(ctx context.Context, tx *sql.Tx, user, name string) (bool, error) {
	rows, err := tx.QueryContext(ctx, `SELECT name FROM tokens WHERE kind = 'key' AND user_id = ?1 AND revoked = 0
		UNION ALL SELECT called FROM signins WHERE user_id = ?1 AND revoked = 0 AND resource <> ''`, user)
	if err != nil {
		return false, fmt.Errorf("look up names: %w", err)
	}
	defer rows.Close()
	taken := false
	for rows.Next() {
		var other string
		if err := rows.Scan(&other); err != nil {
			return false, fmt.Errorf("look up names: %w", err)
		}
		taken = taken || strings.EqualFold(other, name)
	}
	return taken, rows.Err()
}

// calledNothing is what a program is called whose person did not say. Nobody
// can choose it, and it does not come again.
func calledNothing(signIn string) string { return "Program " + signIn[1:7] }

// Bounds of what anybody can sign up.
const (
	maxPrograms       = 2000
	maxProgramsSource = 100
	// untried is how long one is kept that nobody has let in.
	untried = 24 * time.Hour
)

// AddProgram keeps a client. ErrFull when there are too many, of its network or
// in all.
func (s *Store) AddProgram(ctx context.Context, p Program) (Program, error) {
	redirects, err := json.Marshal(p.Redirects)
	if err != nil {
		return Program{}, fmt.Errorf("add program: %w", err)
	}
	p.ID, p.Created = newID("p"), s.now().Truncate(time.Millisecond)
	return p, s.begin(ctx, "add program", func(tx *sql.Tx) error {
		// Those with a sign-in, or a request for one, stay.
		if _, err := tx.ExecContext(ctx, `DELETE FROM programs WHERE created <= ? AND NOT EXISTS (SELECT 1 FROM signins WHERE client = programs.id AND revoked = 0)
			AND NOT EXISTS (SELECT 1 FROM signin_requests WHERE client = programs.id)`, ms(p.Created.Add(-untried))); err != nil {
			return fmt.Errorf("add program: %w", err)
		}
		var all, source int
		if err := tx.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE source = ?) FROM programs`, p.Source).Scan(&all, &source); err != nil {
			return fmt.Errorf("add program: %w", err)
		}
		if all >= maxPrograms || source >= maxProgramsSource {
			return ErrFull
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO programs (id, name, redirects, source, created) VALUES (?, ?, ?, ?, ?)`,
			p.ID, p.Name, string(redirects), p.Source, ms(p.Created)); err != nil {
			return fmt.Errorf("add program: %w", err)
		}
		return nil
	})
}

// Program gives a client that signed itself up. ErrNotFound when there is none.
func (s *Store) Program(ctx context.Context, id string) (Program, error) {
	p := Program{ID: id}
	var redirects string
	var created int64
	if err := s.db.QueryRowContext(ctx, `SELECT name, redirects, source, created FROM programs WHERE id = ?`, id).Scan(&p.Name, &redirects, &p.Source, &created); err != nil {
		return Program{}, one(err)
	}
	p.Created = fromMS(created)
	if err := json.Unmarshal([]byte(redirects), &p.Redirects); err != nil {
		return Program{}, fmt.Errorf("read program: %w", err)
	}
	return p, nil
}
