package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SignIn is one family of tokens: of one client, for one user and, once one
// came with it, one machine.
type SignIn struct {
	ID       string    `json:"id"`
	User     string    `json:"user"`
	Client   string    `json:"client"`
	Scopes   []string  `json:"scopes"`
	Machine  string    `json:"machine"`          // "" until a machine came with it
	Name     string    `json:"name"`             // as the machine or program calls itself
	Called   string    `json:"called,omitempty"` // as its person calls a program
	System   string    `json:"system"`
	Address  string    `json:"address"`            // who asked for it
	Resource string    `json:"resource,omitempty"` // set for a program's
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used,omitzero"`
}

// Steady is the clock of everything that ends: it goes on evenly when the
// computer's clock is set.
func (s *Store) Steady() time.Time { return s.steady() }

func (s *Store) begin(ctx context.Context, what string, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// addSignIn notes a new sign-in with its first tokens. One of a known machine
// is bound to it at once and takes the place of the earlier ones.
func (s *Store) addSignIn(ctx context.Context, tx *sql.Tx, now time.Time, r SignInRequest, user string, p Pair) (Issued, error) {
	id := newID("s")
	if r.Resource != "" && r.Called != "" {
		// A key of that name may have been made since the person answered.
		taken, err := nameTaken(ctx, tx, user, r.Called)
		if err != nil {
			return Issued{}, err
		}
		if taken {
			r.Called = ""
		}
	}
	if r.Resource != "" && r.Called == "" {
		r.Called = calledNothing(id)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO signins (id, user_id, client, scope, name, called, system, address, resource, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, user, r.Client, strings.Join(r.Scopes, " "), r.MachineName, r.Called, r.System, r.Address, r.Resource, ms(s.now())); err != nil {
		return Issued{}, fmt.Errorf("sign in: %w", err)
	}
	out := Issued{Pair: p, Nonce: r.Nonce, Access: Access{SignIn: id, User: user, Client: r.Client, Machine: r.Machine, Name: r.MachineName, Called: r.Called, Resource: r.Resource, Scopes: r.Scopes, Expires: now.Add(p.AccessFor)}}
	if r.Machine != "" {
		var err error
		if out.Ended, err = s.bind(ctx, tx, id, user, r.Client, r.Machine, r.MachineName); err != nil {
			return Issued{}, err
		}
	}
	return out, addPair(ctx, tx, now, id, p)
}

// bind gives a sign-in to a machine and ends the earlier ones of the same
// client there, which it returns. ErrTaken when the machine is another user's.
func (s *Store) bind(ctx context.Context, tx *sql.Tx, id, user, client, machine, name string) ([]string, error) {
	if err := s.claim(ctx, tx, user, machine, name); err != nil {
		return nil, err
	}
	ended, err := s.end(ctx, tx, `machine = ? AND client = ? AND id <> ?`, "this computer signed in again", machine, client, id)
	if err != nil {
		return nil, err
	}
	if err := affected(tx.ExecContext(ctx, `UPDATE signins SET machine = ? WHERE id = ?`, machine, id)); err != nil {
		return nil, fmt.Errorf("bind sign-in: %w", err)
	}
	return ended, nil
}

// end revokes the live sign-ins that where picks, and forgets their tokens. What
// a program opened with one ends with it.
func (s *Store) end(ctx context.Context, tx *sql.Tx, where, reason string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, `UPDATE signins SET revoked = ?, reason = ? WHERE revoked = 0 AND `+where+` RETURNING id`,
		append([]any{ms(s.now()), reason}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("end sign-in: %w", err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("end sign-in: %w", err)
		}
		ids = append(ids, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, fmt.Errorf("end sign-in: %w", err)
	}
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, `DELETE FROM signin_tokens WHERE signin = ?`, id); err != nil {
			return nil, fmt.Errorf("end sign-in: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE sandboxes SET ended = ?, reason = 'its program was disconnected' WHERE principal = ? AND ended = 0`, ms(s.now()), id); err != nil {
			return nil, fmt.Errorf("end sign-in: %w", err)
		}
	}
	return ids, nil
}

// BindSignIn gives a sign-in to the machine that came with it; the first keeps
// it. ErrNotFound when it is another machine's, or ended; ErrTaken when another
// user is signed in with the machine, or the same with another client: the
// person who agreed was not told of that computer, whose work it would get.
func (s *Store) BindSignIn(ctx context.Context, signIn, machine string) error {
	return s.begin(ctx, "bind sign-in", func(tx *sql.Tx) error {
		var user, client, bound string
		if err := one(tx.QueryRowContext(ctx, `SELECT user_id, client, machine FROM signins WHERE id = ? AND revoked = 0`, signIn).Scan(&user, &client, &bound)); err != nil {
			return err
		}
		switch bound {
		case machine:
			return nil
		case "":
			var taken bool
			if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM signins WHERE machine = ?1 AND client <> ?2 AND revoked = 0)
				OR EXISTS (SELECT 1 FROM tokens WHERE kind = 'machine' AND machine = ?1 AND revoked = 0)`, machine, client).Scan(&taken); err != nil {
				return fmt.Errorf("bind sign-in: %w", err)
			}
			if taken {
				return ErrTaken
			}
			_, err := s.bind(ctx, tx, signIn, user, client, machine, "")
			return err
		}
		return ErrNotFound
	})
}

// SignInLive tells whether a sign-in is still good.
func (s *Store) SignInLive(ctx context.Context, id string) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM signins WHERE id = ? AND revoked = 0`, id).Scan(&n)
	return n == 1, err
}

// RevokeSignIn ends a sign-in and forgets its tokens. ErrNotFound when there is
// none that is live.
func (s *Store) RevokeSignIn(ctx context.Context, id, reason string) error {
	return s.begin(ctx, "revoke sign-in", func(tx *sql.Tx) error {
		ids, err := s.end(ctx, tx, `id = ?`, reason, id)
		if err == nil && len(ids) == 0 {
			return ErrNotFound
		}
		return err
	})
}

// disconnect ends the sign-ins of a user's machine ("" is anybody's), and those
// that were agreed to and not begun yet.
func (s *Store) disconnect(ctx context.Context, tx *sql.Tx, user, machine string) ([]string, error) {
	if _, err := tx.ExecContext(ctx, `DELETE FROM signin_requests WHERE machine = ?1 AND machine <> '' AND status = 'approved' AND ?2 IN ('', user_id)`, machine, user); err != nil {
		return nil, fmt.Errorf("end sign-ins: %w", err)
	}
	return s.end(ctx, tx, `machine = ? AND machine <> '' AND ? IN ('', user_id)`, "the computer was disconnected", machine, user)
}

// SignIns lists the live sign-ins of a user ("" for everybody's), oldest first.
func (s *Store) SignIns(ctx context.Context, user string) ([]SignIn, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, user_id, client, scope, machine, name, called, system, address, resource, created, last_used FROM signins
		WHERE revoked = 0 AND (?1 = '' OR user_id = ?1) ORDER BY created, id`, user)
	if err != nil {
		return nil, fmt.Errorf("list sign-ins: %w", err)
	}
	defer rows.Close()
	out := []SignIn{}
	for rows.Next() {
		var v SignIn
		var scope string
		var created, used int64
		if err := rows.Scan(&v.ID, &v.User, &v.Client, &scope, &v.Machine, &v.Name, &v.Called, &v.System, &v.Address, &v.Resource, &created, &used); err != nil {
			return nil, fmt.Errorf("list sign-ins: %w", err)
		}
		v.Scopes, v.Created, v.LastUsed = strings.Fields(scope), fromMS(created), fromMS(used)
		out = append(out, v)
	}
	return out, rows.Err()
}

// remembered is how long an ended sign-in stays in the database.
const remembered = 30 * 24 * time.Hour

// SweepSignIns forgets what has expired, log-ins and links of people and pairing
// tokens too, so that it stays dead whatever the clock of a later start says. A sign-in
// without tokens has ended; those that ended so are returned.
func (s *Store) SweepSignIns(ctx context.Context, now time.Time) ([]string, error) {
	var ended []string
	err := s.begin(ctx, "sweep sign-ins", func(tx *sql.Tx) error {
		// A device may ask for a while what became of its request.
		if _, err := tx.ExecContext(ctx, `DELETE FROM signin_requests WHERE expires <= ?`, ms(now.Add(-told))); err != nil {
			return fmt.Errorf("sweep sign-ins: %w", err)
		}
		for _, q := range []string{`DELETE FROM signin_tokens WHERE expires <= ?`, `DELETE FROM invites WHERE expires > 0 AND expires <= ?`, `DELETE FROM browsers WHERE expires <= ?`} {
			if _, err := tx.ExecContext(ctx, q, ms(now)); err != nil {
				return fmt.Errorf("sweep sign-ins: %w", err)
			}
		}
		if _, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked = ? WHERE kind = 'machine' AND machine = '' AND revoked = 0 AND created <= ?`, ms(s.now()), s.pairSince()); err != nil {
			return fmt.Errorf("sweep sign-ins: %w", err)
		}
		var err error
		if ended, err = s.end(ctx, tx, `NOT EXISTS (SELECT 1 FROM signin_tokens WHERE signin = signins.id)`, "it was not used for too long"); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM signins WHERE revoked > 0 AND revoked < ?`, ms(s.now().Add(-remembered)))
		return err
	})
	return ended, err
}
