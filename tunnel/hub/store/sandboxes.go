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
	EndsAt    time.Time // of one that is paused, when it is given up
	// Life is the time that was last asked for: a resume by a call gives it anew.
	Life time.Duration
	// Paused: its processes stand still, until it is resumed.
	Paused bool
	// EndPauses: shortly before EndsAt it is paused instead of ended there.
	EndPauses bool
	// AutoResume: a call to it while it is paused resumes it.
	AutoResume bool
	// Ended is set for one that runs no more; its machine keeps the clock, and
	// one that is past EndsAt counts as ended whether the machine said so or not.
	Ended bool
}

const sandboxColumns = `id, user_id, machine, principal, template, metadata, folder, mode, started, ends_at, ended, paused > 0, end_pauses, auto_resume, life`

func (s *Store) scanSandbox(scan func(...any) error) (Sandbox, error) {
	var b Sandbox
	var metadata string
	var started, ends, ended, life int64
	if err := scan(&b.ID, &b.User, &b.Machine, &b.Principal, &b.Template, &metadata, &b.Folder, &b.Mode, &started, &ends, &ended,
		&b.Paused, &b.EndPauses, &b.AutoResume, &life); err != nil {
		return Sandbox{}, one(err)
	}
	if err := json.Unmarshal([]byte(metadata), &b.Metadata); err != nil {
		return Sandbox{}, fmt.Errorf("sandbox %s: %w", b.ID, err)
	}
	b.Started, b.EndsAt, b.Life = fromMS(started), fromMS(ends), time.Duration(life)*time.Millisecond
	b.Ended = ended != 0 || !s.steady().Before(b.EndsAt)
	return b, nil
}

// OwnPrincipal is the hub itself: its practice is nobody's key.
const OwnPrincipal = "practice"

// ErrRevoked means that who asks was shut out: its key or sign-in is not live.
var ErrRevoked = errors.New("the key or sign-in was revoked")

// livePrincipal tells whether ?1 may open something for the user ?2.
const livePrincipal = `(?1 = '` + OwnPrincipal + `' OR EXISTS (SELECT 1 FROM tokens WHERE id = ?1 AND kind = 'key' AND user_id = ?2 AND revoked = 0)
	OR EXISTS (SELECT 1 FROM signins WHERE id = ?1 AND user_id = ?2 AND revoked = 0))`

// PrincipalLive tells whether a key or a program's sign-in of a user is good.
func (s *Store) PrincipalLive(ctx context.Context, user, id string) (bool, error) {
	var live bool
	if err := s.db.QueryRowContext(ctx, `SELECT `+livePrincipal, id, user).Scan(&live); err != nil {
		return false, fmt.Errorf("look up who asks: %w", err)
	}
	return live, nil
}

