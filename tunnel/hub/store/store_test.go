package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Two programs may start on new data at the same moment: a hub and key add.
func TestOpenAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "hub")
	var wg sync.WaitGroup
	secrets := make(chan string, 8)
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.AddKey(context.Background(), OwnerID, "Test"); err != nil {
				t.Error(err)
			}
			secrets <- string(s.Secret())
		})
	}
	wg.Wait()
	close(secrets)
	first := <-secrets
	for s := range secrets {
		if s != first {
			t.Error("two openers have different secrets")
		}
	}
	if keys, err := open(t, dir).Keys(t.Context(), ""); err != nil || len(keys) != 8 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory mode %v, %v", info.Mode(), err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f, info.Mode())
		}
	}
}

func TestOpenBadData(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, secretName), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged secret: %v", err)
	}
	newer := t.TempDir()
	s := open(t, newer)
	if _, err := s.db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), newer); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("data of a newer program: %v", err)
	}
	junk := t.TempDir()
	if err := os.WriteFile(filepath.Join(junk, dbName), []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), junk); err == nil || !strings.Contains(err.Error(), junk) {
		t.Errorf("a file that is no database: %v", err)
	}
}

func TestTokens(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	now := time.Now()
	s.now = func() time.Time { return now }
	k, err := s.AddKey(ctx, OwnerID, " Test ")
	if err != nil || k.Name != "Test" || !strings.HasPrefix(k.Secret, k.Prefix) {
		t.Fatalf("%+v, %v", k, err)
	}
	if found, err := s.FindKey(ctx, k.Secret); err != nil || found.ID != k.ID {
		t.Errorf("find: %+v, %v", found, err)
	}
	token, err := s.AddMachineToken(ctx, OwnerID, "m1", "Mac-1", false)
	if err != nil {
		t.Fatal(err)
	}
	// A key is no machine's token, nor the reverse.
	if _, err := s.FindKey(ctx, token); !errors.Is(err, ErrNotFound) {
		t.Errorf("a token as a key: %v", err)
	}
	if _, err := s.FindMachineToken(ctx, k.Secret); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key as a token: %v", err)
	}
	again, err := s.AddMachineToken(ctx, OwnerID, "m1", "Mac-1", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindMachineToken(ctx, token); !errors.Is(err, ErrNotFound) {
		t.Errorf("an earlier token: %v", err)
	}
	if m, err := s.FindMachineToken(ctx, again); err != nil || m.Machine != "m1" {
		t.Errorf("the new token: %q, %v", m, err)
	}
	// A pairing token is good for a day.
	pair, err := s.AddPairingToken(ctx, OwnerID, "Laptop")
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.FindMachineToken(ctx, pair)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	if _, err := s.FindMachineToken(ctx, pair); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pairing token, a day later: %v", err)
	}
	now = now.Add(-25 * time.Hour)
	if err := s.Bind(ctx, found.ID, "m1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Bind(ctx, found.ID, "m2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("bound twice: %v", err)
	}
	if _, err := s.FindMachineToken(ctx, again); !errors.Is(err, ErrNotFound) {
		t.Errorf("the token before the pairing: %v", err)
	}
	now = now.Add(1000 * time.Hour)
	if m, err := s.FindMachineToken(ctx, pair); err != nil || m.Machine != "m1" {
		t.Errorf("bound, much later: %q, %v", m, err)
	}
	if err := s.RevokeMachine(ctx, OwnerID, "m1"); err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeMachine(ctx, OwnerID, "m1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestPresence(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	now := time.Now()
	s.now = func() time.Time { return now }
	online := func() bool {
		t.Helper()
		m, err := s.Machines(ctx, OwnerID)
		if err != nil || len(m) != 1 {
			t.Fatal(m, err)
		}
		return m[0].Online
	}
	first, err := s.Connected(ctx, Machine{ID: "m1", User: OwnerID, Name: "Mac-1"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Connected(ctx, Machine{ID: "m1", User: OwnerID, Name: "Mac-1"})
	if err != nil || second <= first {
		t.Fatalf("epochs %d, %d, %v", first, second, err)
	}
	// The end of the older connection comes late, and changes nothing.
	if err := s.Disconnected(ctx, "m1", first); err != nil || !online() {
		t.Errorf("after the older one's end: online %v, %v", online(), err)
	}
	// A hub that was killed says nothing any more.
	now = now.Add(2 * Fresh)
	if online() {
		t.Error("online without a word for long")
	}
	if err := s.Seen(ctx, "m1", second); err != nil || !online() {
		t.Errorf("after a word: %v", err)
	}
	if err := s.ResetPresence(ctx); err != nil || online() {
		t.Errorf("after the start of a hub: %v", err)
	}
}

func TestSandboxesAreForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	now := time.Now()
	s.steady = func() time.Time { return now }
	if _, err := s.Connected(ctx, Machine{ID: "m1", User: OwnerID}); err != nil {
		t.Fatal(err)
	}
	old, err := s.AddSandbox(ctx, Sandbox{ID: "i1", User: OwnerID, Machine: "m1", Principal: OwnPrincipal}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if b, err := s.Sandbox(ctx, old.ID); err != nil || !b.Ended {
		t.Errorf("past its time: %+v, %v", b, err)
	}
	if err := s.EndSandbox(ctx, old.ID, "x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("ended after its time: %v", err)
	}
	now = now.Add(2 * kept)
	if _, err := s.AddSandbox(ctx, Sandbox{ID: "i2", User: OwnerID, Machine: "m1", Principal: OwnPrincipal}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sandbox(ctx, old.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("long ended: %v", err)
	}
	if b, err := s.Sandbox(ctx, "i2"); err != nil || b.Ended {
		t.Errorf("the new one: %+v, %v", b, err)
	}
}

// A token for a machine's memory ends its like, and leaves the kept one good;
// a kept one, and a revocation, end them all.
func TestPassingTokens(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mint := func(passing bool) string {
		t.Helper()
		token, err := s.AddMachineToken(ctx, OwnerID, "m1", "Mac-1", passing)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	good := func(want bool, tokens ...string) {
		t.Helper()
		for i, token := range tokens {
			if _, err := s.FindMachineToken(ctx, token); (err == nil) != want {
				t.Errorf("token %d: %v", i, err)
			}
		}
	}
	kept := mint(false)
	first := mint(true)
	second := mint(true)
	good(true, kept, second)
	good(false, first)
	next := mint(false)
	good(true, next)
	good(false, kept, second)
	last := mint(true)
	if err := s.RevokeMachine(ctx, OwnerID, "m1"); err != nil {
		t.Fatal(err)
	}
	good(false, next, last)
}

// Setting the computer's clock ends no sandbox, and makes none longer.
func TestSandboxesKeepTheirTimeWhenTheClockIsSet(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AddMachineToken(ctx, OwnerID, "m1", "Mac-1", false); err != nil {
		t.Fatal(err)
	}
	even := time.Now()
	s.steady = func() time.Time { return even }
	if _, err := s.AddSandbox(ctx, Sandbox{ID: "sb1", User: OwnerID, Machine: "m1", Principal: OwnPrincipal}, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, jump := range []time.Duration{365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		s.now = func() time.Time { return time.Now().Add(jump) }
		if b, err := s.Sandbox(ctx, "sb1"); err != nil || b.Ended {
			t.Errorf("the clock is set by %s: %+v, %v", jump, b, err)
		}
	}
	even = even.Add(time.Hour)
	if b, err := s.Sandbox(ctx, "sb1"); err != nil || !b.Ended {
		t.Errorf("an hour later: %+v, %v", b, err)
	}
}
