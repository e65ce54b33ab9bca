package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/secure/precis"
)

// Bounds of passwords, in characters.
const (
	MinPassword = 12
	MaxPassword = 256
)

// What OWASP asks of argon2id: 19 MiB, two passes, one lane.
var passwordParams = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// nobody is compared with where there is no password, so that a wrong name
// takes as long as a wrong password.
const nobody = "$argon2id$v=19$m=19456,t=2,p=1$bm8gc3VjaCBwZXJzb24h$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// hashing bounds what password hashes take of processor and memory at once.
var hashing = make(chan struct{}, max(2, runtime.NumCPU()/2))

func slot(ctx context.Context) (func(), error) {
	select {
	case hashing <- struct{}{}:
		return func() { <-hashing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CheckPassword says what is wrong with a new password.
func CheckPassword(name, password string) error {
	switch n := utf8.RuneCountInString(password); {
	case n < MinPassword:
		return fmt.Errorf("the password is too short; it needs at least %d characters", MinPassword)
	case n > MaxPassword:
		return fmt.Errorf("the password is longer than %d characters", MaxPassword)
	}
	if _, err := precis.OpaqueString.String(password); err != nil {
		return errors.New("the password contains a character that cannot be typed, such as a line break")
	}
	name, password = strings.ToLower(strings.TrimSpace(name)), strings.ToLower(password)
	if name != "" && strings.ReplaceAll(password, name, "") == "" || strings.Count(password, password[:1]) == len(password) {
		return errors.New("the password is too easy to guess; use a few words")
	}
	return nil
}

func hashPassword(ctx context.Context, name, password string) (string, error) {
	if err := CheckPassword(name, password); err != nil {
		return "", err
	}
	password, err := precis.OpaqueString.String(password)
	if err != nil {
		return "", err
	}
	done, err := slot(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return argon2id.CreateHash(password, passwordParams)
}

// LogIn gives the person of a name and a password. ErrNotFound when either is
// wrong; it takes as long for the one as for the other.
func (s *Store) LogIn(ctx context.Context, name, password string) (User, error) {
	phc, id := nobody, ""
	if login, err := loginName(name); err == nil {
		var stored string
		err := s.db.QueryRowContext(ctx, `SELECT id, password FROM users WHERE login = ? AND removed = 0`, login).Scan(&id, &stored)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return User{}, fmt.Errorf("log in: %w", err)
		}
		if stored != "" {
			phc = stored
		}
	}
	if len(password) > 4*MaxPassword {
		password = ""
	}
	password, err := precis.OpaqueString.String(password)
	if err != nil {
		password = ""
	}
	done, err := slot(ctx)
	if err != nil {
		return User{}, err
	}
	match, err := argon2id.ComparePasswordAndHash(password, phc)
	done()
	if err != nil {
		return User{}, fmt.Errorf("log in: %w", err)
	}
	if !match || phc == nobody {
		return User{}, ErrNotFound
	}
	return s.User(ctx, id)
}

// loggedIn is whether user is logged in with browser; "" is no matter where. It
// is part of the change itself: hashing takes a while, and who was logged out
// or reset meanwhile changes nothing.
const loggedIn = `(?2 = '' OR EXISTS (SELECT 1 FROM browsers WHERE id = ?2 AND user_id = ?1))`

// SetPassword gives a person a new password, who asked for it with a browser
// ("" for none). ErrNotFound when they are not logged in there any more.
func (s *Store) SetPassword(ctx context.Context, user, browser, password string) error {
	u, err := s.User(ctx, user)
	if err != nil {
		return err
	}
	phc, err := hashPassword(ctx, u.Name, password)
	if err != nil {
		return err
	}
	return affected(s.db.ExecContext(ctx, `UPDATE users SET password = ?3 WHERE id = ?1 AND removed = 0 AND `+loggedIn, user, browser, phc))
}

// RemovePassword leaves a person their passkeys only. ErrLastWay when there
// is none.
func (s *Store) RemovePassword(ctx context.Context, user string) error {
	err := affected(s.db.ExecContext(ctx, `UPDATE users SET password = '' WHERE id = ?1 AND removed = 0
		AND EXISTS (SELECT 1 FROM passkeys WHERE user_id = ?1)`, user))
	if errors.Is(err, ErrNotFound) {
		return ErrLastWay
	}
	return err
}

// Passkey is one passkey of a person.
type Passkey struct {
	ID         string
	Credential []byte // the id that the authenticator gave it
	User       string
	Browser    string // with which it is added, "" for none; not kept
	Name       string // as the person named it
	Data       []byte // JSON: public key, counter, flags
	Created    time.Time
	LastUsed   time.Time
}

// AddPasskey keeps a new passkey of p.User and sets its ID. ErrNotFound when
// they are not logged in with p.Browser any more.
func (s *Store) AddPasskey(ctx context.Context, p *Passkey) error {
	return s.begin(ctx, "add passkey", func(tx *sql.Tx) error { return s.addPasskey(ctx, tx, p) })
}

func (s *Store) addPasskey(ctx context.Context, tx *sql.Tx, p *Passkey) error {
	p.ID, p.Created = newID("p"), s.now().Truncate(time.Millisecond)
	err := affected(tx.ExecContext(ctx, `INSERT INTO passkeys (id, credential, user_id, name, data, created)
		SELECT ?3, ?4, id, ?5, ?6, ?7 FROM users WHERE id = ?1 AND removed = 0 AND `+loggedIn, p.User, p.Browser, p.ID, p.Credential, p.Name, p.Data, ms(p.Created)))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("add passkey: %w", err)
	}
	return err
}

// Passkeys lists a person's passkeys, oldest first.
func (s *Store) Passkeys(ctx context.Context, user string) ([]Passkey, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, credential, user_id, name, data, created, last_used FROM passkeys WHERE user_id = ? ORDER BY created, id`, user)
	if err != nil {
		return nil, fmt.Errorf("list passkeys: %w", err)
	}
	defer rows.Close()
	var keys []Passkey
	for rows.Next() {
		var p Passkey
		var created, used int64
		if err := rows.Scan(&p.ID, &p.Credential, &p.User, &p.Name, &p.Data, &created, &used); err != nil {
			return nil, fmt.Errorf("list passkeys: %w", err)
		}
		p.Created, p.LastUsed = fromMS(created), fromMS(used)
		keys = append(keys, p)
	}
	return keys, rows.Err()
}

// UsedPasskey notes the use of a passkey and what the authenticator said.
func (s *Store) UsedPasskey(ctx context.Context, credential, data []byte) error {
	return affected(s.db.ExecContext(ctx, `UPDATE passkeys SET data = ?, last_used = ? WHERE credential = ?`, data, ms(s.now()), credential))
}

// RemovePasskey takes a passkey from a person. ErrLastWay when they could not
// log in any more.
func (s *Store) RemovePasskey(ctx context.Context, user, id string) error {
	return s.begin(ctx, "remove passkey", func(tx *sql.Tx) error {
		if err := affected(tx.ExecContext(ctx, `DELETE FROM passkeys WHERE id = ? AND user_id = ?`, id, user)); err != nil {
			return err
		}
		u, err := scanUser(tx.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.id = ?`, user))
		if err != nil {
			return err
		}
		if !u.Claimed {
			return ErrLastWay
		}
		return nil
	})
}

