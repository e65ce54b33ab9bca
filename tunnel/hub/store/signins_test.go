package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

var hourPair = Pair{AccessFor: time.Hour, RefreshFor: 30 * 24 * time.Hour}

// signedIn goes the whole way of a browser for a user.
func signedIn(t *testing.T, s *Store, now time.Time, user, client, machine string) Issued {
	t.Helper()
	p := hourPair
	p.Access, p.Refresh = newSecret("a_", 16), newSecret("r_", 16)
	id, code := newID("q"), newSecret("c_", 16)
	r := SignInRequest{ID: id, Client: client, Scopes: []string{"one", "two"}, Machine: machine, MachineName: "Mac-1", System: "Debian", Address: "192.0.2.1",
		Source: id, Redirect: "http://127.0.0.1:1/callback", Nonce: "n", Until: now.Add(time.Minute)}
	if err := s.AddSignInRequest(t.Context(), now, r, "", "", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ApproveSignIn(t.Context(), now, id, user, code, time.Minute); err != nil {
		t.Fatal(err)
	}
	issued, err := s.RedeemCode(t.Context(), now, client, code, func(got SignInRequest) (Pair, error) {
		if got.Redirect != r.Redirect || got.Machine != machine {
			t.Errorf("request %+v", got)
		}
		return p, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func TestSignIns(t *testing.T) {
	s := open(t, t.TempDir())
	now := s.Steady()
	guest, _, err := s.AddUser(t.Context(), "Guest")
	if err != nil {
		t.Fatal(err)
	}
	a := signedIn(t, s, now, "owner", "ours", "m-1")
	b := signedIn(t, s, now, "owner", "theirs", "")
	c := signedIn(t, s, now, guest.ID, "ours", "m-2")
	mine, err := s.SignIns(t.Context(), "owner")
	if err != nil || len(mine) != 2 || mine[0].Name != "Mac-1" || mine[0].System != "Debian" || mine[0].Address != "192.0.2.1" || len(mine[0].Scopes) != 2 || mine[0].Created.IsZero() {
		t.Errorf("%+v, %v", mine, err)
	}
	if all, err := s.SignIns(t.Context(), ""); err != nil || len(all) != 3 {
		t.Errorf("%d, %v", len(all), err)
	}
	// The first computer keeps a sign-in, and nobody gets another's computer.
	if err := s.BindSignIn(t.Context(), b.SignIn, "m-2"); err != ErrTaken {
		t.Errorf("another's computer: %v", err)
	}
	for i, want := range []error{nil, nil, ErrNotFound} {
		machine := map[bool]string{true: "m-1", false: "m-3"}[i < 2]
		if err := s.BindSignIn(t.Context(), b.SignIn, machine); err != want {
			t.Errorf("bind %d: %v", i, err)
		}
	}
	if err := s.BindSignIn(t.Context(), "s-unknown", "m-1"); err != ErrNotFound {
		t.Errorf("unknown: %v", err)
	}
	// Two clients of one computer live side by side; the same again does not.
	if live, err := s.SignInLive(t.Context(), a.SignIn); !live || err != nil {
		t.Errorf("live %v, %v", live, err)
	}
	again := signedIn(t, s, now, "owner", "ours", "m-1")
	if len(again.Ended) != 1 || again.Ended[0] != a.SignIn {
		t.Errorf("ended %v", again.Ended)
	}
	if err := s.RevokeMachineSignIns(t.Context(), "m-1"); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []Issued{a, b, again} {
		if live, _ := s.SignInLive(t.Context(), gone.SignIn); live {
			t.Error("it outlived its computer's disconnection")
		}
		if _, err := s.FindAccess(t.Context(), now, gone.Pair.Access); err != ErrNotFound {
			t.Errorf("its token: %v", err)
		}
	}
	if _, err := s.FindAccess(t.Context(), now, c.Pair.Access); err != nil {
		t.Errorf("another's: %v", err)
	}
	if err := s.RevokeSignIn(t.Context(), a.SignIn, "twice"); err != ErrNotFound {
		t.Errorf("revoked twice: %v", err)
	}
	// One without a computer is nobody's by accident.
	d := signedIn(t, s, now, "owner", "theirs", "")
	if err := s.RevokeMachineSignIns(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if live, _ := s.SignInLive(t.Context(), d.SignIn); !live {
		t.Error("a sign-in without a computer was ended with them")
	}
	// A removed person's sign-ins go with them.
	if err := s.RemoveUser(t.Context(), guest.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindAccess(t.Context(), now, c.Pair.Access); err != ErrNotFound {
		t.Errorf("after the person was removed: %v", err)
	}
}

// A machine that is paired with an owner's token cannot be taken by a sign-in
// of another, and the other way round.
func TestSignInAndMachineToken(t *testing.T) {
	s := open(t, t.TempDir())
	guest, _, err := s.AddUser(t.Context(), "Guest")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMachineToken(t.Context(), "owner", "m-1", "Mac-1", false); err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, s, s.Steady(), guest.ID, "theirs", "")
	if err := s.BindSignIn(t.Context(), b.SignIn, "m-1"); err != ErrTaken {
		t.Errorf("a paired computer: %v", err)
	}
	signedIn(t, s, s.Steady(), guest.ID, "ours", "m-2")
	if _, err := s.AddMachineToken(t.Context(), "owner", "m-2", "Mac-2", false); err != ErrTaken {
		t.Errorf("a computer that another signed in with: %v", err)
	}
}

func TestRefreshIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	now := s.Steady()
	a := signedIn(t, s, now, "owner", "ours", "m-1")
	first, refresh := a.Pair.Refresh, a.Pair.Refresh
	for i := range maxRetired + 20 {
		p := hourPair
		p.Access, p.Refresh = fmt.Sprint("a", i), fmt.Sprint("r", i)
		now = now.Add(time.Second)
		if _, err := s.RefreshSignIn(t.Context(), now, "ours", refresh, p); err != nil {
			t.Fatal(err)
		}
		refresh = p.Refresh
	}
	var n int
	if err := s.db.QueryRow(`SELECT count(*) FROM signin_tokens`).Scan(&n); err != nil || n > maxRetired+maxAccess {
		t.Errorf("%d tokens are kept, %v", n, err)
	}
	if _, err := s.RefreshSignIn(t.Context(), now, "ours", first, hourPair); err != ErrNotFound {
		t.Errorf("the oldest: %v", err)
	}
	if _, err := s.RefreshSignIn(t.Context(), now, "theirs", refresh, hourPair); err != ErrNotFound {
		t.Errorf("another client: %v", err)
	}
	if _, err := s.RefreshSignIn(t.Context(), now, "ours", fmt.Sprint("r", maxRetired), hourPair); !errors.Is(err, ErrReused) {
		t.Errorf("a retired one: %v", err)
	}
	if live, _ := s.SignInLive(t.Context(), a.SignIn); live {
		t.Error("it lived on after the reuse")
	}
}

// The clock that tokens end by does not follow the computer's.
func TestSignInsEndEvenly(t *testing.T) {
	s := open(t, t.TempDir())
	even := time.Now()
	s.steady = func() time.Time { return even }
	a := signedIn(t, s, s.Steady(), "owner", "ours", "m-1")
	s.now = func() time.Time { return time.Now().Add(-time.Hour) }
	even = even.Add(time.Hour + time.Second)
	if _, err := s.FindAccess(t.Context(), s.Steady(), a.Pair.Access); err != ErrNotFound {
		t.Errorf("expired, with the clock set back: %v", err)
	}
	if ended, err := s.SweepSignIns(t.Context(), s.Steady()); err != nil || len(ended) != 0 {
		t.Errorf("swept %v, %v: it can still be refreshed", ended, err)
	}
	// What was swept stays dead whatever the next start's clock says.
	if _, err := s.FindAccess(t.Context(), even.Add(-time.Hour), a.Pair.Access); err != ErrNotFound {
		t.Errorf("after the sweep: %v", err)
	}
	even = even.Add(30 * 24 * time.Hour)
	if ended, err := s.SweepSignIns(t.Context(), s.Steady()); err != nil || len(ended) != 1 || ended[0] != a.SignIn {
		t.Errorf("swept %v, %v", ended, err)
	}
	s.now = func() time.Time { return time.Now().Add(61 * 24 * time.Hour) }
	if _, err := s.SweepSignIns(t.Context(), s.Steady()); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.db.QueryRow(`SELECT count(*) FROM signins`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d are remembered, %v", n, err)
	}
}

// Many answer at the same moment, one is heard.
func TestAnswerOnce(t *testing.T) {
	s := open(t, t.TempDir())
	now := s.Steady()
	r := SignInRequest{ID: "q-1", Client: "ours", Machine: "m-1", Until: now.Add(time.Minute)}
	if err := s.AddSignInRequest(t.Context(), now, r, "", "", 0); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = s.ApproveSignIn(context.Background(), now, "q-1", "owner", newSecret("c_", 16), time.Minute)
			} else {
				_, err = s.DenySignIn(context.Background(), now, "q-1")
			}
			results <- err
		})
	}
	wg.Wait()
	close(results)
	heard := 0
	for err := range results {
		switch err {
		case nil:
			heard++
		case ErrNotFound:
		default:
			t.Error(err)
		}
	}
	if heard != 1 {
		t.Errorf("%d were heard", heard)
	}
}

