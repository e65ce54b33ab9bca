package store_test

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localpc/app/store"
	"localpc/consent"
	"localpc/consent/record"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

var signing = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func openLog(t *testing.T, s *store.Store) *record.Log {
	t.Helper()
	l, err := record.Open(t.Context(), record.Options{Rows: s, Key: signing, Kept: true})
	must(t, err)
	return l
}

func verify(t *testing.T, s *store.Store) record.Report {
	t.Helper()
	rep, err := record.Verify(t.Context(), s, signing.Public().(ed25519.PublicKey))
	must(t, err)
	return rep
}

// raw opens the file as a stranger's program would.
func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "machine.db"))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestFilesArePrivate(t *testing.T) {
	old := umask(0)
	defer umask(old)
	dir := filepath.Join(t.TempDir(), "data with ? # % & 'quotes' and 世界")
	s := open(t, dir)
	must(t, openLog(t, s).Happened(t.Context(), "start", ""))
	if _, err := s.KeepOutput([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := filepath.Walk(dir, func(p string, fi os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		n++
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", p, fi.Mode())
		}
		return nil
	})
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, "machine.db")); err != nil || n < 4 {
		t.Errorf("the database is elsewhere: %v, %d files", err, n)
	}
}

func TestOpenAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, openLog(t, s).Happened(t.Context(), "start", ""))
	must(t, s.Remember(t.Context(), grant("a", "ls", consent.Always)))
	must(t, s.Close())
	s = open(t, dir)
	if rep := verify(t, s); !rep.OK || rep.Entries != 2 {
		t.Errorf("%+v", rep)
	}
	if list, err := s.Remembered(t.Context(), "", ""); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestBrokenDatabase(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "machine.db"), []byte(strings.Repeat("this is no database\n", 100)), 0o600))
	if s, err := store.Open(t.Context(), dir); err == nil {
		s.Close()
		t.Error("it opened")
	} else if !strings.Contains(err.Error(), "machine.db") {
		t.Errorf("the error %q does not say what is broken", err)
	}
	if _, err := store.OpenToRead(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no record") {
		t.Errorf("an empty directory: %v", err)
	}
}

// The record only grows: even SQL in a stranger's hands meets the triggers.
func TestAppendOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := openLog(t, s)
	must(t, l.Happened(t.Context(), "a", ""))
	must(t, l.Happened(t.Context(), "b", ""))
	db := raw(t, dir)
	for _, q := range []string{
		`UPDATE entries SET body = '{}' WHERE seq = 2`,
		`DELETE FROM entries WHERE seq = 3`,
		`DELETE FROM entries`,
		`INSERT OR REPLACE INTO entries SELECT seq, time, kind, ref, '{}', prev, hash, sig FROM entries WHERE seq = 2`,
		`INSERT INTO entries SELECT 0, time, kind, ref, body, prev, hash, sig FROM entries WHERE seq = 2`,
		`INSERT INTO entries SELECT -3, time, kind, ref, body, prev, hash, sig FROM entries WHERE seq = 2`,
		`INSERT INTO entries SELECT 9, time, kind, ref, body, prev, hash, sig FROM entries WHERE seq = 2`,
		`INSERT INTO entries SELECT NULL, time, kind, ref, body, prev, hash, sig FROM entries WHERE seq = 2`,
	} {
		if _, err := db.Exec(q); err == nil {
			t.Errorf("%s went through", q)
		}
	}
	if rep := verify(t, s); !rep.OK || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
	// With the triggers gone, the chain still tells.
	for _, q := range []string{`DROP TRIGGER entries_no_update`, `UPDATE entries SET body = '{"what":"z"}' WHERE seq = 2`} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if rep := verify(t, s); rep.OK || rep.At != 2 {
		t.Errorf("%+v", rep)
	}
}

