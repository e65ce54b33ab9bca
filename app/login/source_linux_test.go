package login_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"localpc/app/login"
)

const item = "hub-token https://hub.example"

// signIn is a machine's sign-in at an authority, in a real keychain.
type signIn struct {
	t *testing.T
	a *authority
	k login.Keychain
	*login.Source
	off time.Duration // of this computer's clock, for the next Source
}

func newSignIn(t *testing.T, change func(*authority), ago time.Duration) *signIn {
	startKeyring(t, startBus(t))
	s := &signIn{t: t, a: newAuthority(t), k: login.Keychain{Machine: "m1", Timeout: 3 * time.Second}}
	if change != nil {
		change(s.a)
	}
	s.a.signedIn(s.k, item, ago)
	s.restart()
	return s
}

// restart is the program's.
func (s *signIn) restart() {
	off := s.off
	s.Source = login.NewSource(login.SourceOptions{Keychain: s.k, Item: item, HTTP: hc, Now: func() time.Time { return time.Now().Add(off) }})
}

func (s *signIn) token(want string) {
	s.t.Helper()
	if got, err := s.Token(s.t.Context()); err != nil || got != want {
		s.t.Errorf("the token is %q, %v; want %q", got, err, want)
	}
}

func (s *signIn) stored() login.Tokens {
	s.t.Helper()
	t, err := login.Load(s.t.Context(), s.k, item)
	must(s.t, err)
	return t
}

func (s *signIn) asked(want int) {
	s.t.Helper()
	if n := s.a.count(); n != want {
		s.t.Errorf("the hub was asked to renew %d times, want %d", n, want)
	}
}

func (s *signIn) ends(err error) {
	s.t.Helper()
	if !errors.Is(err, login.ErrSignIn) {
		s.t.Errorf("%v, want the end of the sign-in", err)
	}
}

// Ahead of its end, once for everybody, and kept before it is used.
func TestRenewedOnceForAll(t *testing.T) {
	s := newSignIn(t, nil, 54*time.Minute)
	s.token("access-1")
	s.asked(0)
	s.a.signedIn(s.k, item, 56*time.Minute)
	s.restart()
	s.a.onRefresh = func(http.ResponseWriter) bool { time.Sleep(200 * time.Millisecond); return true }
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			got, err := s.Token(context.WithoutCancel(t.Context()))
			if err != nil || got != "access-3" {
				t.Errorf("%q, %v", got, err)
			}
			if k, err := login.Load(t.Context(), s.k, item); err != nil || k.Access != got || k.Begun {
				t.Errorf("when it is used the keychain has %+v, %v", k, err)
			}
		})
	}
	group.Wait()
	s.asked(1)
	s.restart()
	s.token("access-3")
	s.asked(1)
}

