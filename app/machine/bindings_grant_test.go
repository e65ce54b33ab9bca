package machine

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
	"golang.org/x/sys/unix"

	"localpc/app/login"
	"localpc/app/settings"
	"localpc/capabilities"
	"localpc/tunnel/wire/autogpt"
)

func fifo(path string) error { return unix.Mkfifo(path, 0o600) }

// A grant is the machine's own: it holds after a restart, for that chat on this
// machine in that folder, to the letter.
func TestGrantsAfterARestart(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	keyring.MockInit()
	t.Cleanup(keyring.MockInit)
	r := newChatRig(t)
	b := r.start("chat-1")
	restart := func() {
		ended(r.m)
		must(t, r.m.o.Store.Close())
		r.m = openMachine(t, r.m.o.Paths)
		r.join()
	}
	restore := func(chat, grant string) (autogpt.Binding, error) {
		return r.c.Restore(t.Context(), autogpt.Restore{SessionID: chat, RootGrant: grant})
	}
	restart()
	_, err := r.c.Activate(t.Context(), autogpt.Activate{SessionID: "chat-1", Revision: 1})
	wantWord(t, err, autogpt.CodeNotAttached)
	if got, err := restore("chat-1", b.RootGrant); err != nil || got != b {
		t.Fatalf("restored %+v, %v, want %+v", got, err, b)
	}
	if got, err := restore("chat-1", b.RootGrant); err != nil || got != b { // and again
		t.Errorf("%+v, %v", got, err)
	}
	must(t, r.write("chat-1", "a", "x"))
	r.cards(1) // the session's

	_, err = restore("chat-2", b.RootGrant)
	wantWord(t, err, autogpt.CodeGrantInvalid)
	version, rest, _ := strings.Cut(b.RootGrant, ".")
	text, mac, _ := strings.Cut(rest, ".")
	body, err := base64.RawURLEncoding.DecodeString(text)
	must(t, err)
	moved := base64.RawURLEncoding.EncodeToString(bytes.Replace(body, []byte("/project"), []byte("/private"), 1))
	forged := claims{AllowedRoot: r.folder, Fingerprint: b.Fingerprint, MachineID: r.m.o.Settings.Get().MachineID, Revision: 9, SessionID: "chat-1"}.sign(make([]byte, 32))
	for _, g := range []string{"", "v1", "v1.", "v1..", "v1." + text, "v1." + text + ".", "v2." + text + "." + mac, version + "." + moved + "." + mac, forged,
		b.RootGrant + "A", b.RootGrant + "=", b.RootGrant + "\n", b.RootGrant[:len(b.RootGrant)-1], strings.Replace(b.RootGrant, ".", "..", 1)} {
		_, err = restore("chat-1", g)
		wantWord(t, err, autogpt.CodeGrantInvalid)
	}
	// Of another computer that has the same secret, as a copied home has.
	must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.MachineID = "5b1f2c9a-77aa-4e0e-8c51-0d9e6b7f4a21" }))
	_, err = restore("chat-1", b.RootGrant)
	wantWord(t, err, autogpt.CodeGrantInvalid)
	must(t, r.m.o.Settings.Change(func(s *settings.Settings) { s.MachineID = claimsOf(t, b.RootGrant, r.c.secrets).MachineID }))
	if _, err := restore("chat-1", b.RootGrant); err != nil {
		t.Fatal(err)
	}
	// The folder is another one now.
	restart()
	must(t, os.Rename(r.folder, r.folder+"-old"))
	_, err = restore("chat-1", b.RootGrant)
	wantWord(t, err, autogpt.CodeGrantInvalid)
	must(t, os.Mkdir(r.folder, 0o755))
	_, err = restore("chat-1", b.RootGrant)
	wantWord(t, err, autogpt.CodeGrantInvalid)
	must(t, os.Remove(r.folder))
	must(t, os.Symlink(r.folder+"-old", r.folder))
	_, err = restore("chat-1", b.RootGrant)
	wantWord(t, err, autogpt.CodeGrantInvalid)
	must(t, os.Remove(r.folder))
	must(t, os.Rename(r.folder+"-old", r.folder))
	if _, err := restore("chat-1", b.RootGrant); err != nil {
		t.Error(err)
	}
}