// Browser is one browser that is logged in; one that is about to be has no
// User.
type Browser struct {
	ID      string // SHA-256 of its cookie
	User    string
	Data    []byte
	Agent   string // what it calls itself
	Address string
	Created time.Time
	Seen    time.Time
	Expires time.Time
}

// maxStrangers bounds how many browsers are remembered that are not logged in,
// since anybody can bring as many as they like.
const maxStrangers = 10_000

// AddBrowser keeps what is to be remembered of a browser that came without
// one of our cookies, and forgets those whose time is over; beyond maxStrangers
// also the oldest that are not logged in. It keeps none of a person who was
// removed, or has no way to log in any more: that ended while they did.
func (s *Store) AddBrowser(ctx context.Context, b Browser) error {
	user := sql.NullString{String: b.User, Valid: b.User != ""}
	_, err := s.db.ExecContext(ctx, `DELETE FROM browsers WHERE expires <= ?`, ms(s.steady()))
	if err == nil {
		_, err = s.db.ExecContext(ctx, `INSERT INTO browsers (id, user_id, data, agent, address, created, seen, expires)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7 WHERE ?2 IS NULL OR EXISTS (SELECT 1 FROM users u WHERE u.id = ?2 AND u.removed = 0
				AND (u.password <> '' OR EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = u.id)))`,
			b.ID, user, b.Data, b.Agent, b.Address, ms(s.now()), ms(b.Expires))
	}
	var strangers int
	if err == nil && !user.Valid {
		err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM browsers WHERE user_id IS NULL`).Scan(&strangers)
	}
	if strangers > maxStrangers {
		// Some at once: to find the oldest costs more than to keep one.
		_, err = s.db.ExecContext(ctx, `DELETE FROM browsers WHERE id IN (SELECT id FROM browsers WHERE user_id IS NULL ORDER BY expires LIMIT ?)`, maxStrangers/10)
	}
	if err != nil {
		return fmt.Errorf("keep browser: %w", err)
	}
	return nil
}

// KeepBrowser renews what is remembered of a browser. One that was logged out
// meanwhile stays so.
func (s *Store) KeepBrowser(ctx context.Context, b Browser) error {
	user := sql.NullString{String: b.User, Valid: b.User != ""}
	_, err := s.db.ExecContext(ctx, `UPDATE browsers SET user_id = ?, data = ?, agent = ?, address = ?, seen = ?, expires = ? WHERE id = ?`,
		user, b.Data, b.Agent, b.Address, ms(s.now()), ms(b.Expires), b.ID)
	if err != nil {
		return fmt.Errorf("keep browser: %w", err)
	}
	return nil
}

// Browser gives what is remembered of a browser. ErrNotFound when nothing is.
func (s *Store) Browser(ctx context.Context, id string) (Browser, error) {
	b := Browser{ID: id}
	var user sql.NullString
	var created, seen, expires int64
	err := s.db.QueryRowContext(ctx, `SELECT user_id, data, agent, address, created, seen, expires FROM browsers WHERE id = ? AND expires > ?`, id, ms(s.steady())).
		Scan(&user, &b.Data, &b.Agent, &b.Address, &created, &seen, &expires)
	b.User, b.Created, b.Seen, b.Expires = user.String, fromMS(created), fromMS(seen), fromMS(expires)
	return b, one(err)
}

// Browsers lists where a person is logged in, the latest first, without Data.
func (s *Store) Browsers(ctx context.Context, user string) ([]Browser, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, agent, address, created, seen, expires FROM browsers WHERE user_id = ? AND expires > ? ORDER BY seen DESC, id`, user, ms(s.steady()))
	if err != nil {
		return nil, fmt.Errorf("list browsers: %w", err)
	}
	defer rows.Close()
	var list []Browser
	for rows.Next() {
		b := Browser{User: user}
		var created, seen, expires int64
		if err := rows.Scan(&b.ID, &b.Agent, &b.Address, &created, &seen, &expires); err != nil {
			return nil, fmt.Errorf("list browsers: %w", err)
		}
		b.Created, b.Seen, b.Expires = fromMS(created), fromMS(seen), fromMS(expires)
		list = append(list, b)
	}
	return list, rows.Err()
}

// EndBrowser forgets a browser. It is no error when there is none.
func (s *Store) EndBrowser(ctx context.Context, id string) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM browsers WHERE id = ?`, id)
	return err
}

// EndBrowsers logs a person out everywhere but in the browser except ("" for
// none), or only in the browser only when that is not "".
func (s *Store) EndBrowsers(ctx context.Context, user, except, only string) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM browsers WHERE user_id = ?1 AND id <> ?2 AND (?3 = '' OR id = ?3)`, user, except, only)
	return err
}