// A fifth of the life where that is shorter.
func TestRenewedInTime(t *testing.T) {
	s := newSignIn(t, func(a *authority) { a.seconds = 5 }, 0)
	began := time.Now()
	got, err := s.Fresh(t.Context(), "access-1")
	took := time.Since(began)
	if err != nil || got != "access-2" || took < 3*time.Second || took > 4900*time.Millisecond {
		t.Errorf("%q, %v after %s", got, err, took)
	}
	// Whoever has an older one gets the newest at once.
	if got, err := s.Fresh(t.Context(), "access-1"); err != nil || got != "access-2" {
		t.Errorf("%q, %v", got, err)
	}
	s.asked(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Fresh(ctx, "access-2"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A clock that is wrong by an hour, either way, neither renews all the time nor
// too late; nor does a hub whose clock is.
func TestWrongClocks(t *testing.T) {
	for name, c := range map[string]struct {
		here, there time.Duration
		absolute    bool
	}{
		"here fast": {time.Hour, 0, false}, "here slow": {-time.Hour, 0, false}, "here fast by moment": {time.Hour, 0, true},
		"here slow by moment": {-time.Hour, 0, true}, "there fast": {0, time.Hour, true}, "there slow": {0, -time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignIn(t, func(a *authority) { a.clock, a.absolute, a.seconds = c.there, c.absolute, 600 }, 595*time.Second)
			s.off = c.here
			s.restart()
			must(t, s.Rejected(t.Context(), "access-1")) // a first pair by this clock
			s.asked(1)
			for range 5 {
				s.token("access-2")
			}
			s.asked(1)
			if k := s.stored(); k.Seconds < 595 || k.Seconds > 600 {
				t.Errorf("it is held for %d s", k.Seconds)
			}
			// Set right at last, and started again: at most one renewal more.
			s.off = 0
			s.restart()
			for range 5 {
				if _, err := s.Token(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if n := s.a.count(); n > 2 {
				t.Errorf("%d renewals", n)
			}
		})
	}
}

// The hub says no to a token: one renewal, whoever hears it.
func TestRejected(t *testing.T) {
	s := newSignIn(t, nil, 0)
	s.token("access-1")
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() { must(t, s.Rejected(t.Context(), "access-1")) })
	}
	group.Wait()
	s.token("access-2")
	s.asked(1)
	must(t, s.Rejected(t.Context(), "access-1")) // an old one
	s.asked(1)
	// Another process has renewed it meanwhile.
	s.a.signedIn(s.k, item, 0)
	must(t, s.Rejected(t.Context(), "access-2"))
	s.token("access-3")
	s.asked(1)
}

// The hub ends the sign-in: it is asked once, and that is it.
func TestRevoked(t *testing.T) {
	s := newSignIn(t, nil, 0)
	s.token("access-1")
	s.a.mu.Lock()
	s.a.refresh = "another"
	s.a.mu.Unlock()
	for range 3 {
		s.ends(s.Rejected(t.Context(), "access-1"))
	}
	_, err := s.Token(t.Context())
	s.ends(err)
	s.restart()
	s.token("access-1") // not known to be bad yet
	s.ends(s.Rejected(t.Context(), "access-1"))
	_, err = s.Fresh(t.Context(), "access-1")
	s.ends(err)
	s.asked(1)
}

// An answer that is lost may have used the refresh token up: it is not sent
// again, now or after a restart; what is still good is used to its end.
func TestLostAnswer(t *testing.T) {
	for name, lose := range map[string]func(w http.ResponseWriter) bool{
		"cut off":           func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		"a gateway gave up": func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusGatewayTimeout); return false },
		"no tokens in it":   func(w http.ResponseWriter) bool { _, _ = w.Write([]byte("{}")); return false },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSignIn(t, nil, 57*time.Minute)
			s.a.onRefresh = lose
			for range 3 {
				s.token("access-1")
			}
			s.asked(1)
			s.restart()
			s.token("access-1")
			s.ends(s.Rejected(t.Context(), "access-1"))
			_, err := s.Token(t.Context())
			s.ends(err)
			s.asked(1)
			// Signing in again mends it.
			s.a.onRefresh = nil
			s.a.signedIn(s.k, item, 0)
			s.restart()
			s.token("access-2")
		})
	}
}

// A request that never went out, or that the hub put off, is made again.
func TestHubAway(t *testing.T) {
	s := newSignIn(t, nil, 57*time.Minute)
	s.a.onRefresh = func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusServiceUnavailable); return false }
	s.token("access-1")
	s.asked(1)
	// Nobody listens any more.
	away := s.stored()
	away.TokenURL = "http://127.0.0.1:1/token"
	must(t, login.Save(t.Context(), s.k, item, away))
	s.restart()
	s.token("access-1")
	if err := s.Rejected(t.Context(), "access-1"); err == nil || errors.Is(err, login.ErrSignIn) {
		t.Errorf("%v", err)
	}
	away.TokenURL = s.a.srv.URL + "/token"
	must(t, login.Save(t.Context(), s.k, item, away))
	s.a.onRefresh = nil
	must(t, s.Rejected(t.Context(), "access-1"))
	s.token("access-2")
	s.asked(2)
}

// What stands before a hub may refuse as well: only the hub's own word ends a
// sign-in.
func TestRefusedOnTheWay(t *testing.T) {
	s := newSignIn(t, nil, 57*time.Minute)
	other := newAuthority(t) // where a redirect leads
	for name, c := range map[string]struct {
		status int
		body   string
		ends   bool
	}{
		"a proxy's page":      {403, "<html><h1>403 Forbidden</h1></html>", false},
		"a log-in":            {401, "", false},
		"a proxy's JSON":      {403, `{"message":"blocked"}`, false},
		"a list":              {400, `[]`, false},
		"a damaged request":   {400, "Bad Request", false},
		"a busy hub":          {400, `{"error":"temporarily_unavailable"}`, false},
		"too many":            {429, `{"error":"invalid_grant"}`, false},
		"a redirect":          {307, `{"error":"invalid_grant"}`, false},
		"a hub":               {400, `{"error":"invalid_grant"}`, true},
		"a hub, not the same": {401, `{"error":"invalid_client"}`, true},
		"AutoGPT":             {400, `{"detail":"Invalid refresh token"}`, true},
		"AutoGPT's client":    {401, `{"detail":[{"msg":"x"}]}`, true},
	} {
		first := s.a.signedIn(s.k, item, 57*time.Minute)
		before := s.a.count()
		s.a.onRefresh = func(w http.ResponseWriter) bool {
			w.Header().Set("Location", other.srv.URL+"/token")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
			return false
		}
		s.restart()
		if got, err := s.Token(t.Context()); err != nil || got != first.Access {
			t.Errorf("%s: the token is %q, %v; it is good for a while", name, got, err)
		}
		s.a.onRefresh = nil
		s.restart()
		err := s.Rejected(t.Context(), first.Access)
		now, terr := s.Token(t.Context())
		asked := s.a.count() - before
		switch {
		case c.ends && (!errors.Is(err, login.ErrSignIn) || !errors.Is(terr, login.ErrSignIn) || asked != 1):
			t.Errorf("%s: %v, %v after %d questions, want the end", name, err, terr, asked)
		case !c.ends && (err != nil || terr != nil || now == first.Access || asked != 2):
			t.Errorf("%s: %v, %v after %d questions, want a new token", name, err, terr, asked)
		}
	}
	if n := other.count(); n != 0 {
		t.Error("a refresh token went elsewhere")
	}
}