func claimsOf(t *testing.T, grant string, s *secrets) claims {
	t.Helper()
	c, err := readGrant(grant, s.get(t.Context())...)
	must(t, err)
	return c
}

// Without a keychain grants hold until the program ends; one that comes back
// takes the secret over.
func TestTheSecretWithoutAKeychain(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	t.Cleanup(keyring.MockInit)
	keyring.MockInitWithError(os.ErrPermission)
	s := &secrets{keychain: login.Keychain{Machine: "m"}}
	first := s.get(t.Context())
	if len(first) != 1 || len(first[0]) != 32 || !bytes.Equal(s.get(t.Context())[0], first[0]) {
		t.Fatal("no steady secret in memory")
	}
	grant := claims{AllowedRoot: "/x", Revision: 1}.sign(first[0])
	if _, err := readGrant(grant, (&secrets{keychain: s.keychain}).get(t.Context())...); err == nil {
		t.Error("another run takes it")
	}
	keyring.MockInit()
	if got := s.get(t.Context()); !bytes.Equal(got[0], first[0]) {
		t.Error("the secret was not taken over")
	}
	if _, err := readGrant(grant, (&secrets{keychain: s.keychain}).get(t.Context())...); err != nil {
		t.Errorf("the next run does not take it: %v", err)
	}
	// One that is there and could not be read at first goes before, and both
	// count.
	keyring.MockInitWithError(os.ErrPermission)
	late := &secrets{keychain: s.keychain}
	own := late.get(t.Context())[0]
	keyring.MockInit()
	must(t, keyring.Set(login.Service, login.Keychain{Machine: "m"}.Name(login.RootGrantSecret), base64.StdEncoding.EncodeToString(first[0])))
	if got := late.get(t.Context()); len(got) != 2 || !bytes.Equal(got[0], first[0]) || !bytes.Equal(got[1], own) {
		t.Errorf("%d secrets", len(got))
	}
}

func TestFingerprintIsOfPathAndFolder(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	dirs(t, a, b)
	id := func(p string) capabilities.FileID {
		id, err := capabilities.FolderID(p)
		must(t, err)
		return id
	}
	one := fingerprintOf(a, id(a))
	if len(one) != 64 || strings.ToLower(one) != one || one != fingerprintOf(a, id(a)) {
		t.Errorf("%s is not steady", one)
	}
	if one == fingerprintOf(b, id(a)) || one == fingerprintOf(a, id(b)) {
		t.Error("another path, or another folder, has the same")
	}
}

// Whatever a hub sends as a grant is read without harm, and only what was
// signed here is taken.
func FuzzReadGrant(f *testing.F) {
	secret := bytes.Repeat([]byte{7}, 32)
	good := claims{AllowedRoot: "/home/anna/project", Fingerprint: strings.Repeat("0a", 32), IssuedAt: 1781000000, MachineID: "m", Revision: 3, SessionID: "chat"}
	grant := good.sign(secret)
	f.Add(grant)
	f.Add("v1." + strings.Repeat("A", 100) + "." + strings.Repeat("B", 43))
	f.Add(strings.ToUpper(grant))
	f.Add(strings.Replace(grant, ".", ".eyJ9.", 1))
	f.Add("v1.e30." + base64.RawURLEncoding.EncodeToString(grantMAC(secret, "e30")))
	f.Add("v1.bnVsbA." + base64.RawURLEncoding.EncodeToString(grantMAC(secret, "bnVsbA")))
	f.Fuzz(func(t *testing.T, s string) {
		c, err := readGrant(s, make([]byte, 32), secret)
		if err == nil && (s != grant || c != good) {
			t.Errorf("%q was taken as %+v", s, c)
		}
		// A body that is signed says a root and a revision, or is refused.
		if c, err := readGrant("v1."+s+"."+base64.RawURLEncoding.EncodeToString(grantMAC(secret, s)), secret); err == nil && (c.Revision < 1 || !autogpt.RootFits(c.AllowedRoot)) {
			t.Errorf("%q says %+v", s, c)
		}
	})
}