// Every column, changed in the file itself, is found out, and the entry named.
func TestTamperedColumns(t *testing.T) {
	for column, value := range map[string]string{
		"time": `'2020-01-01T00:00:00Z'`, "kind": `'outcome'`, "ref": `'other'`, "body": `'{}'`,
		"prev": `replace(prev, substr(prev, 1, 1), 'g')`, "hash": `upper(hash) || 'A'`, "sig": `substr(sig, 3) || 'aa'`,
	} {
		dir := t.TempDir()
		s := open(t, dir)
		l := openLog(t, s)
		for i := range 4 {
			must(t, l.Decided(t.Context(), consent.Request{ID: fmt.Sprint("r", i)}, consent.Decision{Outcome: consent.Denied}))
		}
		db := raw(t, dir)
		for _, q := range []string{`DROP TRIGGER entries_no_update`, `UPDATE entries SET ` + column + ` = ` + value + ` WHERE seq = 3`} {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
		if rep := verify(t, s); rep.OK || rep.At != 3 {
			t.Errorf("%s: %+v", column, rep)
		}
	}
}

func grant(id, exact string, scope consent.Scope) consent.Stored {
	return consent.Stored{ID: id, Rule: consent.Rule{Hub: "this", Principal: "p1", Folder: "/project", Capability: "shell", Action: "run", Exact: exact, Contain: consent.Contained},
		Scope: scope, Choice: consent.Choice{Scope: scope, Contain: consent.Contained}, Name: "Claude", Created: time.Now().Truncate(time.Millisecond)}
}

func ids(t *testing.T, s *store.Store, hub, principal string) string {
	t.Helper()
	list, err := s.Remembered(t.Context(), hub, principal)
	must(t, err)
	var out []string
	for _, g := range list {
		out = append(out, g.ID)
	}
	return strings.Join(out, " ")
}

func TestGrantsComeBackAsTheyWere(t *testing.T) {
	s := open(t, t.TempDir())
	want := grant("a", "echo '\u202e\x00 “q”' && true", consent.Minutes15)
	want.Rule.Env, want.Rule.Cwd = "A=1", "/project/sub"
	want.Expires = want.Created.Add(15 * time.Minute)
	want.LastUsed = want.Created
	must(t, s.Remember(t.Context(), want))
	list, err := s.Remembered(t.Context(), "this", "p1")
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d grants", len(list))
	}
	got := list[0]
	if got.Rule != want.Rule || got.Choice != want.Choice || got.Scope != want.Scope || got.Name != want.Name || got.Deny ||
		!got.Created.Equal(want.Created) || !got.Expires.Equal(want.Expires) || !got.LastUsed.Equal(want.LastUsed) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	later := want.Created.Add(time.Minute)
	must(t, s.Used(t.Context(), "a", later))
	list, _ = s.Remembered(t.Context(), "this", "p1")
	if !list[0].LastUsed.Equal(later) {
		t.Errorf("last used %v", list[0].LastUsed)
	}
}

func TestGrants(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	session := func(id, exact, name string) consent.Stored {
		g := grant(id, exact, consent.Session)
		g.Session = name
		return g
	}
	expired := grant("old", "make", consent.Minutes15)
	expired.Expires = time.Now().Add(-time.Second)
	denied := session("no", "ls", "s1")
	denied.Deny = true
	other := grant("p2", "ls", consent.Always)
	other.Rule.Principal = "p2"
	hub := grant("hub", "ls", consent.Always)
	hub.Rule.Hub = "https://elsewhere"
	for _, g := range []consent.Stored{grant("a", "ls", consent.Always), session("s1", "ls", "s1"), session("s2", "ls", "s2"), expired, denied, other, hub} {
		must(t, s.Remember(ctx, g))
	}
	if got := ids(t, s, "this", "p1"); got != "a s1 s2 no" {
		t.Errorf("this program's: %s", got)
	}
	if got := ids(t, s, "", ""); got != "a s1 s2 no p2 hub" {
		t.Errorf("all: %s", got)
	}
	// The same rule with the same scope is replaced, by the newer answer.
	must(t, s.Remember(ctx, grant("b", "ls", consent.Always)))
	if got := ids(t, s, "this", "p1"); strings.Contains(got+" ", "a ") || !strings.Contains(got, "b") {
		t.Errorf("after a newer answer: %s", got)
	}
	must(t, s.EndSession(ctx, "s1"))
	if got := ids(t, s, "this", "p1"); got != "s2 b" {
		t.Errorf("after s1's end: %s", got)
	}
	must(t, s.Remember(ctx, expired))
	must(t, s.EndSession(ctx, ""))
	if n, err := s.Expire(ctx, time.Now()); n != 1 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	if got := ids(t, s, "this", "p1"); got != "b" {
		t.Errorf("after a restart: %s", got)
	}
	if n, err := s.Revoke(ctx, "nobody"); n != 0 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	if n, err := s.Revoke(ctx, "b"); n != 1 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	if n, err := s.Revoke(ctx, ""); n != 2 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	if got := ids(t, s, "", ""); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	s := open(t, t.TempDir())
	l := openLog(t, s)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				id := fmt.Sprintf("%d-%d", i, n)
				if err := l.Decided(context.Background(), consent.Request{ID: id}, consent.Decision{}); err != nil {
					t.Error(err)
				}
				g := grant(id, id, consent.Always)
				g.Rule.Principal = fmt.Sprint("p", i)
				if err := s.Remember(context.Background(), g); err != nil {
					t.Error(err)
				}
				if list, err := s.Remembered(context.Background(), "this", g.Rule.Principal); err != nil || len(list) != n+1 {
					t.Error(len(list), err)
				}
			}
		})
	}
	wg.Wait()
	if rep := verify(t, s); !rep.OK || rep.Entries != 161 {
		t.Errorf("%+v", rep)
	}
	if list, _ := s.Remembered(t.Context(), "", ""); len(list) != 160 {
		t.Errorf("%d grants", len(list))
	}
}

