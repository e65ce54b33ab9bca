package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// Roles of users.
const (
	RoleOwner  = "owner"
	RoleMember = "member"
)

// OwnerID is the id of the one owner, who exists from the start.
const OwnerID = "owner"

// Kinds of invites.
const (
	InviteSetup = "setup" // makes the owner
	InviteJoin  = "join"  // lets a new member in
	InviteReset = "reset" // lets somebody choose anew how to log in
)

// inviteFor is how long an invite is good; that of the set-up is until used.
const inviteFor = 24 * time.Hour

var (
	// ErrNameTaken means that somebody else has that name.
	ErrNameTaken = errors.New("somebody on this hub has that name already; choose another")
	// ErrOwner means that the owner cannot be removed.
	ErrOwner = errors.New("the owner cannot be removed")
	// ErrLastWay means that a person would be locked out.
	ErrLastWay = errors.New("this is the only way to log in; add another one first")
)

// User is one person who may use the hub.
type User struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Created time.Time `json:"created"`
	// Claimed: the person has a passkey or a password.
	Claimed bool `json:"claimed"`
	// Password: the person has a password.
	Password bool `json:"-"`
	// Handle is what passkeys know the person by, 32 bytes.
	Handle []byte `json:"-"`
}

// CheckUserName says what is wrong with the name of a person.
func CheckUserName(name string) error {
	switch name = strings.TrimSpace(name); {
	case name == "":
		return errors.New("the name is empty; give the name that the person logs in with")
	case utf8.RuneCountInString(name) > 60:
		return errors.New("the name is longer than 60 characters")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name contains a line break or a character that cannot be seen; use letters, digits, spaces and punctuation")
	}
	if _, err := precis.Nickname.CompareKey(name); err != nil {
		return errors.New("the name contains a character that names cannot have; use letters, digits, spaces and punctuation")
	}
	return nil
}

// loginName is the name as names are compared: neither case nor the way that
// letters are composed matters (RFC 8266).
func loginName(name string) (string, error) {
	if err := CheckUserName(name); err != nil {
		return "", err
	}
	return precis.Nickname.CompareKey(name)
}

// LoginName is one form of all ways to write the name of a person that LogIn
// takes for the same; "" when nobody can have that name.
func LoginName(name string) string {
	login, err := loginName(name)
	if err != nil {
		return ""
	}
	return login
}

const userColumns = `u.id, u.name, u.role, u.created, u.password <> '', u.password <> '' OR EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = u.id), u.handle`

func scanUser(row interface{ Scan(...any) error }) (User, error) {
	var u User
	var created int64
	if err := row.Scan(&u.ID, &u.Name, &u.Role, &created, &u.Password, &u.Claimed, &u.Handle); err != nil {
		return User{}, one(err)
	}
	u.Created = fromMS(created)
	return u, nil
}

// Owner is the hub's owner.
func (s *Store) Owner(ctx context.Context) (User, error) { return s.User(ctx, OwnerID) }

// User gives a person by id. ErrNotFound when there is none, or not any more.
func (s *Store) User(ctx context.Context, id string) (User, error) {
	return scanUser(s.db.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.id = ? AND u.removed = 0`, id))
}

// Account is what a person is called to the computers that are theirs: "" for
// an owner who has never set the hub up, as where it is inside a program.
// ErrNotFound when there is no such person, or not any more.
func (s *Store) Account(ctx context.Context, id string) (string, error) {
	var name string
	err := s.db.QueryRowContext(ctx, `SELECT CASE WHEN role = 'owner' AND claimed = 0 THEN '' ELSE name END FROM users WHERE id = ? AND removed = 0`, id).Scan(&name)
	return name, one(err)
}

// UserByHandle gives the person whom a passkey names.
func (s *Store) UserByHandle(ctx context.Context, handle []byte) (User, error) {
	return scanUser(s.db.QueryRowContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.handle = ? AND u.removed = 0`, handle))
}

// Users lists the people, the owner first, then by name.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+userColumns+` FROM users u WHERE u.removed = 0 ORDER BY u.role = 'owner' DESC, u.login, u.id`)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	defer rows.Close()
	users := []User{}
	for rows.Next() {
		u, err := scanUser(rows)
		if err != nil {
			return nil, fmt.Errorf("list users: %w", err)
		}
		users = append(users, u)
	}
	return users, rows.Err()
}

