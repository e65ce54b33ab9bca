package store

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// people makes two users besides the owner.
func people(t *testing.T, s *Store) (ann, bob string) {
	t.Helper()
	for _, id := range []string{"ann", "bob"} {
		if _, err := s.db.Exec(`INSERT INTO users (id, name, created) VALUES (?, ?, 0)`, id, id); err != nil {
			t.Fatal(err)
		}
	}
	return "ann", "bob"
}

func TestEachUserHasTheirOwn(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	ann, bob := people(t, s)
	ka, err := s.AddKey(ctx, ann, "Ann's")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddKey(ctx, bob, "Bob's"); err != nil {
		t.Fatal(err)
	}
	if keys, err := s.Keys(ctx, ann); err != nil || len(keys) != 1 || keys[0].ID != ka.ID || keys[0].User != ann {
		t.Errorf("Ann's keys: %+v, %v", keys, err)
	}
	if keys, err := s.Keys(ctx, ""); err != nil || len(keys) != 2 {
		t.Errorf("everybody's keys: %+v, %v", keys, err)
	}
	if err := s.RevokeKey(ctx, bob, ka.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("Bob revokes Ann's key: %v", err)
	}
	if k, err := s.FindKey(ctx, ka.Secret); err != nil || k.User != ann {
		t.Errorf("Ann's key: %+v, %v", k, err)
	}
	if err := s.RevokeKey(ctx, ann, ka.ID); err != nil {
		t.Errorf("Ann revokes her key: %v", err)
	}
	if _, err := s.AddMachineToken(ctx, ann, "m1", "Ann's PC", false); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Machines(ctx, bob); err != nil || len(list) != 0 {
		t.Errorf("Bob sees %+v, %v", list, err)
	}
	if err := s.RevokeMachine(ctx, bob, "m1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Bob revokes Ann's computer: %v", err)
	}
	if _, err := s.AddSandbox(ctx, Sandbox{ID: "i1", User: bob, Machine: "m1", Principal: OwnPrincipal}, time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("Bob's sandbox on Ann's computer: %v", err)
	}
}

