package login_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"go.uber.org/goleak"

	"localpc/app/login"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("VAULT_TO_WRITE"); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const busConf = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=DIR/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`

// startBus starts a session bus of the test's own, on which nothing starts by
// itself, and points this process to it.
func startBus(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "bus.conf"), []byte(strings.ReplaceAll(busConf, "DIR", dir)), 0o600))
	cmd := exec.Command("dbus-daemon", "--config-file="+filepath.Join(dir, "bus.conf"), "--nofork", "--nopidfile", "--print-address")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimSpace(address))
	return dir
}

// startKeyring starts gnome-keyring on the test's bus, unlocked. A second one
// with the same dir is the same keyring after a restart.
func startKeyring(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	cmd.Env = []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "share"), "PATH=" + os.Getenv("PATH"),
		"DBUS_SESSION_BUS_ADDRESS=" + os.Getenv("DBUS_SESSION_BUS_ADDRESS")}
	cmd.Stdin = strings.NewReader("a password")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	bus, err := dbus.Connect(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	must(t, err)
	defer bus.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var path dbus.ObjectPath
		// One that comes while it starts is never answered.
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").CallWithContext(ctx, "org.freedesktop.Secret.Service.ReadAlias", 0, "default").Store(&path)
		cancel()
		if err == nil && path != "/" {
			return cmd
		}
		if time.Now().After(end) {
			t.Fatalf("the keyring is not there: %v, %q", err, path)
		}
	}
}

func TestKeychain(t *testing.T) {
	startKeyring(t, startBus(t))
	k := login.Keychain{Machine: "m1"}
	ctx := t.Context()
	item := login.TokenItem("https://hub.example.org/a b")
	if _, err := k.Get(ctx, item); !errors.Is(err, login.ErrMissing) {
		t.Errorf("what is not there: %v", err)
	}
	must(t, k.Delete(ctx, item))
	for _, secret := range []string{"first", "second, in its place", "Ωß世界\n\x00", strings.Repeat("x", 4096)} {
		must(t, k.Set(ctx, item, secret))
		if got, err := k.Get(ctx, item); err != nil || got != secret {
			t.Errorf("%q, %v, want %q", got, err, secret)
		}
	}
	if _, err := (login.Keychain{Machine: "m2"}).Get(ctx, item); !errors.Is(err, login.ErrMissing) {
		t.Errorf("another machine's directory: %v", err)
	}
	if _, err := k.Get(ctx, login.TokenItem("this")); !errors.Is(err, login.ErrMissing) {
		t.Errorf("another hub's token: %v", err)
	}
	must(t, k.Delete(ctx, item))
	if _, err := k.Get(ctx, item); !errors.Is(err, login.ErrMissing) {
		t.Errorf("what was deleted: %v", err)
	}
}

func TestRecordKeyStays(t *testing.T) {
	dir := startBus(t)
	daemon := startKeyring(t, dir)
	k := login.Keychain{Machine: "m1"}
	if _, err := login.ReadRecordKey(t.Context(), k); !errors.Is(err, login.ErrMissing) {
		t.Errorf("before the first start: %v", err)
	}
	first, kept, err := login.RecordKey(t.Context(), k)
	if err != nil || !kept {
		t.Fatalf("kept %v, %v", kept, err)
	}
	again, kept, err := login.RecordKey(t.Context(), k)
	if err != nil || !kept || !again.Equal(first) {
		t.Errorf("the second start has another key (kept %v, %v)", kept, err)
	}
	daemon.Process.Kill()
	daemon.Wait()
	startKeyring(t, dir)
	again, kept, err = login.RecordKey(t.Context(), k)
	if err != nil || !kept || !again.Equal(first) {
		t.Errorf("after the keyring's restart there is another key (kept %v, %v)", kept, err)
	}
	public, err := login.ReadRecordKey(t.Context(), k)
	if err != nil || !public.Equal(first.Public().(ed25519.PublicKey)) {
		t.Errorf("verify reads another key: %v", err)
	}
	if other, _, _ := login.RecordKey(t.Context(), login.Keychain{Machine: "m2"}); other.Equal(first) {
		t.Error("two data directories share a key")
	}
	// Something that is no key gives way to a new one, and is no key for verify.
	must(t, k.Set(t.Context(), "record-key", "not a key"))
	if _, err := login.ReadRecordKey(t.Context(), k); !errors.Is(err, login.ErrMissing) {
		t.Errorf("what is no key: %v", err)
	}
	other, kept, err := login.RecordKey(t.Context(), k)
	if err != nil || !kept || other.Equal(first) {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// noKeeper checks that every call says so within limit, and that the record
// is still signed, with a key in memory.
func noKeeper(t *testing.T, k login.Keeper, limit time.Duration) {
	t.Helper()
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"get":    func() error { _, err := k.Get(ctx, "x"); return err },
		"set":    func() error { return k.Set(ctx, "x", "y") },
		"delete": func() error { return k.Delete(ctx, "x") },
		"record key": func() error {
			key, kept, err := login.RecordKey(ctx, k)
			if kept || len(key) != ed25519.PrivateKeySize {
				t.Errorf("kept %v, a key of %d bytes", kept, len(key))
			}
			return err
		},
		"verify's key": func() error { _, err := login.ReadRecordKey(ctx, k); return err },
	} {
		begin := time.Now()
		if err := call(); !errors.Is(err, login.ErrNoKeychain) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > limit {
			t.Errorf("%s took %v", name, took)
		}
	}
}

// zalando/go-keyring#116, crc-org/crc#4342: a keychain that is not there says so
// soon, and nothing is kept elsewhere instead.
func TestNoBus(t *testing.T) {
	t.Run("none named", func(t *testing.T) {
		login.SetUsersDir(t, t.TempDir())
		// A dbus-launch that would be found, and tells that it ran.
		bin, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
		must(t, os.WriteFile(filepath.Join(bin, "dbus-launch"), []byte("#!/bin/sh\ntouch "+ran+"\nexit 1\n"), 0o755))
		t.Setenv("PATH", bin)
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		t.Setenv("XDG_RUNTIME_DIR", bin)
		must(t, os.WriteFile(filepath.Join(bin, "bus"), nil, 0o600))
		noKeeper(t, login.Keychain{Machine: "m1"}, time.Second)
		if _, err := os.Stat(ran); err == nil {
			t.Error("a session bus was started")
		}
	})
	t.Run("one where it is looked for", func(t *testing.T) {
		users := t.TempDir()
		login.SetUsersDir(t, users)
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		if !login.NoBus() {
			t.Error("there is a bus")
		}
		must(t, os.Mkdir(filepath.Join(users, strconv.Itoa(os.Getuid())), 0o700))
		must(t, os.WriteFile(filepath.Join(users, strconv.Itoa(os.Getuid()), "bus"), nil, 0o600))
		if login.NoBus() {
			t.Error("the user's bus is not found")
		}
	})
	t.Run("one that is gone", func(t *testing.T) {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "bus"))
		noKeeper(t, login.Keychain{Machine: "m1"}, time.Second)
	})
	t.Run("a bus without a keyring", func(t *testing.T) {
		startBus(t)
		noKeeper(t, login.Keychain{Machine: "m1"}, 2*time.Second)
	})
}

// Nothing can be in a keychain that is not there; in one that does not answer
// it can.
func TestAbsentKeychain(t *testing.T) {
	k := login.Keychain{Machine: "m1", Timeout: 300 * time.Millisecond}
	t.Run("a bus without a keyring", func(t *testing.T) {
		startBus(t)
		if _, err := k.Get(t.Context(), "x"); !errors.Is(err, login.ErrAbsent) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a keyring that does not answer", func(t *testing.T) {
		daemon := startKeyring(t, startBus(t))
		must(t, daemon.Process.Signal(syscall.SIGSTOP))
		if _, err := k.Get(t.Context(), "x"); !errors.Is(err, login.ErrNoKeychain) || errors.Is(err, login.ErrAbsent) {
			t.Errorf("%v", err)
		}
		must(t, daemon.Process.Signal(syscall.SIGCONT))
	})
}

// zalando/go-keyring#116, crc-org/crc#4342: nor does a locked one hang.
func TestLockedKeyring(t *testing.T) {
	startKeyring(t, startBus(t))
	k := login.Keychain{Machine: "m1", Timeout: 3 * time.Second}
	must(t, k.Set(t.Context(), "x", "secret"))
	bus, err := dbus.Connect(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	must(t, err)
	defer bus.Close()
	var done []dbus.ObjectPath
	var prompt dbus.ObjectPath
	must(t, bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").Call("org.freedesktop.Secret.Service.Lock", 0,
		[]dbus.ObjectPath{"/org/freedesktop/secrets/aliases/default"}).Store(&done, &prompt))
	noKeeper(t, k, 5*time.Second)
}

// A keyring that does not answer, as one whose prompt nobody sees.
func TestSilentKeyring(t *testing.T) {
	daemon := startKeyring(t, startBus(t))
	k := login.Keychain{Machine: "m1", Timeout: 300 * time.Millisecond}
	must(t, k.Set(t.Context(), "x", "secret"))
	must(t, daemon.Process.Signal(syscall.SIGSTOP))
	noKeeper(t, k, 2*time.Second)
	must(t, daemon.Process.Signal(syscall.SIGCONT))
	k.Timeout = 5 * time.Second
	must(t, k.Set(t.Context(), "z", "works again"))
	if got, err := k.Get(t.Context(), "z"); err != nil || got != "works again" {
		t.Errorf("after it answers again: %q, %v", got, err)
	}
}