// A keychain that stops answering while the hub renews: the new pair waits in
// memory until it is kept, and only then it is used.
func TestKeychainStopsInBetween(t *testing.T) {
	daemon := startKeyring(t, startBus(t))
	s := &signIn{t: t, a: newAuthority(t), k: login.Keychain{Machine: "m1", Timeout: 300 * time.Millisecond}}
	s.a.signedIn(s.k, item, 57*time.Minute)
	s.restart()
	s.a.onRefresh = func(http.ResponseWriter) bool { must(t, daemon.Process.Signal(syscall.SIGSTOP)); return true }
	s.token("access-1")
	s.token("access-1")
	if err := s.Rejected(t.Context(), "access-1"); !errors.Is(err, login.ErrNoKeychain) {
		t.Errorf("%v", err)
	}
	must(t, daemon.Process.Signal(syscall.SIGCONT))
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got, err := s.Token(t.Context())
		if err == nil && got == "access-2" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if k := s.stored(); k.Access != "access-2" || k.Begun {
		t.Errorf("the keychain has %+v", k)
	}
	s.asked(1)
}

// A locked keychain is said at once, nothing is asked of the hub that could not
// be kept, and it goes on when it is unlocked.
func TestLockedWhenDue(t *testing.T) {
	dir := startBus(t)
	startKeyring(t, dir)
	s := &signIn{t: t, a: newAuthority(t), k: login.Keychain{Machine: "m1", Timeout: 3 * time.Second}}
	s.a.signedIn(s.k, item, 57*time.Minute)
	s.restart()
	bus, err := dbus.Connect(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	must(t, err)
	defer bus.Close()
	var done []dbus.ObjectPath
	var prompt dbus.ObjectPath
	must(t, bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").Call("org.freedesktop.Secret.Service.Lock", 0,
		[]dbus.ObjectPath{"/org/freedesktop/secrets/aliases/default"}).Store(&done, &prompt))
	began := time.Now()
	if _, err := s.Token(t.Context()); !errors.Is(err, login.ErrNoKeychain) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if err := s.k.Check(t.Context()); !errors.Is(err, login.ErrNoKeychain) {
		t.Errorf("a locked keychain counts as usable: %v", err)
	}
	s.asked(0)
	unlock(t, bus)
	must(t, s.k.Check(t.Context()))
	s.token("access-2")
	s.asked(1)
}

// unlock types the password into the keyring, as its prompt would.
func unlock(t *testing.T, bus *dbus.Conn) {
	t.Helper()
	secrets := bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
	var out dbus.Variant
	var session dbus.ObjectPath
	must(t, secrets.Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&out, &session))
	password := struct {
		Session       dbus.ObjectPath
		Params, Value []byte
		Type          string
	}{session, nil, []byte("a password"), "text/plain"}
	must(t, secrets.Call("org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface.UnlockWithMasterPassword", 0,
		dbus.ObjectPath("/org/freedesktop/secrets/collection/login"), password).Err)
}

// The token of a pairing line does not end, and can't be renewed.
func TestPairingLineToken(t *testing.T) {
	startKeyring(t, startBus(t))
	s := &signIn{t: t, a: newAuthority(t), k: login.Keychain{Machine: "m1"}}
	s.restart()
	if _, err := s.Token(t.Context()); !errors.Is(err, login.ErrMissing) {
		t.Errorf("without one: %v", err)
	}
	must(t, s.k.Set(t.Context(), item, "lpm_from_a_line"))
	s.token("lpm_from_a_line")
	s.ends(s.Rejected(t.Context(), "lpm_from_a_line"))
	if err := login.Revoke(t.Context(), hc, s.stored()); err != nil {
		t.Error(err)
	}
}

func TestRevokeGivesBothBack(t *testing.T) {
	s := newSignIn(t, nil, 0)
	must(t, login.Revoke(t.Context(), hc, s.stored()))
	if got := strings.Join(s.a.revoked, ", "); got != "refresh_token refresh-1, access_token access-1" {
		t.Errorf("given back: %s", got)
	}
	gone := s.stored()
	gone.RevokeURL = "http://127.0.0.1:1/revoke"
	if err := login.Revoke(t.Context(), hc, gone); err == nil {
		t.Error("a hub that is not there was told")
	}
}