func TestQueries(t *testing.T) {
	s := open(t, t.TempDir())
	now := time.Date(2026, 5, 1, 10, 0, 0, 500_000_000, time.UTC)
	l, err := record.Open(t.Context(), record.Options{Rows: s, Key: signing, Now: func() time.Time { return now }})
	must(t, err)
	for i, what := range []string{`a "quoted" name`, "100% of a_b", "Größe"} {
		r := consent.Request{ID: fmt.Sprint("r", i), Title: what}
		must(t, l.Decided(t.Context(), r, consent.Decision{Outcome: consent.Allowed}))
		must(t, l.Finished(t.Context(), r.ID, record.Outcome{State: "done"}))
		now = now.Add(time.Second)
	}
	count := func(text string, limit int) (n int) {
		must(t, s.Newest(t.Context(), text, limit, func(consent.Entry) error { n++; return nil }))
		return n
	}
	for text, want := range map[string]int{"": 6, "QUOTED": 1, "100% of": 1, "a_b": 1, "%": 1, "_b": 1, "Größe": 1, "none of them": 0} {
		if got := count(text, 100); got != want {
			t.Errorf("%q finds %d, want %d", text, got, want)
		}
	}
	if got := count("", 2); got != 2 {
		t.Errorf("limit 2 gives %d", got)
	}
	since := func(at string) (n int) {
		when, err := time.Parse(time.RFC3339Nano, at)
		must(t, err)
		must(t, s.Since(t.Context(), record.KindOutcome, when, func(consent.Entry) error { n++; return nil }))
		return n
	}
	for at, want := range map[string]int{"2026-05-01T10:00:00Z": 3, "2026-05-01T10:00:00.5Z": 3, "2026-05-01T10:00:00.6Z": 2, "2026-05-01T12:00:01.5+02:00": 2, "2026-05-01T10:00:03Z": 0} {
		if got := since(at); got != want {
			t.Errorf("since %s: %d, want %d", at, got, want)
		}
	}
	entries, err := s.EntriesByRef(t.Context(), "r1")
	if err != nil || len(entries) != 2 || entries[0].Kind != record.KindDecision {
		t.Errorf("%v, %v", entries, err)
	}
	stop := fmt.Errorf("enough")
	if err := s.EachEntry(t.Context(), 1, func(consent.Entry) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}

// Thousands of entries are verified.
func TestLongRecord(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var chain oneByOne
	l, err := record.Open(t.Context(), record.Options{Rows: &chain, Key: signing, Kept: true})
	must(t, err)
	for i := range 5_000 {
		must(t, l.Decided(t.Context(), consent.Request{ID: fmt.Sprint("r", i), Title: "Run npm test", Exact: "npm test"}, consent.Decision{Outcome: consent.Allowed, By: "mode"}))
	}
	tx, err := raw(t, dir).Begin()
	must(t, err)
	insert, err := tx.Prepare(`INSERT INTO entries VALUES (?,?,?,?,?,?,?,?)`)
	must(t, err)
	for _, e := range chain {
		_, err := insert.Exec(e.Seq, e.Time.Format(time.RFC3339Nano), e.Kind, e.Ref, string(e.Body), e.Prev, e.Hash, e.Sig)
		must(t, err)
	}
	must(t, insert.Close())
	must(t, tx.Commit())
	if rep := verify(t, s); !rep.OK || rep.Entries != 5_001 {
		t.Errorf("%+v", rep)
	}
}

// oneByOne takes entries in memory, to be written in one go.
type oneByOne []consent.Entry

func (o *oneByOne) AppendEntry(_ context.Context, e consent.Entry) error {
	*o = append(*o, e)
	return nil
}
func (o *oneByOne) LastEntry(context.Context, string) (consent.Entry, bool, error) {
	return consent.Entry{}, false, nil
}
func (o *oneByOne) EachEntry(context.Context, int64, func(consent.Entry) error) error { return nil }
func (o *oneByOne) EntriesByRef(context.Context, string) ([]consent.Entry, error)     { return nil, nil }

func TestReadWhileWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	l := openLog(t, s)
	reader, err := store.OpenToRead(dir)
	must(t, err)
	defer reader.Close()
	if err := reader.AppendEntry(t.Context(), consent.Entry{Seq: 2}); err == nil {
		t.Error("the reader writes")
	}
	if _, err := reader.Revoke(t.Context(), ""); err == nil {
		t.Error("the reader revokes")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 300 {
			if err := l.Happened(context.Background(), "tick", ""); err != nil {
				t.Error(err)
			}
		}
	})
	var last int64
	for last < 301 {
		rep := verify(t, reader)
		if !rep.OK || rep.Entries < last {
			t.Fatalf("%+v after %d", rep, last)
		}
		last = rep.Entries
	}
	wg.Wait()
}

// Two programs may come first at once.
func TestOpenAtOnce(t *testing.T) {
	for range 3 {
		dir := t.TempDir()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s, err := store.Open(context.Background(), dir)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Remember(context.Background(), grant("a", "ls", consent.Always)); err != nil {
					t.Error(err)
				}
				s.Close()
			})
		}
		wg.Wait()
	}
}

func TestSize(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Size(); n < 4096 {
		t.Errorf("a database has %d bytes", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
