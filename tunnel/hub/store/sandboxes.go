package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// kept is how long an ended sandbox is remembered.
const kept = 7 * 24 * time.Hour

// Sandbox is one session of one key's program on one machine, agreed to by
// the person.
type Sandbox struct {
	ID        string // also the id of the machine's session
	User      string // whose: the key's and the machine's
	Machine   string
	Principal string // the key's id
	Template  string
	Metadata  map[string]string
	Folder    string // on the machine, as the person chose
	Mode      string
	Started   time.Time // when the person agreed
	EndsAt    time.Time
	// Ended is set for one that runs no more; its machine keeps the clock, and
	// one that is past EndsAt counts as ended whether the machine said so or not.
	Ended bool
}

const sandboxColumns = `id, user_id, machine, principal, template, metadata, folder, mode, started, ends_at, ended`

func (s *Store) scanSandbox(scan func(...any) error) (Sandbox, error) {
	var b Sandbox
	var metadata string
	var started, ends, ended int64
	if err := scan(&b.ID, &b.User, &b.Machine, &b.Principal, &b.Template, &metadata, &b.Folder, &b.Mode, &started, &ends, &ended); err != nil {
		return Sandbox{}, one(err)
	}
	if err := json.Unmarshal([]byte(metadata), &b.Metadata); err != nil {
		return Sandbox{}, fmt.Errorf("sandbox %s: %w", b.ID, err)
	}
	b.Started, b.EndsAt = fromMS(started), fromMS(ends)
	b.Ended = ended != 0 || !s.steady().Before(b.EndsAt)
	return b, nil
}

// AddSandbox notes a sandbox that the person agreed to just now, and forgets
// those that ended long ago. It returns b with the times filled in. ErrNotFound
// when the machine is not (any more) b's user's.
func (s *Store) AddSandbox(ctx context.Context, b Sandbox, ttl time.Duration) (Sandbox, error) {
	if b.Metadata == nil {
		b.Metadata = map[string]string{}
	}
	metadata, err := json.Marshal(b.Metadata)
	if err != nil {
		return Sandbox{}, err
	}
	b.Started = fromMS(ms(s.now()))
	b.EndsAt = fromMS(ms(s.steady().Add(ttl)))
	if err := affected(s.db.ExecContext(ctx, `INSERT INTO sandboxes (id, user_id, machine, principal, template, metadata, folder, mode, started, ends_at)
		SELECT ?, user_id, id, ?, ?, ?, ?, ?, ?, ? FROM machines WHERE id = ? AND user_id = ?`,
		b.ID, b.Principal, b.Template, string(metadata), b.Folder, b.Mode, ms(b.Started), ms(b.EndsAt), b.Machine, b.User)); err != nil {
		return Sandbox{}, fmt.Errorf("add sandbox: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, `DELETE FROM sandboxes WHERE ends_at < ?1 OR ended > 0 AND ended < ?1`, ms(s.steady().Add(-kept))); err != nil {
		return Sandbox{}, fmt.Errorf("prune sandboxes: %w", err)
	}
	return b, nil
}

// Sandbox gives a sandbox, ended or not. ErrNotFound when there is none.
func (s *Store) Sandbox(ctx context.Context, id string) (Sandbox, error) {
	return s.scanSandbox(s.db.QueryRowContext(ctx, `SELECT `+sandboxColumns+` FROM sandboxes WHERE id = ?`, id).Scan)
}

// SetEnd moves the end of a running sandbox.
func (s *Store) SetEnd(ctx context.Context, id string, ttl time.Duration) error {
	return affected(s.db.ExecContext(ctx, `UPDATE sandboxes SET ends_at = ? WHERE id = ? AND ended = 0`, ms(s.steady().Add(ttl)), id))
}

// EndSandbox ends a running sandbox. ErrNotFound when it was not running.
func (s *Store) EndSandbox(ctx context.Context, id, reason string) error {
	now := ms(s.steady())
	return affected(s.db.ExecContext(ctx, `UPDATE sandboxes SET ended = ?1, reason = ?2 WHERE id = ?3 AND ended = 0 AND ends_at > ?1`, now, reason, id))
}

// Reconcile compares the sandboxes of a machine with the sessions that are
// open there. Those not open there are marked ended; it returns the sessions
// that are open there and must not be.
func (s *Store) Reconcile(ctx context.Context, machine string, open []string) (close []string, err error) {
	list, err := s.sandboxes(ctx, `SELECT `+sandboxColumns+` FROM sandboxes WHERE machine = ? AND ended = 0`, machine)
	if err != nil {
		return nil, err
	}
	here := map[string]bool{}
	for _, id := range open {
		here[id] = true
	}
	running := map[string]bool{}
	for _, b := range list {
		if !here[b.ID] {
			if err := s.EndSandbox(ctx, b.ID, "it was not open on the computer any more"); err != nil && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
			continue
		}
		running[b.ID] = !b.Ended
	}
	for _, id := range open {
		if !running[id] {
			close = append(close, id)
		}
	}
	return close, nil
}

// Query selects running sandboxes of one principal.
type Query struct {
	Principal string
	Oldest    bool              // oldest first instead of newest first
	Since     time.Time         // started at this time or later
	Template  string            // "" is any
	Metadata  map[string]string // all of these
	Limit     int               // at most this many
	// AfterID continues behind the sandbox with this start and id.
	AfterStart time.Time
	AfterID    string
}

// Sandboxes lists running sandboxes by their start.
func (s *Store) Sandboxes(ctx context.Context, q Query) ([]Sandbox, error) {
	query := `SELECT ` + sandboxColumns + ` FROM sandboxes WHERE ended = 0 AND principal = ? AND started >= ? AND ends_at > ?`
	args := []any{q.Principal, ms(q.Since), ms(s.steady())}
	cmp, dir := "<", "DESC"
	if q.Oldest {
		cmp, dir = ">", "ASC"
	}
	if q.AfterID != "" {
		query += ` AND (started, id) ` + cmp + ` (?, ?)`
		args = append(args, ms(q.AfterStart), q.AfterID)
	}
	if q.Template != "" {
		query += ` AND template = ?`
		args = append(args, q.Template)
	}
	for k, v := range q.Metadata {
		query += ` AND EXISTS (SELECT 1 FROM json_each(metadata) WHERE key = ? AND value = ?)`
		args = append(args, k, v)
	}
	query += fmt.Sprintf(` ORDER BY started %s, id %s LIMIT ?`, dir, dir)
	return s.sandboxes(ctx, query, append(args, q.Limit)...)
}

// Running lists every running sandbox.
func (s *Store) Running(ctx context.Context) ([]Sandbox, error) {
	return s.sandboxes(ctx, `SELECT `+sandboxColumns+` FROM sandboxes WHERE ended = 0 AND ends_at > ?`, ms(s.steady()))
}

func (s *Store) sandboxes(ctx context.Context, query string, args ...any) ([]Sandbox, error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	defer rows.Close()
	list := []Sandbox{}
	for rows.Next() {
		b, err := s.scanSandbox(rows.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, rows.Err()
}
