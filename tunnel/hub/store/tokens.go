package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Prefixes of secrets. Older E2B SDKs take only keys of this shape.
const (
	KeyPrefix     = "e2b_" // and 40 hex digits
	MachinePrefix = "lpm_" // and 64 hex digits
)

// MaxName bounds the name of a key, in bytes: 60 characters of any script.
const MaxName = 240

// Key is what a program proves itself with.
type Key struct {
	ID       string    `json:"id"`
	User     string    `json:"user"` // whose it is
	Name     string    `json:"name"`
	Prefix   string    `json:"prefix"` // the first characters, for display
	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used,omitzero"`
	// Secret is set once, by AddKey.
	Secret string `json:"-"`
}

func hash(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

func newSecret(prefix string, n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return prefix + hex.EncodeToString(b)
}

func newID(prefix string) string {
	b := make([]byte, 8)
	rand.Read(b)
	return prefix + hex.EncodeToString(b)
}

// CheckName says what is wrong with the name of a key.
func CheckName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("the name is empty; give the key the name of the program that will use it")
	case len(name) > MaxName:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name contains a line break or a character that cannot be seen; use letters, digits, spaces and punctuation")
	}
	return nil
}

// AddKey makes a key of a user's. Its secret is in the result and nowhere else.
// ErrNotFound when the user left the hub.
func (s *Store) AddKey(ctx context.Context, user, name string) (Key, error) {
	if err := CheckName(name); err != nil {
		return Key{}, err
	}
	k := Key{ID: newID("k"), User: user, Name: strings.TrimSpace(name), Secret: newSecret(KeyPrefix, 20), Created: s.now().Truncate(time.Millisecond)}
	k.Prefix = k.Secret[:len(KeyPrefix)+4]
	err := s.addToken(ctx, k.ID, user, "key", k.Secret, k.Prefix, k.Name, k.Created)
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

// addToken keeps a key or a pairing token of somebody who is still on the hub.
func (s *Store) addToken(ctx context.Context, id, user, kind, secret, prefix, name string, created time.Time) error {
	err := affected(s.db.ExecContext(ctx, `INSERT INTO tokens (id, user_id, kind, hash, prefix, name, created)
		SELECT ?, id, ?, ?, ?, ?, ? FROM users WHERE id = ? AND removed = 0`, id, kind, hash(secret), prefix, name, ms(created), user))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("add %s: %w", kind, err)
	}
	return err
}

// Keys lists a user's keys that are not revoked, oldest first; "" is
// everybody's.
func (s *Store) Keys(ctx context.Context, user string) ([]Key, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, user_id, name, prefix, created, last_used FROM tokens
		WHERE kind = 'key' AND revoked = 0 AND ?1 IN ('', user_id) ORDER BY created, id`, user)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	defer rows.Close()
	keys := []Key{}
	for rows.Next() {
		var k Key
		var created, used int64
		if err := rows.Scan(&k.ID, &k.User, &k.Name, &k.Prefix, &created, &used); err != nil {
			return nil, fmt.Errorf("list keys: %w", err)
		}
		k.Created, k.LastUsed = fromMS(created), fromMS(used)
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// RevokeKey ends a user's key for good, and what it opened with it; "" is
// anybody's. ErrNotFound when there is none.
func (s *Store) RevokeKey(ctx context.Context, user, id string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	defer tx.Rollback()
	now := ms(s.now())
	if err := affected(tx.ExecContext(ctx, `UPDATE tokens SET revoked = ?1 WHERE kind = 'key' AND id = ?2 AND revoked = 0 AND ?3 IN ('', user_id)`, now, id, user)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE sandboxes SET ended = ?, reason = 'its key was revoked' WHERE principal = ? AND ended = 0`, now, id); err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	return tx.Commit()
}

// FindKey gives the live key of a secret. ErrNotFound when there is none.
func (s *Store) FindKey(ctx context.Context, secret string) (Key, error) {
	var k Key
	var stored []byte
	var created, used int64
	h := hash(secret)
	err := s.db.QueryRowContext(ctx, `SELECT id, user_id, name, prefix, hash, created, last_used FROM tokens WHERE kind = 'key' AND hash = ? AND revoked = 0`, h).
		Scan(&k.ID, &k.User, &k.Name, &k.Prefix, &stored, &created, &used)
	if err != nil {
		return Key{}, one(err)
	}
	if subtle.ConstantTimeCompare(stored, h) != 1 {
		return Key{}, ErrNotFound
	}
	k.Created, k.LastUsed = fromMS(created), fromMS(used)
	s.touch(ctx, k.ID, k.LastUsed)
	return k, nil
}

