package login_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"localpc/app/login"
)

// writeUntilKilled counts an item up, one write after the other, and says each
// number that it has been told is on the disk.
func writeUntilKilled(path string) {
	v, err := login.OpenVault(path, passphrase)
	for n := 0; err == nil; n++ {
		if err = v.Set(context.Background(), "n", strconv.Itoa(n)); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Killed in the middle of its writes the file is whole each time, and has at
// least what was said to be kept.
func TestVaultOfAKilledProgram(t *testing.T) {
	_, path := newVault(t)
	self, err := os.Executable()
	must(t, err)
	for i := range 15 {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "VAULT_TO_WRITE="+path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		must(t, err)
		cmd.Stdout, cmd.Stderr = out, out
		must(t, cmd.Start())
		said := func() []string { return strings.Fields(string(read(t, out.Name()))) }
		for end := time.Now().Add(20 * time.Second); len(said()) < 3+i && time.Now().Before(end); {
			time.Sleep(time.Duration(1+i*137%997) * time.Microsecond)
		}
		must(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("it ended by itself: %s", read(t, out.Name()))
		}
		must(t, out.Close())
		lines := said()
		if len(lines) < 3 {
			t.Fatal("it has not written")
		}
		kept, err := reopened(t, path).Get(t.Context(), "n")
		must(t, err)
		n, err := strconv.Atoi(kept)
		must(t, err)
		if last, err := strconv.Atoi(lines[len(lines)-1]); err != nil || n < last || n > last+1 {
			t.Errorf("it has %d, and was told that %d is kept (%v)", n, last, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) > 2 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	must(t, reopened(t, path).Set(t.Context(), "n", "after all that"))
}

func TestRecordKeyInAVault(t *testing.T) {
	v, path := newVault(t)
	first, kept, err := login.RecordKey(t.Context(), v)
	if err != nil || !kept {
		t.Fatalf("kept %v, %v", kept, err)
	}
	again, kept, err := login.RecordKey(t.Context(), reopened(t, path))
	if err != nil || !kept || !again.Equal(first) {
		t.Errorf("the second start has another key (kept %v, %v)", kept, err)
	}
}

var moved = map[string]string{"record-key": "one", login.TokenItem("this"): "two", login.TokenItem("https://hub.example"): "three"}

// holds checks what a keeper has of the items that are moved.
func holds(t *testing.T, k login.Keeper, want map[string]string) {
	t.Helper()
	for _, name := range login.Items("this", "autogpt", "https://hub.example") {
		got, err := k.Get(t.Context(), name)
		if w, ok := want[name]; got != w || ok != (err == nil) || err != nil && !errors.Is(err, login.ErrMissing) {
			t.Errorf("%s is %q, %v; want %q", name, got, err, w)
		}
	}
}

// What is kept moves from a real keychain to a file and back, and is then in
// one of them only.
func TestMoveBothWays(t *testing.T) {
	startKeyring(t, startBus(t))
	k := login.Keychain{Machine: "m1"}
	v, path := newVault(t)
	for name, value := range moved {
		must(t, k.Set(t.Context(), name, value))
	}
	chosen := 0
	yes := func() error { chosen++; return nil }
	left, err := login.Move(t.Context(), k, v, login.Items("this", "autogpt", "https://hub.example"), yes)
	if err != nil || len(left) != 0 || chosen != 1 {
		t.Fatalf("left %v, %v", left, err)
	}
	holds(t, k, nil)
	holds(t, reopened(t, path), moved)
	left, err = login.Move(t.Context(), v, k, v.Names(), yes)
	if err != nil || len(left) != 0 || chosen != 2 {
		t.Fatalf("left %v, %v", left, err)
	}
	holds(t, k, moved)
	holds(t, reopened(t, path), nil)
}

// failing is a keeper that takes a number of changes, and no more until it is
// mended.
type failing struct {
	login.Keeper
	after  int
	mended bool
}

var errFull = errors.New("no space")

func (f *failing) Set(ctx context.Context, item, value string) error {
	if f.after--; f.after < 0 && !f.mended {
		f.mended = true
		return errFull
	}
	return f.Keeper.Set(ctx, item, value)
}

// A move that fails, wherever it does, has changed nothing on either side.
func TestMoveWholeOrNotAtAll(t *testing.T) {
	startKeyring(t, startBus(t))
	k := login.Keychain{Machine: "m1"}
	v, path := newVault(t)
	for name, value := range moved {
		must(t, k.Set(t.Context(), name, value))
	}
	before := map[string]string{"record-key": "an earlier one"}
	must(t, v.Set(t.Context(), "record-key", before["record-key"]))
	items := login.Items("this", "autogpt", "https://hub.example")
	never := func() error { t.Error("it was chosen"); return nil }
	for after := range len(moved) {
		if _, err := login.Move(t.Context(), k, &failing{Keeper: v, after: after}, items, never); !errors.Is(err, errFull) {
			t.Errorf("%v", err)
		}
		holds(t, k, moved)
		holds(t, reopened(t, path), before)
	}
	if _, err := login.Move(t.Context(), k, v, items, func() error { return errFull }); !errors.Is(err, errFull) {
		t.Errorf("settings that can't be saved: %v", err)
	}
	holds(t, k, moved)
	holds(t, reopened(t, path), before)
	// The keychain is locked: what it has can't be read, so nothing is moved.
	bus, err := dbus.Connect(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	must(t, err)
	defer bus.Close()
	var done []dbus.ObjectPath
	var prompt dbus.ObjectPath
	must(t, bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").Call("org.freedesktop.Secret.Service.Lock", 0,
		[]dbus.ObjectPath{"/org/freedesktop/secrets/aliases/default"}).Store(&done, &prompt))
	k.Timeout = time.Second
	if _, err := login.Move(t.Context(), k, v, items, never); !errors.Is(err, login.ErrNoKeychain) {
		t.Errorf("from a locked keychain: %v", err)
	}
	if _, err := login.Move(t.Context(), v, k, v.Names(), never); !errors.Is(err, login.ErrNoKeychain) {
		t.Errorf("to a locked keychain: %v", err)
	}
	holds(t, reopened(t, path), before)
}

func TestReadPassphrase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pass")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		os.Remove(path)
		must(t, os.WriteFile(path, []byte(text), mode))
		must(t, os.Chmod(path, mode))
	}
	refused := func(words string) {
		t.Helper()
		if got, err := login.ReadPassphrase(path); err == nil || got != "" || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), passphrase) {
			t.Errorf("%q, %v; want %q", got, err, words)
		}
	}
	for _, text := range []string{passphrase, passphrase + "\n", passphrase + "\r\n", passphrase + "\n\n"} {
		for _, mode := range []os.FileMode{0o600, 0o400} {
			write(text, mode)
			if got, err := login.ReadPassphrase(path); err != nil || got != passphrase {
				t.Errorf("%q is %q, %v", text, got, err)
			}
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o644, 0o601} {
		write(passphrase, mode)
		refused("chmod 600 " + path)
	}
	write("", 0o600)
	refused("no passphrase")
	write("\n"+passphrase, 0o600)
	refused("more than one line")
	write(passphrase+"\nanother\n", 0o600)
	refused("more than one line")
	write(strings.Repeat("x", 5000), 0o600)
	refused("more than one line")
	os.Remove(path)
	refused("can't be read")
	must(t, syscall.Mkfifo(path, 0o600)) // would wait for ever
	refused("no ordinary file")
	os.Remove(path)
	must(t, os.Mkdir(path, 0o700))
	refused("no ordinary file")
	must(t, os.Remove(path))
	if os.Getuid() != 0 {
		return // only root gives files away
	}
	write(passphrase, 0o600)
	must(t, os.Chown(path, 1234, 0))
	refused("another user")
	// systemd opens a credential to the service's user with an access list,
	// which shows as a group's right; elsewhere that is the group's.
	write(passphrase, 0o440)
	refused("chmod 600")
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(path)+"/")
	if got, err := login.ReadPassphrase(path); err != nil || got != passphrase {
		t.Errorf("a credential: %q, %v", got, err)
	}
	must(t, os.Chmod(path, 0o444))
	refused("chmod 600")
}