// AddUser makes a member, and the invite with which they choose how to log
// in: good once, for 24 hours. ErrNameTaken when the name is in use.
func (s *Store) AddUser(ctx context.Context, name string) (User, string, error) {
	login, err := loginName(name)
	if err != nil {
		return User{}, "", err
	}
	u := User{ID: newID("u"), Name: strings.TrimSpace(name), Role: RoleMember, Created: s.now().Truncate(time.Millisecond), Handle: make([]byte, 32)}
	rand.Read(u.Handle)
	var invite string
	err = s.begin(ctx, "add user", func(tx *sql.Tx) error {
		if err := free(ctx, tx, login, u.ID); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO users (id, name, role, login, handle, created) VALUES (?, ?, ?, ?, ?, ?)`,
			u.ID, u.Name, u.Role, login, u.Handle, ms(u.Created)); err != nil {
			return fmt.Errorf("add user: %w", err)
		}
		invite, err = s.invite(ctx, tx, u.ID, InviteJoin)
		return err
	})
	return u, invite, err
}

// ResetUser takes every way to log in from a person, logs them out
// everywhere, and makes the invite with which they choose anew. Their keys
// and computers stay.
func (s *Store) ResetUser(ctx context.Context, id string) (string, error) {
	var invite string
	err := s.begin(ctx, "reset user", func(tx *sql.Tx) error {
		if err := affected(tx.ExecContext(ctx, `UPDATE users SET password = '' WHERE id = ? AND removed = 0`, id)); err != nil {
			return err
		}
		if err := forget(ctx, tx, id); err != nil {
			return err
		}
		// Who has never chosen joins; the owner of a new hub sets it up.
		var claimed bool
		if err := tx.QueryRowContext(ctx, `SELECT claimed > 0 FROM users WHERE id = ?`, id).Scan(&claimed); err != nil {
			return fmt.Errorf("reset user: %w", err)
		}
		kind := InviteReset
		switch {
		case claimed:
		case id == OwnerID:
			kind = InviteSetup
		default:
			kind = InviteJoin
		}
		var err error
		invite, err = s.invite(ctx, tx, id, kind)
		return err
	})
	return invite, err
}

// RemoveUser takes a person from the hub, with all they could log in or
// connect with. The hub has to end the connections that are open.
func (s *Store) RemoveUser(ctx context.Context, id string) error {
	if id == OwnerID {
		return ErrOwner
	}
	return s.begin(ctx, "remove user", func(tx *sql.Tx) error {
		now := ms(s.now())
		if err := affected(tx.ExecContext(ctx, `UPDATE users SET removed = ?, login = NULL, password = '' WHERE id = ? AND removed = 0`, now, id)); err != nil {
			return err
		}
		if err := s.drop(ctx, tx, id); err != nil {
			return err
		}
		return forget(ctx, tx, id)
	})
}

// present is ErrNotFound when a person is not, or not any more, on the hub:
// what they asked for a moment before must not outlive them.
func present(ctx context.Context, q querier, user string) error {
	var id string
	return one(q.QueryRowContext(ctx, `SELECT id FROM users WHERE id = ? AND removed = 0`, user).Scan(&id))
}

// forget ends a person's passkeys, invites and browsers.
func forget(ctx context.Context, tx *sql.Tx, user string) error {
	for _, q := range []string{`DELETE FROM passkeys WHERE user_id = ?`, `DELETE FROM invites WHERE user_id = ?`, `DELETE FROM browsers WHERE user_id = ?`} {
		if _, err := tx.ExecContext(ctx, q, user); err != nil {
			return fmt.Errorf("forget user: %w", err)
		}
	}
	return nil
}

// free refuses a name that somebody else has.
func free(ctx context.Context, tx *sql.Tx, login, user string) error {
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM users WHERE login = ? AND id <> ?`, login, user).Scan(&n); err != nil {
		return fmt.Errorf("look for name: %w", err)
	}
	if n > 0 {
		return ErrNameTaken
	}
	return nil
}

// invite makes an invite; a person has one at a time.
func (s *Store) invite(ctx context.Context, tx *sql.Tx, user, kind string) (string, error) {
	secret := newSecret("", 20)
	expires := ms(s.steady().Add(inviteFor))
	if kind == InviteSetup {
		expires = 0
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM invites WHERE user_id = ?`, user); err != nil {
		return "", fmt.Errorf("invite: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO invites (hash, user_id, kind, expires) VALUES (?, ?, ?, ?)`, hash(secret), user, kind, expires); err != nil {
		return "", fmt.Errorf("invite: %w", err)
	}
	return secret, nil
}

// SetUp tells whether the owner has ever chosen how to log in. After that no
// set-up is possible.
func (s *Store) SetUp(ctx context.Context) (bool, error) {
	var done bool
	err := s.db.QueryRowContext(ctx, `SELECT claimed > 0 FROM users WHERE id = ?`, OwnerID).Scan(&done)
	return done, one(err)
}

// SetupToken makes the invite that makes the owner; earlier ones end. It is
// "" when the hub is set up.
func (s *Store) SetupToken(ctx context.Context) (string, error) {
	var token string
	err := s.begin(ctx, "set-up token", func(tx *sql.Tx) error {
		var done bool
		err := tx.QueryRowContext(ctx, `SELECT claimed > 0 FROM users WHERE id = ?`, OwnerID).Scan(&done)
		if err != nil || done {
			return err
		}
		token, err = s.invite(ctx, tx, OwnerID, InviteSetup)
		return err
	})
	return token, err
}

// Invite is a link that lets a person choose how to log in.
type Invite struct {
	User    User
	Kind    string
	Expires time.Time // zero: until it is used
}

// FindInvite gives a good invite. ErrNotFound when it is wrong, used or too
// old.
func (s *Store) FindInvite(ctx context.Context, secret string) (Invite, error) {
	var i Invite
	var user string
	var expires int64
	err := s.db.QueryRowContext(ctx, `SELECT user_id, kind, expires FROM invites WHERE hash = ? AND (expires = 0 OR expires > ?)`,
		hash(strings.TrimSpace(secret)), ms(s.steady())).Scan(&user, &i.Kind, &expires)
	if err != nil {
		return Invite{}, one(err)
	}
	i.Expires = fromMS(expires)
	i.User, err = s.User(ctx, user)
	return i, err
}

// Claim is how a person chose to log in: a password or a passkey.
type Claim struct {
	Name     string // of the owner at the set-up; else ignored
	Password string
	Passkey  *Passkey
}

// Claim uses an invite up and keeps what the person chose. ErrNotFound when
// the invite is not good any more, ErrNameTaken; an error of CheckUserName or
// CheckPassword otherwise.
func (s *Store) Claim(ctx context.Context, secret string, c Claim) (User, error) {
	i, err := s.FindInvite(ctx, secret)
	if err != nil {
		return User{}, err
	}
	name := i.User.Name
	if i.Kind == InviteSetup {
		name = strings.TrimSpace(c.Name)
	}
	login, err := loginName(name)
	if err != nil {
		return User{}, err
	}
	var phc string
	if c.Passkey == nil {
		if phc, err = hashPassword(ctx, name, c.Password); err != nil {
			return User{}, err
		}
	}
	err = s.begin(ctx, "claim", func(tx *sql.Tx) error {
		// Two who come with the same link: the second finds it gone.
		if err := affected(tx.ExecContext(ctx, `DELETE FROM invites WHERE hash = ?`, hash(strings.TrimSpace(secret)))); err != nil {
			return err
		}
		if err := free(ctx, tx, login, i.User.ID); err != nil {
			return err
		}
		if err := affected(tx.ExecContext(ctx, `UPDATE users SET name = ?, login = ?, password = ?, claimed = ? WHERE id = ? AND removed = 0`,
			name, login, phc, ms(s.now()), i.User.ID)); err != nil {
			return err
		}
		if c.Passkey == nil {
			return nil
		}
		c.Passkey.User = i.User.ID
		return s.addPasskey(ctx, tx, c.Passkey)
	})
	if err != nil {
		return User{}, err
	}
	return s.User(ctx, i.User.ID)
}
