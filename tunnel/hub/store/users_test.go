package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
)

const goodPassword = "a quiet harbour at noon"

// setUp makes the owner Ana with a password.
func setUp(t *testing.T) *Store {
	t.Helper()
	s := open(t, t.TempDir())
	token, err := s.SetupToken(t.Context())
	if err != nil || token == "" {
		t.Fatalf("set-up token %q, %v", token, err)
	}
	if _, err := s.Claim(t.Context(), token, Claim{Name: "Ana", Password: goodPassword}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetUpHappensOnce(t *testing.T) {
	s := open(t, t.TempDir())
	owner, err := s.Owner(t.Context())
	if err != nil || owner.Claimed || owner.Role != RoleOwner || owner.ID != OwnerID {
		t.Fatalf("new owner %+v, %v", owner, err)
	}
	first, _ := s.SetupToken(t.Context())
	second, _ := s.SetupToken(t.Context())
	if _, err := s.Claim(t.Context(), first, Claim{Name: "Ana", Password: goodPassword}); !errors.Is(err, ErrNotFound) {
		t.Errorf("an earlier token: %v", err)
	}
	if i, err := s.FindInvite(t.Context(), second); err != nil || i.Kind != InviteSetup || i.User.ID != OwnerID || !i.Expires.IsZero() {
		t.Errorf("%+v, %v", i, err)
	}
	// What is refused does not use the token up.
	if _, err := s.Claim(t.Context(), second, Claim{Name: "Ana", Password: "short"}); err == nil {
		t.Error("a short password was taken")
	}
	owner, err = s.Claim(t.Context(), second, Claim{Name: " Ana ", Password: goodPassword})
	if err != nil || owner.Name != "Ana" || !owner.Claimed {
		t.Fatalf("owner %+v, %v", owner, err)
	}
	if token, err := s.SetupToken(t.Context()); token != "" || err != nil {
		t.Errorf("a set-up hub gave a token: %v", err)
	}
	// The owner's reset does not open the set-up again.
	invite, err := s.ResetUser(t.Context(), OwnerID)
	if err != nil {
		t.Fatal(err)
	}
	if token, err := s.SetupToken(t.Context()); token != "" || err != nil {
		t.Errorf("after a reset the hub gave a set-up token: %v", err)
	}
	if _, err := s.LogIn(t.Context(), "Ana", goodPassword); !errors.Is(err, ErrNotFound) {
		t.Errorf("after a reset the old password: %v", err)
	}
	if _, err := s.Claim(t.Context(), invite, Claim{Password: "another quiet harbour"}); err != nil {
		t.Fatal(err)
	}
	if u, err := s.LogIn(t.Context(), "ana", "another quiet harbour"); err != nil || u.ID != OwnerID {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestInvitesAreGoodOnceAndForADay(t *testing.T) {
	s := setUp(t)
	u, invite, err := s.AddUser(t.Context(), "Bjørn")
	if err != nil || u.Role != RoleMember || u.Claimed {
		t.Fatalf("%+v, %v", u, err)
	}
	if _, _, err := s.AddUser(t.Context(), "BJØRN "); !errors.Is(err, ErrNameTaken) {
		t.Errorf("the same name in capitals: %v", err)
	}
	if i, err := s.FindInvite(t.Context(), invite); err != nil || i.Kind != InviteJoin || i.User.ID != u.ID || i.Expires.IsZero() {
		t.Errorf("%+v, %v", i, err)
	}
	steady := s.steady
	s.steady = func() time.Time { return steady().Add(25 * time.Hour) }
	if _, err := s.Claim(t.Context(), invite, Claim{Password: goodPassword}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a day later: %v", err)
	}
	s.steady = steady

	// Of many who come at once, one gets in.
	var in atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := s.Claim(context.Background(), invite, Claim{Password: goodPassword}); err == nil {
				in.Add(1)
			} else if !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if in.Load() != 1 {
		t.Errorf("%d got in with one invite", in.Load())
	}
}

func TestRemovedPeopleHaveNothing(t *testing.T) {
	s := setUp(t)
	u, invite, err := s.AddUser(t.Context(), "Bo")
	if err != nil {
		t.Fatal(err)
	}
	p := &Passkey{Credential: []byte("credential"), Name: "Phone", Data: []byte("{}")}
	if _, err := s.Claim(t.Context(), invite, Claim{Passkey: p}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddBrowser(t.Context(), Browser{ID: "b", User: u.ID, Data: []byte("x"), Expires: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveUser(t.Context(), u.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.User(t.Context(), u.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("user: %v", err)
	}
	if _, err := s.UserByHandle(t.Context(), u.Handle); !errors.Is(err, ErrNotFound) {
		t.Errorf("by passkey: %v", err)
	}
	if _, err := s.Browser(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("browser: %v", err)
	}
	// A request of theirs that was under way brings nothing back.
	b := Browser{ID: "b", User: u.ID, Data: []byte("x"), Expires: time.Now().Add(time.Hour)}
	if err := errors.Join(s.KeepBrowser(t.Context(), b), s.AddBrowser(t.Context(), b)); err != nil {
		t.Error(err)
	}
	if _, err := s.Browser(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
		t.Errorf("browser: %v", err)
	}
	if _, err := s.ResetUser(t.Context(), u.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("reset: %v", err)
	}
	if users, err := s.Users(t.Context()); err != nil || len(users) != 1 {
		t.Errorf("%v, %v", users, err)
	}
	if _, _, err := s.AddUser(t.Context(), "Bo"); err != nil {
		t.Errorf("the name is not free again: %v", err)
	}
	if err := s.RemoveUser(t.Context(), OwnerID); !errors.Is(err, ErrOwner) {
		t.Errorf("the owner: %v", err)
	}
}

func TestLogIn(t *testing.T) {
	s := setUp(t)
	for _, c := range []struct {
		name, password string
		good           bool
	}{
		{"Ana", goodPassword, true},
		{" ANA ", goodPassword, true},
		{"Ana", goodPassword + " ", false},
		{"Ana", "", false},
		{"Ana", strings.Repeat("x", 1<<20), false},
		{"Nobody", goodPassword, false},
		{"", goodPassword, false},
		{"a\x00b", "a\x00b\xff", false},
	} {
		u, err := s.LogIn(t.Context(), c.name, c.password)
		if c.good && (err != nil || u.ID != OwnerID) || !c.good && !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %+v, %v", c.name, u, err)
		}
	}
	var phc string
	if err := s.db.QueryRow(`SELECT password FROM users WHERE id = 'owner'`).Scan(&phc); err != nil || !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("password kept as %q, %v", phc, err)
	}
}

// Letters that look the same and are typed the same are the same, however a
// keyboard composes them.
func TestPasswordsAreComposed(t *testing.T) {
	s := setUp(t)
	if err := s.SetPassword(t.Context(), OwnerID, "", "ein schöner Hafen"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LogIn(t.Context(), "Ana", "ein scho\u0308ner Hafen"); err != nil {
		t.Error(err)
	}
}

func TestWeakPasswords(t *testing.T) {
	for _, p := range []string{"", "short", "elevenchars", strings.Repeat("a", 20), strings.Repeat("x", 300), "two\nlines of words", "AnaAnaAnaAna"} {
		if CheckPassword("Ana", p) == nil {
			t.Errorf("%q was taken", p)
		}
	}
	if err := CheckPassword("Ana", goodPassword); err != nil {
		t.Error(err)
	}
}

func TestUserNames(t *testing.T) {
	for _, n := range []string{"", "  ", "a\nb", "a\u202eb", "a\u200bb", "\xff", strings.Repeat("x", 61)} {
		if CheckUserName(n) == nil {
			t.Errorf("%q was taken", n)
		}
	}
	for _, n := range []string{"Ana", "Ana María", "李", "o'Neil"} {
		if err := CheckUserName(n); err != nil {
			t.Errorf("%q: %v", n, err)
		}
	}
}

func TestTheLastWayToLogInStays(t *testing.T) {
	s := setUp(t)
	if err := s.RemovePassword(t.Context(), OwnerID); !errors.Is(err, ErrLastWay) {
		t.Errorf("the only password: %v", err)
	}
	p := &Passkey{User: OwnerID, Credential: []byte("c"), Name: "Phone", Data: []byte("{}")}
	if err := s.AddPasskey(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := s.RemovePassword(t.Context(), OwnerID); err != nil {
		t.Errorf("a password beside a passkey: %v", err)
	}
	if err := s.RemovePasskey(t.Context(), OwnerID, p.ID); !errors.Is(err, ErrLastWay) {
		t.Errorf("the only passkey: %v", err)
	}
	if keys, err := s.Passkeys(t.Context(), OwnerID); err != nil || len(keys) != 1 {
		t.Errorf("%v, %v", keys, err)
	}
	if err := s.RemovePasskey(t.Context(), "somebody", p.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if err := s.UsedPasskey(t.Context(), []byte("c"), []byte(`{"n":1}`)); err != nil {
		t.Error(err)
	}
	if keys, _ := s.Passkeys(t.Context(), OwnerID); string(keys[0].Data) != `{"n":1}` || keys[0].LastUsed.IsZero() {
		t.Errorf("%+v", keys[0])
	}
}

func TestBrowsersEnd(t *testing.T) {
	s := setUp(t)
	for _, id := range []string{"one", "two", "three", "waiting"} {
		b := Browser{ID: id, User: OwnerID, Data: []byte("x"), Agent: "Agent", Address: "192.0.2.1", Expires: time.Now().Add(time.Hour)}
		if id == "waiting" {
			b.User, b.Expires = "", time.Now().Add(time.Minute)
		}
		if err := s.AddBrowser(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Browsers(t.Context(), OwnerID); err != nil || len(list) != 3 || list[0].Agent != "Agent" {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := s.EndBrowsers(t.Context(), "somebody", "", "two"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Browser(t.Context(), "two"); err != nil {
		t.Errorf("somebody else ended it: %v", err)
	}
	if err := s.EndBrowsers(t.Context(), OwnerID, "one", "two"); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.Browsers(t.Context(), OwnerID); len(list) != 2 {
		t.Errorf("%+v", list)
	}
	if err := s.EndBrowsers(t.Context(), OwnerID, "one", ""); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.Browsers(t.Context(), OwnerID); len(list) != 1 || list[0].ID != "one" {
		t.Errorf("%+v", list)
	}
	steady := s.steady
	s.steady = func() time.Time { return steady().Add(30 * time.Minute) }
	if _, err := s.Browser(t.Context(), "waiting"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its time: %v", err)
	}
	if err := s.EndBrowser(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

// A log-in that was under way when its person was reset or removed ends there.
func TestLogInWhileReset(t *testing.T) {
	s := setUp(t)
	u, invite, err := s.AddUser(t.Context(), "Bob")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), invite, Claim{Password: goodPassword}); err != nil {
		t.Fatal(err)
	}
	keep := func(id string) error {
		if err := s.AddBrowser(t.Context(), Browser{ID: id, User: u.ID, Data: []byte("x"), Expires: s.Steady().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Browser(t.Context(), id)
		return err
	}
	if _, err := s.LogIn(t.Context(), "Bob", goodPassword); err != nil {
		t.Fatal(err)
	}
	if err := keep("before"); err != nil {
		t.Errorf("a log-in: %v", err)
	}
	invite, err = s.ResetUser(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := keep("while reset"); err != ErrNotFound {
		t.Errorf("one that the reset overtook: %v", err)
	}
	key := &Passkey{Credential: []byte("c"), Name: "Phone", Data: []byte("{}")}
	if _, err := s.Claim(t.Context(), invite, Claim{Passkey: key}); err != nil {
		t.Fatal(err)
	}
	if err := keep("after"); err != nil {
		t.Errorf("after they chose anew: %v", err)
	}
	if err := s.RemoveUser(t.Context(), u.ID); err != nil {
		t.Fatal(err)
	}
	if err := keep("while removed"); err != ErrNotFound {
		t.Errorf("one that the removal overtook: %v", err)
	}
}

// Who is logged out or reset while a new way to log in is being prepared gets
// none, whatever else they are logged in with.
func TestNoWayInForWhoWasLoggedOut(t *testing.T) {
	s := setUp(t)
	ctx := t.Context()
	guest, invite, err := s.AddUser(ctx, "Guest")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(ctx, invite, Claim{Password: goodPassword}); err != nil {
		t.Fatal(err)
	}
	for id, user := range map[string]string{"hers": OwnerID, "theirs": guest.ID} {
		if err := s.AddBrowser(ctx, Browser{ID: id, User: user, Data: []byte("x"), Expires: s.Steady().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	try := func(browser string) (password, passkey error) {
		id := newID("c")
		return s.SetPassword(ctx, guest.ID, browser, "another quiet harbour"),
			s.AddPasskey(ctx, &Passkey{User: guest.ID, Browser: browser, Credential: []byte(id), Name: "Phone", Data: []byte("{}")})
	}
	if p, k := try("theirs"); p != nil || k != nil {
		t.Errorf("logged in: %v, %v", p, k)
	}
	for _, browser := range []string{"hers", "unknown"} {
		if p, k := try(browser); p != ErrNotFound || k != ErrNotFound {
			t.Errorf("with %s: %v, %v", browser, p, k)
		}
	}
	if _, err := s.ResetUser(ctx, guest.ID); err != nil {
		t.Fatal(err)
	}
	if p, k := try("theirs"); p != ErrNotFound || k != ErrNotFound {
		t.Errorf("after the reset: %v, %v", p, k)
	}
	if u, err := s.User(ctx, guest.ID); err != nil || u.Claimed {
		t.Errorf("after the reset: %+v, %v", u, err)
	}
}

// However many browsers come that log nobody in, the data stays small, and who
// is logged in stays so.
func TestStrangersAreBounded(t *testing.T) {
	s := setUp(t)
	now := s.Steady()
	if err := s.AddBrowser(t.Context(), Browser{ID: "hers", User: OwnerID, Data: []byte("x"), Expires: now.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO browsers (id, data, created, seen, expires) SELECT 'stranger ' || i, 'x', 0, 0, ? + i FROM n`, maxStrangers, ms(now.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one more", "and one"} {
		if err := s.AddBrowser(t.Context(), Browser{ID: id, Data: []byte("x"), Expires: now.Add(2 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := s.db.QueryRow(`SELECT count(*) FROM browsers WHERE user_id IS NULL`).Scan(&n); err != nil || n > maxStrangers {
		t.Errorf("%d strangers are remembered, %v", n, err)
	}
	for _, id := range []string{"hers", "one more", "and one", "stranger 10000"} {
		if _, err := s.Browser(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.Browser(t.Context(), "stranger 1"); err != ErrNotFound {
		t.Errorf("the oldest: %v", err)
	}
}

// A computer that was disconnected can be taken off the list, one that is
// paired or somebody else's cannot.
func TestForgetMachine(t *testing.T) {
	s := setUp(t)
	if _, err := s.AddMachineToken(t.Context(), OwnerID, "m1", "PC", false); err != nil {
		t.Fatal(err)
	}
	paired := func() bool {
		list, err := s.Machines(t.Context(), OwnerID)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0].Paired
	}
	if !paired() {
		t.Error("a machine with a token is not paired")
	}
	if err := s.ForgetMachine(t.Context(), OwnerID, "m1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a paired machine: %v", err)
	}
	if err := s.RevokeMachine(t.Context(), OwnerID, "m1"); err != nil {
		t.Fatal(err)
	}
	if paired() {
		t.Error("a machine without a token is paired")
	}
	if err := s.ForgetMachine(t.Context(), "somebody", "m1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("somebody else's machine: %v", err)
	}
	if err := s.ForgetMachine(t.Context(), OwnerID, "m1"); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Machines(t.Context(), OwnerID); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A name that nobody has is hashed for as one that somebody has: with the same
// cost, and after waiting for the same turn.
func TestWrongNamesCostTheSame(t *testing.T) {
	s := setUp(t)
	p, _, _, err := argon2id.DecodeHash(nobody)
	if err != nil || p.Memory != passwordParams.Memory || p.Iterations != passwordParams.Iterations || p.Parallelism != passwordParams.Parallelism || p.KeyLength != passwordParams.KeyLength {
		t.Errorf("nobody is hashed for with %+v, %v", p, err)
	}
	for range cap(hashing) {
		hashing <- struct{}{}
	}
	defer func() {
		for range cap(hashing) {
			<-hashing
		}
	}()
	for _, name := range []string{"Ana", "Nobody", "", "a\x00b"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := s.LogIn(ctx, name, "not the right words"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q did not wait for its turn: %v", name, err)
		}
		cancel()
	}
}
