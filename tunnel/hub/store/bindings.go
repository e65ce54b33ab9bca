package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Binding is a chat that is bound to a folder of a computer of AutoGPT's wire
// 1.1. Root, Fingerprint, Revision and Grant are the computer's own words,
// given back to it when the chat is to go on.
type Binding struct {
	Session     string // also the sandbox's id
	User        string
	Machine     string
	Root        string // the folder
	Fingerprint string
	Revision    int64
	Grant       string
	Env         map[string]string // for every command
}

// CompanionSoftware begins the name of what runs on a computer that speaks
// AutoGPT's wire.
const CompanionSoftware = "autogpt/"

// Companion tells whether a machine speaks AutoGPT's wire: its folder for
// programs is set on the hub.
func (m Machine) Companion() bool { return strings.HasPrefix(m.Software, CompanionSoftware) }

// SetBinding keeps a binding in the place of an earlier one of its session.
func (s *Store) SetBinding(ctx context.Context, b Binding) error {
	if b.Env == nil {
		b.Env = map[string]string{}
	}
	env, err := json.Marshal(b.Env)
	if err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `INSERT OR REPLACE INTO bindings (session, user_id, machine, root, fingerprint, revision, root_grant, env, created)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, b.Session, b.User, b.Machine, b.Root, b.Fingerprint, b.Revision, b.Grant, string(env), ms(s.now())); err != nil {
		return fmt.Errorf("set binding: %w", err)
	}
	return nil
}

const bindingColumns = `session, user_id, machine, root, fingerprint, revision, root_grant, env`

func scanBinding(scan func(...any) error) (Binding, error) {
	var b Binding
	var env string
	if err := scan(&b.Session, &b.User, &b.Machine, &b.Root, &b.Fingerprint, &b.Revision, &b.Grant, &env); err != nil {
		return Binding{}, one(err)
	}
	if err := json.Unmarshal([]byte(env), &b.Env); err != nil {
		return Binding{}, fmt.Errorf("binding %s: %w", b.Session, err)
	}
	return b, nil
}

// Binding gives the binding of a session. ErrNotFound when there is none.
func (s *Store) Binding(ctx context.Context, session string) (Binding, error) {
	return scanBinding(s.db.QueryRowContext(ctx, `SELECT `+bindingColumns+` FROM bindings WHERE session = ?`, session).Scan)
}

// Bindings lists the bindings of a user's machine, the oldest first.
func (s *Store) Bindings(ctx context.Context, user, machine string) ([]Binding, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+bindingColumns+` FROM bindings WHERE user_id = ? AND machine = ? ORDER BY created, session`, user, machine)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	defer rows.Close()
	list := []Binding{}
	for rows.Next() {
		b, err := scanBinding(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list bindings: %w", err)
		}
		list = append(list, b)
	}
	return list, rows.Err()
}

// DeleteBinding forgets a binding. It is no error when there is none.
func (s *Store) DeleteBinding(ctx context.Context, session string) error {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM bindings WHERE session = ?`, session); err != nil {
		return fmt.Errorf("delete binding: %w", err)
	}
	return nil
}

// SetFolder keeps the folder that programs get on a user's machine; "" forgets
// it. ErrNotFound when the user has no such machine.
func (s *Store) SetFolder(ctx context.Context, user, machine, folder string) error {
	var n int
	if err := one(s.db.QueryRowContext(ctx, `SELECT 1 FROM machines WHERE id = ? AND user_id = ?`, machine, user).Scan(&n)); err != nil {
		return err
	}
	query, args := `INSERT OR REPLACE INTO folders (machine, user_id, folder) VALUES (?, ?, ?)`, []any{machine, user, folder}
	if folder == "" {
		query, args = `DELETE FROM folders WHERE machine = ?`, args[:1]
	}
	if _, err := s.db.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("set folder: %w", err)
	}
	return nil
}

// Folder gives the folder that the user has set for a machine, or "".
func (s *Store) Folder(ctx context.Context, user, machine string) (string, error) {
	var folder string
	err := one(s.db.QueryRowContext(ctx, `SELECT folder FROM folders WHERE machine = ? AND user_id = ?`, machine, user).Scan(&folder))
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return folder, err
}