// touch notes the use of a token, once a minute at most: reads stay reads. When
// it cannot be noted, on a full disk or beside a long write, the token is as
// good as it was.
func (s *Store) touch(ctx context.Context, id string, last time.Time) {
	now := s.now()
	if d := now.Sub(last); d >= 0 && d < time.Minute {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, _ = s.db.ExecContext(ctx, `UPDATE tokens SET last_used = ? WHERE id = ?`, ms(now), id)
}

// passingName marks a token that lives in a machine's memory: no computer is
// named so, since names have no newline.
const passingName = "\n"

// AddMachineToken makes the token of a user's machine and revokes its earlier
// ones. ErrTaken when the machine is another user's.
// One that is kept in memory only (passing) revokes only its like: the token
// in the machine's keychain, which could not be read, stays good.
func (s *Store) AddMachineToken(ctx context.Context, user, machine, name string, passing bool) (string, error) {
	secret := newSecret(MachinePrefix, 32)
	now := ms(s.now())
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("machine token: %w", err)
	}
	defer tx.Rollback()
	tokenName := name
	if passing {
		tokenName = passingName
	}
	if err := s.claim(ctx, tx, user, machine, name); err != nil {
		return "", err
	}
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{`UPDATE tokens SET revoked = ? WHERE kind = 'machine' AND machine = ? AND revoked = 0 AND (? OR name = ?)`, []any{now, machine, !passing, passingName}},
		{`INSERT INTO tokens (id, user_id, kind, hash, prefix, name, machine, created) VALUES (?, ?, 'machine', ?, ?, ?, ?, ?)`,
			[]any{newID("m"), user, hash(secret), secret[:len(MachinePrefix)+4], tokenName, machine, now}},
	} {
		if _, err := tx.ExecContext(ctx, q.sql, q.args...); err != nil {
			return "", fmt.Errorf("machine token: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return "", fmt.Errorf("machine token: %w", err)
	}
	return secret, nil
}

// pairFor is how long a token that no machine has come with yet is good.
const pairFor = 24 * time.Hour

// pairSince is the moment before which a token that no machine has come with is
// too old, by whichever clock says so first.
func (s *Store) pairSince() int64 {
	now := s.now()
	if even := s.steady(); even.After(now) {
		now = even // the computer's clock was set back
	}
	return ms(now.Add(-pairFor))
}

// AddPairingToken makes a token for a computer of a user's that is not known
// yet: the first that comes with it keeps it.
func (s *Store) AddPairingToken(ctx context.Context, user, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	secret := newSecret(MachinePrefix, 32)
	if err := s.addToken(ctx, newID("m"), user, "machine", secret, secret[:len(MachinePrefix)+4], name, s.now()); err != nil {
		return "", err
	}
	return secret, nil
}

// Bind gives a pairing token to the machine that came with it, and revokes the
// machine's earlier ones. ErrNotFound when another has come first, ErrTaken
// when the machine is another user's.
func (s *Store) Bind(ctx context.Context, token, machine string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("bind token: %w", err)
	}
	defer tx.Rollback()
	var user string
	if err := tx.QueryRowContext(ctx, `SELECT user_id FROM tokens WHERE id = ? AND machine = '' AND revoked = 0`, token).Scan(&user); err != nil {
		return one(err)
	}
	if err := s.claim(ctx, tx, user, machine, ""); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked = ? WHERE kind = 'machine' AND machine = ? AND revoked = 0`, ms(s.now()), machine); err != nil {
		return fmt.Errorf("bind token: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE tokens SET machine = ? WHERE id = ?`, machine, token); err != nil {
		return fmt.Errorf("bind token: %w", err)
	}
	return tx.Commit()
}

// RevokeMachine ends every token and sign-in of a user's machine; "" is
// anybody's. ErrNotFound when it has none.
func (s *Store) RevokeMachine(ctx context.Context, user, machine string) error {
	return s.begin(ctx, "revoke machine", func(tx *sql.Tx) error {
		tokens := affected(tx.ExecContext(ctx, `UPDATE tokens SET revoked = ?1 WHERE kind = 'machine' AND machine = ?2 AND revoked = 0 AND ?3 IN ('', user_id)`, ms(s.now()), machine, user))
		if tokens != nil && !errors.Is(tokens, ErrNotFound) {
			return tokens
		}
		ended, err := s.disconnect(ctx, tx, user, machine)
		if err == nil && len(ended) == 0 {
			return tokens
		}
		return err
	})
}

// drop ends all that a user connected: keys, machines and what was opened.
func (s *Store) drop(ctx context.Context, tx *sql.Tx, user string) error {
	now := ms(s.now())
	if _, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked = ? WHERE user_id = ? AND revoked = 0`, now, user); err != nil {
		return fmt.Errorf("end tokens: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE sandboxes SET ended = ?, reason = 'its person left the hub' WHERE user_id = ? AND ended = 0`, now, user); err != nil {
		return fmt.Errorf("end sandboxes: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM signin_requests WHERE user_id = ?`, user); err != nil {
		return fmt.Errorf("end sign-ins: %w", err)
	}
	_, err := s.end(ctx, tx, `user_id = ?`, "its person left the hub", user)
	return err
}

// MachineToken is a live token of a machine.
type MachineToken struct {
	ID, User string
	Machine  string // "" for a pairing token that no machine has come with yet
}

// FindMachineToken gives the live token of a secret. ErrNotFound when there is
// none.
func (s *Store) FindMachineToken(ctx context.Context, secret string) (MachineToken, error) {
	var t MachineToken
	var stored []byte
	var used int64
	h := hash(secret)
	err := s.db.QueryRowContext(ctx, `SELECT id, user_id, machine, hash, last_used FROM tokens WHERE kind = 'machine' AND hash = ? AND revoked = 0 AND (machine <> '' OR created > ?)`, h, s.pairSince()).
		Scan(&t.ID, &t.User, &t.Machine, &stored, &used)
	if err != nil {
		return MachineToken{}, one(err)
	}
	if subtle.ConstantTimeCompare(stored, h) != 1 {
		return MachineToken{}, ErrNotFound
	}
	s.touch(ctx, t.ID, fromMS(used))
	return t, nil
}

// TokenLive tells whether a token is still good.
func (s *Store) TokenLive(ctx context.Context, id string) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM tokens WHERE id = ? AND revoked = 0`, id).Scan(&n)
	return n == 1, err
}
