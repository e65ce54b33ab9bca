package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Fresh is how long ago a machine that counts as online was last seen, at
// most: it sends a word every 30 s. A hub that was killed cannot say goodbye
// for its machines.
const Fresh = 90 * time.Second

// Machine is one computer.
type Machine struct {
	ID       string `json:"id"`
	User     string `json:"user"` // whose it is
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Arch     string `json:"arch"`
	Software string `json:"software"`
	Epoch    int64  `json:"epoch"` // rises with each connection
	Online   bool   `json:"online"`
	// Paired: it has a token or a sign-in with which it can connect.
	Paired   bool      `json:"paired"`
	LastSeen time.Time `json:"last_seen,omitzero"`
	// RecordSeq and RecordHash are the newest entry of the machine's record.
	RecordSeq  int64  `json:"record_seq"`
	RecordHash string `json:"record_hash,omitempty"`
	// RecordCut is when the machine first told of a record that is shorter
	// than, or differs from, what it had told before; zero when never.
	RecordCut time.Time `json:"record_cut,omitzero"`
}

// Connected notes a new connection of m and returns its epoch: higher than
// that of any earlier one. ErrTaken when the machine is another user's.
func (s *Store) Connected(ctx context.Context, m Machine) (int64, error) {
	now := ms(s.now())
	var epoch int64
	err := one(s.db.QueryRowContext(ctx, `INSERT INTO machines (id, user_id, name, platform, arch, software, epoch, online, last_seen, created)
		VALUES (?, ?, ?, ?, ?, ?, 1, 1, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, platform = excluded.platform, arch = excluded.arch,
			software = excluded.software, epoch = epoch + 1, online = 1, last_seen = excluded.last_seen
			WHERE user_id = excluded.user_id
		RETURNING epoch`, m.ID, m.User, m.Name, m.Platform, m.Arch, m.Software, now, now).Scan(&epoch))
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, ErrTaken
	case err != nil:
		return 0, fmt.Errorf("machine connected: %w", err)
	}
	return epoch, nil
}

// claim makes a machine the user's, who has just proved to hold it. ErrTaken
// when it is another's, whose tokens or sign-ins for it still live. One that its user
// has disconnected is free; what was open there ends with the change.
func (s *Store) claim(ctx context.Context, tx *sql.Tx, user, machine, name string) error {
	if err := present(ctx, tx, user); err != nil {
		return err
	}
	now := ms(s.now())
	err := affected(tx.ExecContext(ctx, `INSERT INTO machines (id, user_id, name, created) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = iif(excluded.name = '', name, excluded.name) WHERE user_id = excluded.user_id`, machine, user, name, now))
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	var held int
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM tokens WHERE kind = 'machine' AND machine = ?1 AND revoked = 0)
		OR EXISTS (SELECT 1 FROM signins WHERE machine = ?1 AND user_id <> ?2 AND revoked = 0)`, machine, user).Scan(&held); err != nil {
		return fmt.Errorf("claim machine: %w", err)
	}
	if held != 0 {
		return ErrTaken
	}
	if _, err := tx.ExecContext(ctx, `UPDATE sandboxes SET ended = ?, reason = 'the computer changed hands' WHERE machine = ? AND ended = 0`, now, machine); err != nil {
		return fmt.Errorf("claim machine: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE machines SET user_id = ?, name = ?, record_seq = 0, record_hash = '', record_cut = 0 WHERE id = ?`, user, name, machine)
	return err
}

// Seen notes a sign of life. A connection that is not the newest says nothing.
func (s *Store) Seen(ctx context.Context, id string, epoch int64) error {
	_, err := s.db.ExecContext(ctx, `UPDATE machines SET last_seen = ?, online = 1 WHERE id = ? AND epoch = ?`, ms(s.now()), id, epoch)
	return err
}

// SeenAll notes a sign of life of many machines at once, by their ids and
// epochs.
func (s *Store) SeenAll(ctx context.Context, epochs map[string]int64) error {
	return s.begin(ctx, "presence", func(tx *sql.Tx) error {
		seen, err := tx.PrepareContext(ctx, `UPDATE machines SET last_seen = ?, online = 1 WHERE id = ? AND epoch = ?`)
		if err != nil {
			return fmt.Errorf("presence: %w", err)
		}
		defer seen.Close()
		now := ms(s.now())
		for id, epoch := range epochs {
			if _, err := seen.ExecContext(ctx, now, id, epoch); err != nil {
				return fmt.Errorf("presence: %w", err)
			}
		}
		return nil
	})
}

// Holds is what may be used, as it is at one moment.
type Holds struct {
	// Proofs are the ids of machine tokens and sign-ins that are not revoked.
	Proofs map[string]bool
	// Running are the sandboxes that have not ended, by machine.
	Running map[string][]string
}