// AddSandbox notes a sandbox that the person agreed to just now, and forgets
// those that ended long ago. It returns b with the times filled in. ErrRevoked
// when b's principal is not (any more) one of b's user; ErrNotFound when the
// machine is not.
func (s *Store) AddSandbox(ctx context.Context, b Sandbox, ttl time.Duration) (Sandbox, error) {
	if b.Metadata == nil {
		b.Metadata = map[string]string{}
	}
	metadata, err := json.Marshal(b.Metadata)
	if err != nil {
		return Sandbox{}, err
	}
	b.Started = fromMS(ms(s.now()))
	b.EndsAt, b.Life, b.Paused = fromMS(ms(s.steady().Add(ttl))), ttl, false
	// In one statement: the person may have shut the program out since it asked.
	err = affected(s.db.ExecContext(ctx, `INSERT INTO sandboxes (id, user_id, machine, principal, template, metadata, folder, mode, started, ends_at, end_pauses, auto_resume, life)
		SELECT ?3, user_id, id, ?1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM machines WHERE id = ?13 AND user_id = ?2 AND `+livePrincipal,
		b.Principal, b.User, b.ID, b.Template, string(metadata), b.Folder, b.Mode, ms(b.Started), ms(b.EndsAt), b.EndPauses, b.AutoResume, ttl.Milliseconds(), b.Machine))
	if errors.Is(err, ErrNotFound) {
		if live, lerr := s.PrincipalLive(ctx, b.User, b.Principal); lerr == nil && !live {
			err = ErrRevoked
		}
	}
	if err != nil {
		return Sandbox{}, fmt.Errorf("add sandbox: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, `DELETE FROM sandboxes WHERE ends_at < ?1 OR ended > 0 AND ended < ?1`, ms(s.steady().Add(-kept))); err != nil {
		return Sandbox{}, fmt.Errorf("prune sandboxes: %w", err)
	}
	return b, nil
}

// Sandbox gives a sandbox, ended or not. ErrNotFound when there is none.
func (s *Store) Sandbox(ctx context.Context, id string) (Sandbox, error) {
	return s.scanSandbox(s.sandbox.QueryRowContext(ctx, id).Scan)
}

// SetEnd moves the end of a running sandbox. ErrNotFound when none runs.
func (s *Store) SetEnd(ctx context.Context, id string, ttl time.Duration) error {
	return affected(s.db.ExecContext(ctx, `UPDATE sandboxes SET ends_at = ?, life = ? WHERE id = ? AND ended = 0 AND paused = 0`, ms(s.steady().Add(ttl)), ttl.Milliseconds(), id))
}

// Pause notes that a running sandbox stands still, and that it is given up
// after keep. ErrNotFound when none runs.
func (s *Store) Pause(ctx context.Context, id string, keep time.Duration) error {
	now := s.steady()
	return affected(s.db.ExecContext(ctx, `UPDATE sandboxes SET paused = ?1, ends_at = ?2 WHERE id = ?3 AND ended = 0 AND paused = 0 AND ends_at > ?1`, ms(now), ms(now.Add(keep)), id))
}

// Resume notes that a paused sandbox runs again, for ttl. ErrNotFound when none
// is paused.
func (s *Store) Resume(ctx context.Context, id string, ttl time.Duration) error {
	now := s.steady()
	return affected(s.db.ExecContext(ctx, `UPDATE sandboxes SET paused = 0, ends_at = ?1, life = ?2 WHERE id = ?3 AND ended = 0 AND paused > 0 AND ends_at > ?4`,
		ms(now.Add(ttl)), ttl.Milliseconds(), id, ms(now)))
}

// Unpause takes a pause back: the sandbox runs, until the end that it had.
// ErrNotFound when it is not paused.
func (s *Store) Unpause(ctx context.Context, id string, end time.Time) error {
	return affected(s.db.ExecContext(ctx, `UPDATE sandboxes SET paused = 0, ends_at = ? WHERE id = ? AND ended = 0 AND paused > 0`, ms(end), id))
}

// pauseLead is how long before the end of its time a sandbox is paused instead:
// at the end its machine ends it. A short time is not spent on that.
const pauseLead = 5 * time.Second

// PauseIn is how long until a running sandbox is to be paused at its end.
func (s *Store) PauseIn(b Sandbox) time.Duration {
	return b.EndsAt.Sub(s.steady()) - min(pauseLead, b.Life/5)
}

// NextPause gives the running sandbox that is the next to be paused at its
// end, but for those named. ErrNotFound when there is none.
func (s *Store) NextPause(ctx context.Context, but ...string) (Sandbox, error) {
	query, args := `SELECT `+sandboxColumns+` FROM sandboxes WHERE ended = 0 AND paused = 0 AND end_pauses = 1 AND ends_at > ?`, []any{ms(s.steady())}
	for _, id := range but {
		query += ` AND id <> ?`
		args = append(args, id)
	}
	return s.scanSandbox(s.db.QueryRowContext(ctx, query+` ORDER BY ends_at - min(?, life / 5) LIMIT 1`, append(args, pauseLead.Milliseconds())...).Scan)
}

// EndSandbox ends a sandbox that runs or is paused. ErrNotFound when none does.
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

// Query selects sandboxes of one principal that have not ended.
type Query struct {
	Principal  string
	Paused     bool              // those that are paused, too
	NotRunning bool              // and none that runs
	Oldest     bool              // oldest first instead of newest first
	Since      time.Time         // started at this time or later
	Template   string            // "" is any
	Metadata   map[string]string // all of these
	Limit      int               // at most this many
	// AfterID continues behind the sandbox with this start and id.
	AfterStart time.Time
	AfterID    string
}

// Sandboxes lists sandboxes that have not ended by their start.
func (s *Store) Sandboxes(ctx context.Context, q Query) ([]Sandbox, error) {
	query := `SELECT ` + sandboxColumns + ` FROM sandboxes WHERE ended = 0 AND principal = ? AND started >= ? AND ends_at > ?`
	args := []any{q.Principal, ms(q.Since), ms(s.steady())}
	if !q.Paused {
		query += ` AND paused = 0`
	}
	if q.NotRunning {
		query += ` AND paused > 0`
	}
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

// Running lists every sandbox that has not ended, paused ones too.
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