// A computer is taken over by nobody while its user holds it, and by anybody
// who can prove to have it once they let it go; then what was open there ends.
func TestAComputerChangesHands(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	ann, bob := people(t, s)
	if _, err := s.AddMachineToken(ctx, ann, "m1", "PC", false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordHead(ctx, "m1", 5, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddSandbox(ctx, Sandbox{ID: "i1", User: ann, Machine: "m1", Principal: OwnPrincipal}, time.Hour); err != nil {
		t.Fatal(err)
	}
	pair, err := s.AddPairingToken(ctx, bob, "Mine now")
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.FindMachineToken(ctx, pair)
	if err != nil || token.User != bob || token.Machine != "" {
		t.Fatalf("%+v, %v", token, err)
	}
	if err := s.Bind(ctx, token.ID, "m1"); !errors.Is(err, ErrTaken) {
		t.Errorf("Bob pairs Ann's computer: %v", err)
	}
	if _, err := s.AddMachineToken(ctx, bob, "m1", "PC", false); !errors.Is(err, ErrTaken) {
		t.Errorf("Bob's token for Ann's computer: %v", err)
	}
	if _, err := s.Connected(ctx, Machine{ID: "m1", User: bob}); !errors.Is(err, ErrTaken) {
		t.Errorf("Ann's computer connects as Bob's: %v", err)
	}
	if b, err := s.Sandbox(ctx, "i1"); err != nil || b.Ended || b.User != ann {
		t.Errorf("Ann's sandbox after that: %+v, %v", b, err)
	}
	if err := s.RevokeMachine(ctx, ann, "m1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Bind(ctx, token.ID, "m1"); err != nil {
		t.Fatalf("Bob pairs it after Ann let it go: %v", err)
	}
	if b, err := s.Sandbox(ctx, "i1"); err != nil || !b.Ended {
		t.Errorf("Ann's sandbox on what is Bob's now: %+v, %v", b, err)
	}
	if _, err := s.Connected(ctx, Machine{ID: "m1", User: bob}); err != nil {
		t.Error(err)
	}
	// Its record starts anew: the hub kept Ann's word about hers.
	if follows, err := s.RecordHead(ctx, "m1", 1, "y"); err != nil || !follows {
		t.Errorf("record: %v, %v", follows, err)
	}
	if list, err := s.Machines(ctx, ann); err != nil || len(list) != 0 {
		t.Errorf("Ann still sees %+v, %v", list, err)
	}
}

// Data from before there were people is the owner's.
func TestDataFromBefore(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	secret := newSecret(KeyPrefix, 20)
	err := withFile(ctx, filepath.Join(dir, dbName), func(db *sql.DB) error {
		p, err := migrator(db)
		if err != nil {
			return err
		}
		if _, err := p.UpTo(ctx, 1); err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, `INSERT INTO tokens (id, user_id, kind, hash, prefix, name, created) VALUES ('k1', 'owner', 'key', ?1, 'e2b_', 'Old', 1);
			INSERT INTO machines (id, user_id, name, created) VALUES ('m1', 'owner', 'PC', 1);
			INSERT INTO sandboxes (id, machine, principal, template, metadata, folder, mode, started, ends_at) VALUES ('i1', 'm1', 'k1', 'base', '{}', '/p', 'work', 1, ?2)`,
			hash(secret), ms(time.Now().Add(time.Hour)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if k, err := s.FindKey(ctx, secret); err != nil || k.User != OwnerID {
		t.Errorf("the key: %+v, %v", k, err)
	}
	if list, err := s.Machines(ctx, OwnerID); err != nil || len(list) != 1 {
		t.Errorf("the computers: %+v, %v", list, err)
	}
	if b, err := s.Sandbox(ctx, "i1"); err != nil || b.User != OwnerID || b.Ended {
		t.Errorf("the sandbox: %+v, %v", b, err)
	}
}

// Who was shut out gets no sandbox, though its person agreed a moment ago.
func TestWhoIsShutOutOpensNothing(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	ann, bob := people(t, s)
	if _, err := s.AddMachineToken(ctx, ann, "m1", "PC", false); err != nil {
		t.Fatal(err)
	}
	var token string
	if err := s.db.QueryRow(`SELECT id FROM tokens WHERE kind = 'machine'`).Scan(&token); err != nil {
		t.Fatal(err)
	}
	key, err := s.AddKey(ctx, ann, "Agent")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.AddKey(ctx, bob, "Bob's")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`INSERT INTO signins (id, user_id, client, scope, resource, created) VALUES ('s1', ?, 'p1', '', 'https://hub.example/mcp', 1)`, ann); err != nil {
		t.Fatal(err)
	}
	add := func(principal string) error {
		b, err := s.AddSandbox(ctx, Sandbox{ID: newID("i"), User: ann, Machine: "m1", Principal: principal}, time.Hour)
		if live, lerr := s.PrincipalLive(ctx, ann, principal); lerr != nil || live != (err == nil) {
			t.Errorf("%q is live: %v, %v", principal, live, lerr)
		}
		if err == nil {
			if b, err := s.Sandbox(ctx, b.ID); err != nil || b.Ended || b.Principal != principal {
				t.Errorf("%+v, %v", b, err)
			}
		}
		return err
	}
	for _, good := range []string{key.ID, "s1", OwnPrincipal} {
		if err := add(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if _, err := s.AddSandbox(ctx, Sandbox{ID: "elsewhere", User: ann, Machine: "m2", Principal: key.ID}, time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("on no computer of hers: %v", err)
	}
	if err := errors.Join(s.RevokeKey(ctx, ann, key.ID), s.RevokeSignIn(ctx, "s1", "test")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{key.ID, "s1", other.ID, token, "", "k1"} {
		if err := add(bad); !errors.Is(err, ErrRevoked) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A program that signed in before programs had names of their person's has one
// that says nothing; a computer has none.
func TestProgramsFromBefore(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	err := withFile(ctx, filepath.Join(dir, dbName), func(db *sql.DB) error {
		p, err := migrator(db)
		if err != nil {
			return err
		}
		if _, err := p.UpTo(ctx, 8); err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, `INSERT INTO signins (id, user_id, client, scope, name, resource, created) VALUES
			('s0123456789abcdef', 'owner', 'p1', '', 'Claude', 'https://hub.example/mcp', 1), ('sfedcba9876543210', 'owner', 'ours', '', 'PC', '', 2)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	list, err := s.SignIns(ctx, OwnerID)
	if err != nil || len(list) != 2 || list[0].Called != calledNothing(list[0].ID) || list[0].Name != "Claude" || list[1].Called != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