// Holds reads what may be used, of everybody. It costs about as much as a few
// requests, so that a hub with many machines asks for all of them at once.
func (s *Store) Holds(ctx context.Context) (Holds, error) {
	h := Holds{Proofs: map[string]bool{}, Running: map[string][]string{}}
	for _, q := range []struct {
		sql  string
		args []any
		note func(a, b string)
	}{
		{`SELECT id, '' FROM tokens WHERE kind = 'machine' AND revoked = 0 UNION ALL SELECT id, '' FROM signins WHERE revoked = 0`, nil,
			func(id, _ string) { h.Proofs[id] = true }},
		{`SELECT id, machine FROM sandboxes WHERE ended = 0 AND ends_at > ?`, []any{ms(s.steady())},
			func(id, machine string) { h.Running[machine] = append(h.Running[machine], id) }},
	} {
		rows, err := s.db.QueryContext(ctx, q.sql, q.args...)
		if err != nil {
			return Holds{}, fmt.Errorf("holds: %w", err)
		}
		for rows.Next() {
			var a, b string
			if err := rows.Scan(&a, &b); err != nil {
				rows.Close()
				return Holds{}, fmt.Errorf("holds: %w", err)
			}
			q.note(a, b)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return Holds{}, fmt.Errorf("holds: %w", err)
		}
	}
	return h, nil
}

// RecordHead keeps the newest entry that a machine told of its own record. It
// reports false when that does not follow what was told before; then the
// older word is kept.
func (s *Store) RecordHead(ctx context.Context, id string, seq int64, hash string) (bool, error) {
	err := affected(s.db.ExecContext(ctx, `UPDATE machines SET record_seq = ?1, record_hash = ?2
		WHERE id = ?3 AND (record_seq < ?1 OR record_seq = ?1 AND record_hash IN ('', ?2))`, seq, hash, id))
	if !errors.Is(err, ErrNotFound) {
		return err == nil, err
	}
	_, err = s.db.ExecContext(ctx, `UPDATE machines SET record_cut = ? WHERE id = ? AND record_cut = 0`, ms(s.now()), id)
	return false, err
}

// Disconnected notes the end of a connection. The end of one that is not the
// newest changes nothing.
func (s *Store) Disconnected(ctx context.Context, id string, epoch int64) error {
	_, err := s.db.ExecContext(ctx, `UPDATE machines SET online = 0, last_seen = ? WHERE id = ? AND epoch = ?`, ms(s.now()), id, epoch)
	return err
}

// ResetPresence marks every machine offline. A hub calls it when it starts,
// before it takes connections.
func (s *Store) ResetPresence(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, `UPDATE machines SET online = 0 WHERE online <> 0`); err != nil {
		return fmt.Errorf("reset presence: %w", err)
	}
	return nil
}

// paired is whether a machine m can connect.
const paired = `EXISTS (SELECT 1 FROM tokens t WHERE t.kind = 'machine' AND t.machine = m.id AND t.revoked = 0)
	OR EXISTS (SELECT 1 FROM signins i WHERE i.machine = m.id AND i.revoked = 0)`

// Machines lists a user's machines by name; "" is everybody's.
func (s *Store) Machines(ctx context.Context, user string) ([]Machine, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, user_id, name, platform, arch, software, epoch, online, last_seen, record_seq, record_hash, record_cut, `+paired+`
		FROM machines m WHERE ?1 IN ('', user_id) ORDER BY name, id`, user)
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	defer rows.Close()
	machines := []Machine{}
	for rows.Next() {
		var m Machine
		var seen, cut int64
		if err := rows.Scan(&m.ID, &m.User, &m.Name, &m.Platform, &m.Arch, &m.Software, &m.Epoch, &m.Online, &seen, &m.RecordSeq, &m.RecordHash, &cut, &m.Paired); err != nil {
			return nil, fmt.Errorf("list machines: %w", err)
		}
		m.LastSeen, m.RecordCut = fromMS(seen), fromMS(cut)
		m.Online = m.Online && s.now().Sub(m.LastSeen) < Fresh
		machines = append(machines, m)
	}
	return machines, rows.Err()
}

// ForgetMachine takes a user's machine that cannot connect any more off the
// list, with what is remembered of it. ErrNotFound when there is none such.
func (s *Store) ForgetMachine(ctx context.Context, user, machine string) error {
	return s.begin(ctx, "forget machine", func(tx *sql.Tx) error {
		var gone bool
		err := tx.QueryRowContext(ctx, `SELECT NOT (`+paired+`) FROM machines m WHERE m.id = ? AND m.user_id = ?`, machine, user).Scan(&gone)
		if err != nil {
			return one(err)
		}
		if !gone {
			return ErrNotFound
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM sandboxes WHERE machine = ?`, machine); err != nil {
			return fmt.Errorf("forget machine: %w", err)
		}
		return affected(tx.ExecContext(ctx, `DELETE FROM machines WHERE id = ?`, machine))
	})
}
