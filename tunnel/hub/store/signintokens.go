package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrReused means that a token came a second time that is good for one use: a
// copy of it is in other hands, so its whole sign-in was ended.
var ErrReused = errors.New("the token was used before")

// ErrTooOften means that a sign-in was renewed so often that its used tokens
// could not be kept any more, so it was ended: forgetting them would let a
// thief who renews quickly hide that a token comes twice.
var ErrTooOften = errors.New("the sign-in was renewed too often")

// Bounds of what one sign-in leaves in the database. A client that refreshes
// every hour uses 720 refresh tokens in their 30 days.
const (
	maxRefresh = 5000
	maxAccess  = 32
)

// ahead is how far in the future a token may have been made: further, and the
// clock has been set back, so that nobody knows how old the token is.
const ahead = time.Minute

// Access is what a live token stands for.
type Access struct {
	SignIn, User, Client, Machine string
	// Name is what a computer or program calls itself; it proves nothing. Called
	// and Resource are a program's: what its person calls it, and what its tokens
	// are for. A computer's have none.
	Name, Called, Resource string
	Scopes                 []string
	Expires                time.Time
}

// Pair is a new access token and the refresh token that follows the one it was
// asked for with. Only their hashes are kept.
type Pair struct {
	Access, Refresh       string
	AccessFor, RefreshFor time.Duration
}

// Issued is a sign-in that was just given its first tokens.
type Issued struct {
	Access
	Pair  Pair
	Nonce string // of the request
	// Ended are the sign-ins that this one took the place of: their tunnels are
	// to be ended.
	Ended []string
}

func addPair(ctx context.Context, tx *sql.Tx, now time.Time, signIn string, p Pair) error {
	const insert = `INSERT INTO signin_tokens (hash, signin, kind, created, expires) VALUES (?, ?, ?, ?, ?)`
	if _, err := tx.ExecContext(ctx, insert, hash(p.Access), signIn, "access", ms(now), ms(now.Add(p.AccessFor))); err != nil {
		return fmt.Errorf("sign-in token: %w", err)
	}
	if p.Refresh == "" {
		return nil
	}
	if _, err := tx.ExecContext(ctx, insert, hash(p.Refresh), signIn, "refresh", ms(now), ms(now.Add(p.RefreshFor))); err != nil {
		return fmt.Errorf("sign-in token: %w", err)
	}
	return nil
}

// RefreshSignIn exchanges a refresh token for the next pair and retires it.
// One that is retired already ends its sign-in: then the error is ErrReused
// and the Access tells which; ErrTooOften likewise. ErrNotFound when it is
// unknown or expired.
func (s *Store) RefreshSignIn(ctx context.Context, now time.Time, client, refresh string, p Pair) (Access, error) {
	var a Access
	var over error
	err := s.begin(ctx, "refresh", func(tx *sql.Tx) error {
		row, err := findToken(ctx, tx, refresh)
		if err != nil {
			return err
		}
		if row.kind != "refresh" || row.Client != client || !now.Before(row.Expires) {
			return ErrNotFound
		}
		a = row.Access
		if row.retired {
			over = ErrReused
			_, err := s.end(ctx, tx, `id = ?`, "a used refresh token came again", a.SignIn)
			return err
		}
		var kept int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM signin_tokens WHERE signin = ? AND kind = 'refresh'`, a.SignIn).Scan(&kept); err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		if kept >= maxRefresh {
			over = ErrTooOften
			_, err := s.end(ctx, tx, `id = ?`, "it was renewed too often", a.SignIn)
			return err
		}
		a.Expires = now.Add(p.AccessFor)
		if _, err := tx.ExecContext(ctx, `UPDATE signin_tokens SET retired = ? WHERE hash = ?`, ms(now), hash(refresh)); err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		if err := addPair(ctx, tx, now, a.SignIn, p); err != nil {
			return err
		}
		// The new one stays, whatever the clock said when the others were made.
		if _, err := tx.ExecContext(ctx, `DELETE FROM signin_tokens WHERE hash IN
			(SELECT hash FROM signin_tokens WHERE signin = ? AND kind = 'access' AND hash <> ? ORDER BY created DESC LIMIT -1 OFFSET ?)`,
			a.SignIn, hash(p.Access), maxAccess-1); err != nil {
			return fmt.Errorf("refresh: %w", err)
		}
		_, err = tx.ExecContext(ctx, `UPDATE signins SET last_used = ? WHERE id = ?`, ms(s.now()), a.SignIn)
		return err
	})
	if err == nil {
		err = over
	}
	return a, err
}

type tokenRow struct {
	Access
	kind     string
	created  time.Time
	retired  bool
	lastUsed time.Time
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func findToken(ctx context.Context, q querier, token string) (tokenRow, error) {
	var r tokenRow
	var scope string
	var created, expires, retired, used int64
	err := q.QueryRowContext(ctx, `SELECT t.kind, t.created, t.expires, t.retired, s.id, s.user_id, s.client, s.machine, s.name, s.called, s.resource, s.scope, s.last_used
		FROM signin_tokens t JOIN signins s ON s.id = t.signin WHERE t.hash = ? AND s.revoked = 0`, hash(token)).
		Scan(&r.kind, &created, &expires, &retired, &r.SignIn, &r.User, &r.Client, &r.Machine, &r.Name, &r.Called, &r.Resource, &scope, &used)
	if err != nil {
		return tokenRow{}, one(err)
	}
	r.Scopes = strings.Fields(scope)
	r.created, r.Expires, r.retired, r.lastUsed = fromMS(created), fromMS(expires), retired != 0, fromMS(used)
	return r, nil
}

// FindAccess gives what an access token stands for. ErrNotFound when it is
// unknown, expired or revoked.
func (s *Store) FindAccess(ctx context.Context, now time.Time, token string) (Access, error) {
	r, err := findToken(ctx, s.db, token)
	if err != nil {
		return Access{}, err
	}
	if r.kind != "access" || !now.Before(r.Expires) || r.retired || r.created.After(now.Add(ahead)) {
		return Access{}, ErrNotFound
	}
	if d := s.now().Sub(r.lastUsed); d < 0 || d >= time.Minute {
		if _, err := s.db.ExecContext(ctx, `UPDATE signins SET last_used = ? WHERE id = ?`, ms(s.now()), r.SignIn); err != nil {
			return Access{}, fmt.Errorf("sign-in used: %w", err)
		}
	}
	return r.Access, nil
}

// SignInOf gives the sign-in of a token of a client, be the token expired or
// retired. ErrNotFound when it is unknown or its sign-in has ended.
func (s *Store) SignInOf(ctx context.Context, client, token string) (string, error) {
	r, err := findToken(ctx, s.db, token)
	if err == nil && r.Client != client {
		return "", ErrNotFound
	}
	return r.SignIn, err
}
