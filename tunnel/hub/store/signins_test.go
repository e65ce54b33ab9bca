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
		machine := map[bool]string{true: "m-3", false: "m-4"}[i < 2]
		if err := s.BindSignIn(t.Context(), b.SignIn, machine); err != want {
			t.Errorf("bind %d: %v", i, err)
		}
	}
	if err := s.BindSignIn(t.Context(), "s-unknown", "m-1"); err != ErrNotFound {
		t.Errorf("unknown: %v", err)
	}
	// Where the person was told of the computer, two clients of it live side by
	// side; the same again does not.
	beside := signedIn(t, s, now, "owner", "ours", "m-3")
	if live, err := s.SignInLive(t.Context(), b.SignIn); len(beside.Ended) != 0 || !live || err != nil {
		t.Errorf("ended %v, live %v, %v", beside.Ended, live, err)
	}
	again := signedIn(t, s, now, "owner", "ours", "m-3")
	if len(again.Ended) != 1 || again.Ended[0] != beside.SignIn {
		t.Errorf("ended %v", again.Ended)
	}
	if err := errors.Join(s.RevokeMachine(t.Context(), "", "m-1"), s.RevokeMachine(t.Context(), "", "m-3")); err != nil {
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
	if err := s.RevokeMachine(t.Context(), "", ""); err != ErrNotFound {
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
	// Nor does it take the place of another program's computer of the same
	// person: nobody was told of that.
	own := signedIn(t, s, s.Steady(), guest.ID, "ours", "m-3")
	if err := s.BindSignIn(t.Context(), b.SignIn, "m-3"); err != ErrTaken {
		t.Errorf("another program's computer: %v", err)
	}
	mine := signedIn(t, s, s.Steady(), "owner", "theirs", "")
	if err := s.BindSignIn(t.Context(), mine.SignIn, "m-1"); err != ErrTaken {
		t.Errorf("a paired computer of one's own: %v", err)
	}
	if live, err := s.SignInLive(t.Context(), own.SignIn); err != nil || !live {
		t.Errorf("the other program's sign-in: %v, %v", live, err)
	}
	// Once that is over it may, and signing in again may always.
	if err := s.RevokeMachine(t.Context(), guest.ID, "m-3"); err != nil {
		t.Fatal(err)
	}
	if err := s.BindSignIn(t.Context(), b.SignIn, "m-3"); err != nil {
		t.Errorf("a computer that was let go: %v", err)
	}
	again := signedIn(t, s, s.Steady(), guest.ID, "theirs", "")
	if err := s.BindSignIn(t.Context(), again.SignIn, "m-3"); err != nil {
		t.Errorf("again: %v", err)
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
	refresh := a.Pair.Refresh
	if _, err := s.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO signin_tokens (hash, signin, kind, created, expires, retired) SELECT randomblob(32), ?, 'refresh', 1, ?, 1 FROM n`,
		maxRefresh-101, a.SignIn, ms(now.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		p := hourPair
		p.Access, p.Refresh = fmt.Sprint("a", i), fmt.Sprint("r", i)
		now = now.Add(time.Second)
		if _, err := s.RefreshSignIn(t.Context(), now, "ours", refresh, p); err != nil {
			t.Fatal(err)
		}
		refresh = p.Refresh
	}
	var n int
	if err := s.db.QueryRow(`SELECT count(*) FROM signin_tokens`).Scan(&n); err != nil || n > maxRefresh+maxAccess {
		t.Errorf("%d tokens are kept, %v", n, err)
	}
	if _, err := s.RefreshSignIn(t.Context(), now, "theirs", refresh, hourPair); err != ErrNotFound {
		t.Errorf("another client: %v", err)
	}
	// The next would push the first out, and a thief's flood would hide that it
	// was used twice.
	got, err := s.RefreshSignIn(t.Context(), now, "ours", refresh, hourPair)
	if !errors.Is(err, ErrTooOften) || got.SignIn != a.SignIn {
		t.Errorf("one too many: %+v, %v", got, err)
	}
	if live, _ := s.SignInLive(t.Context(), a.SignIn); live {
		t.Error("it lived on")
	}
	// Where there is room, the oldest is known for what it is.
	b := signedIn(t, s, now, "owner", "ours", "m-1")
	refresh = b.Pair.Refresh
	for i := range 1100 {
		p := hourPair
		p.Access, p.Refresh = fmt.Sprint("b", i), fmt.Sprint("s", i)
		if _, err := s.RefreshSignIn(t.Context(), now, "ours", refresh, p); err != nil {
			t.Fatal(err)
		}
		refresh = p.Refresh
	}
	if _, err := s.RefreshSignIn(t.Context(), now, "ours", b.Pair.Refresh, hourPair); !errors.Is(err, ErrReused) {
		t.Errorf("the oldest: %v", err)
	}
	if live, _ := s.SignInLive(t.Context(), b.SignIn); live {
		t.Error("it lived on after the reuse")
	}
}

// After a start with the clock set back, what is given is not older than what
// there was: it lives, and the old refresh tokens still count as used.
func TestRefreshAfterTheClockWasSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		s := open(t, t.TempDir())
		now := s.Steady()
		a := signedIn(t, s, now, "owner", "ours", "m-1")
		first, refresh := a.Pair.Refresh, a.Pair.Refresh
		for i := range 3 * maxAccess {
			if i == maxAccess+5 {
				now = now.Add(-back)
			}
			p := hourPair
			p.Access, p.Refresh = fmt.Sprint("a", i), fmt.Sprint("r", i)
			if _, err := s.RefreshSignIn(t.Context(), now, "ours", refresh, p); err != nil {
				t.Fatalf("refresh %d: %v", i, err)
			}
			if _, err := s.FindAccess(t.Context(), now, p.Access); err != nil {
				t.Fatalf("access %d: %v", i, err)
			}
			refresh = p.Refresh
		}
		var n int
		if err := s.db.QueryRow(`SELECT count(*) FROM signin_tokens WHERE kind = 'access'`).Scan(&n); err != nil || n > maxAccess {
			t.Errorf("%d access tokens are kept, %v", n, err)
		}
		if _, err := s.RefreshSignIn(t.Context(), now, "ours", first, hourPair); !errors.Is(err, ErrReused) {
			t.Errorf("the first again: %v", err)
		}
	}
}

// Who was asked for something and left the hub in the same moment gets nothing
// that outlives them.
func TestNothingForWhoLeft(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, now := t.Context(), s.Steady()
	ann, _ := people(t, s)
	wait := func(id string) {
		r := SignInRequest{ID: id, Client: "ours", Machine: "m-1", MachineName: "PC", Source: id, Redirect: "http://127.0.0.1:1/callback", Until: now.Add(time.Minute)}
		if err := s.AddSignInRequest(ctx, now, r, "", "", 0); err != nil {
			t.Fatal(err)
		}
	}
	give := func(SignInRequest) (Pair, error) {
		p := hourPair
		p.Access, p.Refresh = newSecret("a_", 16), newSecret("r_", 16)
		return p, nil
	}
	wait("before")
	wait("after")
	if _, err := s.ApproveSignIn(ctx, now, "before", ann, "code before", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveUser(ctx, ann); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RedeemCode(ctx, now, "ours", "code before", give); !errors.Is(err, ErrNotFound) {
		t.Errorf("a code from before: %v", err)
	}
	if _, err := s.ApproveSignIn(ctx, now, "after", ann, "code after", time.Minute); err != ErrNotFound {
		t.Errorf("an answer after: %v", err)
	}
	if _, err := s.AddKey(ctx, ann, "a program"); err != ErrNotFound {
		t.Errorf("a key: %v", err)
	}
	if _, err := s.AddPairingToken(ctx, ann, "a computer"); err != ErrNotFound {
		t.Errorf("a pairing token: %v", err)
	}
	if _, err := s.AddMachineToken(ctx, ann, "m-2", "a computer", false); err != ErrNotFound {
		t.Errorf("a machine token: %v", err)
	}
	for _, user := range []string{ann, ""} {
		keys, kerr := s.Keys(ctx, user)
		signIns, serr := s.SignIns(ctx, user)
		machines, merr := s.Machines(ctx, user)
		if len(keys)+len(signIns)+len(machines) != 0 || kerr != nil || serr != nil || merr != nil {
			t.Errorf("%q has %v %v %v", user, keys, signIns, machines)
		}
	}
	// The request is still there for somebody else.
	if _, err := s.ApproveSignIn(ctx, now, "after", OwnerID, "code after", time.Minute); err != nil {
		t.Error(err)
	}
}

// A computer that is disconnected between the answer and the exchange stays so.
func TestDisconnectedBeforeTheExchange(t *testing.T) {
	for name, disconnect := range map[string]func(*Store, string) error{
		"by its person": func(s *Store, user string) error { return s.RevokeMachine(context.Background(), user, "m-1") },
		"by the hub":    func(s *Store, _ string) error { return s.RevokeMachine(context.Background(), "", "m-1") },
	} {
		s := open(t, t.TempDir())
		ctx, now := t.Context(), s.Steady()
		ann, bob := people(t, s)
		signedIn(t, s, now, ann, "ours", "m-1")
		for _, device := range []bool{false, true} {
			r := SignInRequest{ID: fmt.Sprint(device), Client: "ours", Machine: "m-1", MachineName: "PC", Source: "s", Device: device, Until: now.Add(time.Minute)}
			if err := s.AddSignInRequest(ctx, now, r, "device", "user", time.Second); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ApproveSignIn(ctx, now, r.ID, ann, "code", time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.RevokeMachine(ctx, bob, "m-1"); err != ErrNotFound {
			t.Errorf("somebody else disconnects it: %v", err)
		}
		if err := disconnect(s, ann); err != nil {
			t.Fatal(err)
		}
		give := func(SignInRequest) (Pair, error) { return hourPair, nil }
		if _, err := s.RedeemCode(ctx, now, "ours", "code", give); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s, code: %v", name, err)
		}
		if _, err := s.PollDevice(ctx, now, "ours", "device", give); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s, device: %v", name, err)
		}
		if list, err := s.SignIns(ctx, ""); err != nil || len(list) != 0 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

// A pairing token ends after a day, whether the clock is set back while the hub
// runs or between two starts.
func TestPairingTokensEndEvenly(t *testing.T) {
	for name, wait := range map[string]func(s *Store, began time.Time){
		"while it runs": func(s *Store, began time.Time) {
			s.now = func() time.Time { return began.Add(-time.Hour) }
			s.steady = func() time.Time { return began.Add(25 * time.Hour) }
		},
		"between two starts": func(s *Store, began time.Time) {
			s.now = func() time.Time { return began.Add(25 * time.Hour) }
			s.steady = s.now
			if _, err := s.SweepSignIns(context.Background(), s.Steady()); err != nil {
				t.Fatal(err)
			}
			s.now = func() time.Time { return began.Add(-time.Hour) }
			s.steady = s.now
		},
	} {
		s := open(t, t.TempDir())
		line, err := s.AddPairingToken(t.Context(), OwnerID, "PC")
		if err != nil {
			t.Fatal(err)
		}
		used, err := s.AddMachineToken(t.Context(), OwnerID, "m-1", "PC", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SweepSignIns(t.Context(), s.Steady()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.FindMachineToken(t.Context(), line); err != nil {
			t.Fatalf("%s, in its time: %v", name, err)
		}
		wait(s, time.Now())
		if _, err := s.FindMachineToken(t.Context(), line); err != ErrNotFound {
			t.Errorf("%s, after its time: %v", name, err)
		}
		if _, err := s.FindMachineToken(t.Context(), used); err != nil {
			t.Errorf("%s, a computer's own: %v", name, err)
		}
	}
}

// What has run out stays dead when a later start finds the clock set back.
func TestSweptStaysDead(t *testing.T) {
	s := setUp(t)
	ctx := t.Context()
	_, invite, err := s.AddUser(ctx, "Bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddBrowser(ctx, Browser{ID: "b", User: OwnerID, Data: []byte("x"), Expires: s.Steady().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SweepSignIns(ctx, s.Steady()); err != nil {
		t.Fatal(err)
	}
	_, ierr := s.FindInvite(ctx, invite)
	_, berr := s.Browser(ctx, "b")
	if ierr != nil || berr != nil {
		t.Fatalf("swept too early: %v, %v", ierr, berr)
	}
	if _, err := s.SweepSignIns(ctx, s.Steady().Add(25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	// The clock of now is that of a start with the clock set back.
	if _, err := s.FindInvite(ctx, invite); err != ErrNotFound {
		t.Errorf("invite: %v", err)
	}
	if _, err := s.Claim(ctx, invite, Claim{Password: goodPassword}); err != ErrNotFound {
		t.Errorf("claim: %v", err)
	}
	if _, err := s.Browser(ctx, "b"); err != ErrNotFound {
		t.Errorf("browser: %v", err)
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

// A program is called what its person says; never what it calls itself, and
// never as another of their programs.
func TestWhatAProgramIsCalled(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, now := t.Context(), s.Steady()
	ann, bob := people(t, s)
	asks := func() string {
		t.Helper()
		id := newID("q")
		r := SignInRequest{ID: id, Client: "p1", MachineName: "Claude", Resource: "https://hub.example/mcp", Source: id, Redirect: "http://127.0.0.1:1/callback", Until: now.Add(time.Minute)}
		if err := s.AddSignInRequest(ctx, now, r, "", "", 0); err != nil {
			t.Fatal(err)
		}
		return id
	}
	redeem := func(id, want string) string {
		t.Helper()
		p := hourPair
		p.Access, p.Refresh = newSecret("a_", 16), newSecret("r_", 16)
		i, err := s.RedeemCode(ctx, now, "p1", "code "+id, func(SignInRequest) (Pair, error) { return p, nil })
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = "Program " + i.SignIn[1:7]
		}
		a, err := s.FindAccess(ctx, now, p.Access)
		if err != nil || a.Called != want || i.Called != want || a.Name != "Claude" {
			t.Errorf("%+v, %v; want it called %q", a, err, want)
		}
		return i.SignIn
	}
	approve := func(user, called string, want error) string {
		t.Helper()
		id := asks()
		if _, err := s.ApproveProgram(ctx, now, id, user, called, "code "+id, time.Minute); !errors.Is(err, want) {
			t.Fatalf("called %q: %v", called, err)
		}
		return id
	}
	if _, err := s.AddKey(ctx, ann, "Backup"); err != nil {
		t.Fatal(err)
	}
	approve(ann, "backup", ErrCalledTaken)
	redeem(approve(bob, "backup", nil), "backup")
	redeem(approve(ann, "", nil), "")
	first := redeem(approve(ann, "Helper", nil), "Helper")
	approve(ann, "HELPER", ErrCalledTaken)
	if err := s.RevokeSignIn(ctx, first, "test"); err != nil {
		t.Fatal(err)
	}
	redeem(approve(ann, "Helper", nil), "Helper")
	// Two that were answered before either came for its tokens.
	one, two := approve(ann, "Twin", nil), approve(ann, "Twin", nil)
	redeem(one, "Twin")
	redeem(two, "")
	list, err := s.SignIns(ctx, bob)
	if err != nil || len(list) != 1 || list[0].Called != "backup" || list[0].Name != "Claude" {
		t.Errorf("%+v, %v", list, err)
	}
}
