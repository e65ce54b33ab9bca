package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"localpc/consent"
)

// GrantsVersion grows whenever grants were changed or used by this program, so
// that a list of them need not be read again and again.
func (s *Store) GrantsVersion() uint64 { return s.granted.Load() }

// execGrants writes, and has lists of grants read anew.
func (s *Store) execGrants(ctx context.Context, query string, args ...any) (sql.Result, error) {
	defer s.granted.Add(1)
	return s.exec(ctx, query, args...)
}

// Remember keeps a decision; the same rule with the same scope is replaced.
func (s *Store) Remember(ctx context.Context, g consent.Stored) error {
	choice, err := json.Marshal(g.Choice)
	if err != nil {
		return err
	}
	_, err = s.execGrants(ctx, `INSERT OR REPLACE INTO grants (id, hub, principal, session, rule, deny, scope, choice, name, created, expires, last_used)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?)`,
		g.ID, g.Rule.Hub, g.Rule.Principal, g.Session, g.Rule.Key(), g.Deny, g.Scope, string(choice), g.Name, millis(g.Created), millis(g.Expires), millis(g.LastUsed))
	return err
}

// Remembered returns what is remembered for a hub's principal and is in force;
// "" for both lists everything. What has ended by time, or was not used for
// consent.UnusedFor, is not.
func (s *Store) Remembered(ctx context.Context, hub, principal string) ([]consent.Stored, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, session, rule, deny, scope, choice, name, created, expires, last_used FROM grants
		WHERE (?1 = '' OR hub = ?1) AND (?2 = '' OR principal = ?2) AND NOT (`+over+`) ORDER BY created, rowid`,
		hub, principal, time.Now().UnixMilli(), consent.UnusedFor.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []consent.Stored
	for rows.Next() {
		var g consent.Stored
		var rule, choice string
		var created, expires, used int64
		if err := rows.Scan(&g.ID, &g.Session, &rule, &g.Deny, &g.Scope, &choice, &g.Name, &created, &expires, &used); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(rule), &g.Rule); err != nil {
			return nil, fmt.Errorf("grant %s: %w", g.ID, err)
		}
		if err := json.Unmarshal([]byte(choice), &g.Choice); err != nil {
			return nil, fmt.Errorf("grant %s: %w", g.ID, err)
		}
		g.Created, g.Expires, g.LastUsed = fromMillis(created), fromMillis(expires), fromMillis(used)
		out = append(out, g)
	}
	return out, rows.Err()
}

// over is true of what has ended: ?3 is now, ?4 how long what holds always
// lives without being used.
const over = `expires <> 0 AND expires <= ?3 OR scope = 'always' AND max(created, last_used) <= ?3 - ?4`

// Used notes when a grant was last used.
func (s *Store) Used(ctx context.Context, id string, at time.Time) error {
	_, err := s.execGrants(ctx, `UPDATE grants SET last_used = ? WHERE id = ?`, at.UnixMilli(), id)
	return err
}

// Revoke drops a grant, or all of them for "". It returns how many went.
func (s *Store) Revoke(ctx context.Context, id string) (int, error) {
	res, err := s.execGrants(ctx, `DELETE FROM grants WHERE ?1 = '' OR id = ?1`, id)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// EndSession drops what held for one session, or for the command of that id; ""
// drops what held for any.
func (s *Store) EndSession(ctx context.Context, session string) error {
	_, err := s.execGrants(ctx, `DELETE FROM grants WHERE scope IN ('session', 'command') AND (?1 = '' OR session = ?1)`, session)
	return err
}

// Expire drops what has ended by time, or was not used for consent.UnusedFor.
// It returns how many went.
//
// The clock may have been ahead, and set right since: what holds for minutes
// and was given after now could come back to life, so it goes; what holds always
// and was used after now would live until then, so that counts as used now.
func (s *Store) Expire(ctx context.Context, now time.Time) (int, error) {
	late := now.Add(time.Hour).UnixMilli() // a clock that is set right by a little
	if _, err := s.execGrants(ctx, `UPDATE grants SET created = min(created, ?1), last_used = ?1 WHERE scope = 'always' AND max(created, last_used) > ?2`, now.UnixMilli(), late); err != nil {
		return 0, err
	}
	res, err := s.execGrants(ctx, `DELETE FROM grants WHERE `+over+` OR expires <> 0 AND created > ?1`, late, nil, now.UnixMilli(), consent.UnusedFor.Milliseconds())
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

var _ consent.Book = (*Store)(nil)
