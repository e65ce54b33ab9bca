package machine

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/app/snapshot"
	"localpc/tunnel/hub"
)

const vaultPassphrase = "korrekt pferd batterie"

// again restarts the machine, with what keeps its secrets.
func (p *paired) again(k Keychain, unkept error) {
	p.t.Helper()
	runs := func(s snapshot.Snapshot) bool { return s.Record.OK }
	p.until("it runs", runs)
	p.quit()
	p.m = openMachine(p.t, p.m.o.Paths, func(o *Options) { o.Keychain, o.Unkept = k, unkept })
	p.run()
	p.t.Cleanup(p.quit) // before its store is closed
	p.until("it runs", runs)
}

// A computer without a keychain signs in by code, renews, and goes on after a
// restart, with an encrypted file; while that is locked it says so, and leaves
// it as it is.
func TestOwnHubWithAnEncryptedFile(t *testing.T) {
	a, p := newOwnHub(t, func(o *hub.Options) { o.AccessTTL = 2 * time.Second }), newPaired(t)
	keyring.MockInitWithError(errors.New("there is none"))
	path := p.m.o.Paths.Secrets()
	// An empty one that opens quickly: the usual way from a passphrase takes
	// seconds under the race detector, and login's tests go it.
	empty, err := os.ReadFile("testdata/quick.age")
	must(t, err)
	must(t, os.WriteFile(path, empty, 0o600))
	v, err := login.OpenVault(path, vaultPassphrase)
	must(t, err)
	p.again(v, nil)
	done := p.pair(snapshot.Intent{Text: a.url, Way: "code"})
	body := a.post("/pair", url.Values{"code": {p.stage(snapshot.SignInCode).UserCode}}, "")
	a.post("/pair/answer", url.Values{"request": {requestField.FindStringSubmatch(body)[1]}, "answer": {"yes"}, "started": {"yes"}}, "")
	p.says(done, "Paired")
	s := p.online()
	if s.Hub.SignIn != "kept in an encrypted file" || s.Secrets != "in an encrypted file" || len(s.Warnings) != 0 {
		t.Errorf("it shows %+v, %q, %q", s.Hub, s.Secrets, s.Warnings)
	}
	first, err := p.tokens(a.url)
	must(t, err)
	p.until("renewed", func(snapshot.Snapshot) bool {
		now, err := p.tokens(a.url)
		return err == nil && now.Access != first.Access && !now.Begun
	})
	p.quit()
	if v, err = login.OpenVault(path, vaultPassphrase); err != nil {
		t.Fatal(err)
	}
	p.again(v, nil)
	p.online()
	p.quit()

	kept, err := os.ReadFile(path)
	must(t, err)
	locked := login.LockedVault(path)
	p.again(locked, locked.Check(t.Context()))
	s = p.until("the problem", func(s snapshot.Snapshot) bool { return s.Problem != "" })
	if !strings.Contains(s.Problem, "is locked") || !strings.Contains(s.Problem, "--passphrase-file FILE") || s.Secrets != "in an encrypted file, which is locked" {
		t.Errorf("it shows %q, %q", s.Problem, s.Secrets)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "keys that last until it ends") {
		t.Errorf("it warns %q", s.Warnings)
	}
	began := time.Now()
	p.says(p.pair(snapshot.Intent{Text: a.url, Way: "code"}), "--passphrase-file FILE")
	p.says(p.pair(snapshot.Intent{Text: a.url + "#a-token"}), "--passphrase-file FILE")
	if _, err := p.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.CheckSecrets}); err == nil || !strings.Contains(err.Error(), "--passphrase-file FILE") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the refusals took %s", took)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, kept) {
		t.Errorf("the locked file is another one now (%v)", err)
	}
	if v, err = login.OpenVault(path, vaultPassphrase); err != nil {
		t.Fatal(err)
	}
	p.again(v, nil)
	p.online()
	// A file that can't be written is told as such.
	must(t, os.MkdirAll(path+".new/in the way", 0o700))
	p.says(p.pair(snapshot.Intent{Text: a.url, Way: "code"}), "can't be written")
}

// The hub inside works while the file is locked, with a token in memory; what
// the file has stays good.
func TestHubInsideWithALockedFile(t *testing.T) {
	m := newMachine(t)
	m.o.Hub, m.o.Keychain = &fakeHub{}, login.LockedVault(m.o.Paths.Secrets())
	for range 2 {
		if got, err := m.link.token(t.Context()); err != nil || got != "token 1" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if w := m.Snapshot().Warnings; len(w) != 1 || !strings.Contains(w[0], "is locked") || !strings.Contains(w[0], "--passphrase-file FILE") {
		t.Errorf("it warns %q", w)
	}
	if secrets := (&secrets{keychain: m.o.Keychain}).get(t.Context()); len(secrets) != 1 || len(secrets[0]) != 32 {
		t.Error("no secret for grants")
	}
}

// Every sentence about a keychain that is missing says that there is another
// way, and nothing is in the keychain unless it can be.
func TestWithoutAKeychainTheFileIsNamed(t *testing.T) {
	p := newPaired(t)
	keyring.MockInitWithError(errors.New("there is none"))
	kerr := login.Keychain{Machine: "m"}.Check(context.Background())
	p.again(nil, kerr)
	p.says(p.pair(snapshot.Intent{Text: "http://127.0.0.1:1"}), "localpc secrets file")
	s := p.m.Snapshot()
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "localpc secrets file") || s.Secrets != "in memory, until this program ends" {
		t.Errorf("it warns %q, and has secrets %q", s.Warnings, s.Secrets)
	}
	if _, err := p.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.CheckSecrets}); err == nil || !strings.Contains(err.Error(), "localpc secrets file") {
		t.Errorf("%v", err)
	}
	if err := signInError(kerr); !strings.Contains(err.Error(), "localpc secrets file") {
		t.Errorf("%v", err)
	}
	keyring.MockInit()
	if r, err := p.m.Intend(t.Context(), snapshot.Intent{Kind: snapshot.CheckSecrets}); err != nil || r.Text != "kept in the keychain" {
		t.Errorf("%+v, %v", r, err)
	}
	if got := p.m.o.Keychain; got != (login.Keychain{Machine: p.m.o.Settings.Get().MachineID}) {
		t.Errorf("without a choice it is %+v", got)
	}
	if p.m.o.Settings.Get().Secrets != settings.SecretsKeychain {
		t.Error("the settings chose something")
	}
}
