//go:build linux

package apptest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localpc/app/apptest"
)

const soon = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The keychain is a real one: a program finds what another has kept, and when
// it is locked the person is asked on the screen, reads, types and clicks.
func TestPersonUnlocksTheKeyring(t *testing.T) {
	d := apptest.New(t, apptest.Options{Ordinary: true})
	store := d.Command("secret-tool", "store", "--label=Test", "service", "apptest")
	store.Stdin = strings.NewReader("kept")
	if p := d.StartCmd("store", store); p.ExitCode(soon) != 0 {
		t.Fatalf("secret-tool: %s", p.Output())
	}
	d.LockKeyring()
	lookup := d.Start("secret-tool", "lookup", "service", "apptest")
	d.WaitText(soon, "Unlock")
	d.Screenshot("locked")
	d.Type(apptest.KeyringPassword)
	d.ClickText("Unlock")
	if code := lookup.ExitCode(soon); code != 0 || lookup.Output() != "kept" {
		t.Errorf("after the person unlocked it, code %d and %q", code, lookup.Output())
	}
	d.WaitNoText(soon, "Unlock")
}

func TestPrograms(t *testing.T) {
	d := apptest.New(t, apptest.Options{Ordinary: true, NoTray: true, NoKeyring: true, NoNotifications: true})
	out, err := d.Run(soon, "sh", "-c", "id -u; pwd; echo $DISPLAY; test -w $HOME && test -w $XDG_RUNTIME_DIR && echo writable")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\n" + d.Home + "\n" + d.Inner + "\nwritable\n"; !strings.HasSuffix(out, want) {
		t.Errorf("a program sees %q", out)
	}
	if os.Getuid() == 0 && !strings.HasPrefix(out, "65534\n") {
		t.Errorf("a program runs as %q", out)
	}
	for _, name := range []string{"org.kde.StatusNotifierWatcher", "org.freedesktop.secrets", "org.freedesktop.Notifications"} {
		if d.HasName(name) {
			t.Errorf("%s is there", name)
		}
	}
	if _, err := d.Run(soon, "sh", "-c", "echo why >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("a failure says %v", err)
	}
	// A child that leaves its parent is found, and ended with the desktop.
	if _, err := d.Run(soon, "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"); err != nil {
		t.Fatal(err)
	}
	if !d.Until(soon, func() bool { return strings.Contains(left(d), "sleep 1000") }) {
		t.Errorf("a child that was left behind is not found among %s", left(d))
	}
}

func left(d *apptest.Desktop) string {
	var all []string
	for _, f := range d.Leftovers() {
		all = append(all, f.String())
	}
	return strings.Join(all, "\n")
}

// A desktop leaves nothing behind: no process, no file.
func TestDesktopEnds(t *testing.T) {
	var dir string
	t.Run("one", func(t *testing.T) {
		d := apptest.New(t, apptest.Options{Dark: true})
		dir = d.Dir
		if !d.HasName("org.freedesktop.portal.Desktop") {
			t.Error("nothing tells programs about the theme")
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", dir)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("%s still works in %s", filepath.Dir(link), to)
		}
	}
}

func TestIdle(t *testing.T) {
	d := apptest.New(t, apptest.Options{NoBus: true})
	busy := d.Start("sh", "-c", "while :; do sleep 0.05; done")
	still := d.Start("sleep", "1000")
	b, err := apptest.Idle(busy.PID, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s, err := apptest.Idle(still.PID, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if b.Wakeups < 5 || s.Wakeups > 1 || s.Resident == 0 || s.Share > s.Resident {
		t.Errorf("a busy program: %v; a sleeping one: %v", b, s)
	}
}