// All together are bounded too, and those that are over make room.
func TestWaitingIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	now := s.Steady()
	add := func(i int) error {
		return s.AddSignInRequest(t.Context(), now, SignInRequest{ID: fmt.Sprint("q", i), Source: fmt.Sprint(i), Device: true, Until: now.Add(time.Minute)},
			fmt.Sprint("d", i), fmt.Sprint("u", i), time.Second)
	}
	if _, err := s.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO signin_requests (id, status, client, scope, created, expires) SELECT 'x' || i, 'waiting', 'c', 's', ?, ? FROM n`, maxWaiting-1, ms(now), ms(now.Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	if err := add(1); err != nil {
		t.Fatal(err)
	}
	if err := add(2); err != ErrFull {
		t.Errorf("one too many: %v", err)
	}
	now = now.Add(time.Minute + told)
	if err := add(2); err != nil {
		t.Errorf("after the old ones went: %v", err)
	}
}

// A user code is not in the database as a hash that could be tried out.
func TestUserCodeIsKeyed(t *testing.T) {
	a, b := open(t, t.TempDir()), open(t, t.TempDir())
	if string(a.userCode("BBBBBBBB")) == string(b.userCode("BBBBBBBB")) {
		t.Error("two hubs keep the same code in the same way")
	}
}
