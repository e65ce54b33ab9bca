//go:build linux

// Package apptest plays all seven steps from outside: it gives the end-to-end
// tests a whole private desktop (two nested X servers, session bus, keychain,
// window manager, panel with a tray host, notifications) and a person who sees
// the screen and moves the mouse. Everything is a real program that the test
// starts, and stops again by its process id.
//
// The person acts on the outer server. Programs live on the inner one, where
// the person's hand arrives as "Xephyr virtual mouse": a device, and not the
// XTEST device that a program on the inner server would be.
package apptest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/jezek/xgb"
)

// KeyringPassword unlocks the login keyring of every Desktop.
const KeyringPassword = "test keyring password"

// ordinary is the user and group that Ordinary runs as: nobody.
const ordinary = 65534

// Options choose what a Desktop has. The zero value is a light desktop of
// 1024 by 800 pixels with tray, unlocked keychain and notifications, run by
// the user who runs the test.
type Options struct {
	Width, Height int // of the inner screen, pixels; 0: 1024 by 800

	NoTray          bool // no panel until StartTray
	NoKeyring       bool // no Secret Service on the bus at all
	LockedKeyring   bool // a Secret Service whose keyring is locked; it asks on the screen
	NoNotifications bool // nobody answers org.freedesktop.Notifications
	NoBus           bool // no session bus: no tray, no keychain, no notifications
	Dark            bool // the person's theme: portal setting and panel

	// Ordinary runs everything as an ordinary user. It has an effect only for
	// root, and means: uid and gid 65534, no supplementary groups.
	Ordinary bool
}

// Desktop is a running private desktop. Its methods are for the goroutine of
// the test: they end the test with t.Fatal when something cannot be had.
type Desktop struct {
	// Dir holds home, run and everything else; short, because socket paths are.
	Dir string
	// Home is HOME in the desktop, RunDir XDG_RUNTIME_DIR.
	Home, RunDir string
	// Artifacts is where pictures and logs are kept: a folder per test under
	// $LOCALPC_ARTIFACTS, or a temporary one that stays if the test fails.
	Artifacts string
	// Outer and Inner are the X displays, such as ":101".
	Outer, Inner string
	// BusAddress is the private session bus; "" with NoBus.
	BusAddress string
	// Bus is the test's own connection to it; nil with NoBus.
	Bus *dbus.Conn

	t     testing.TB
	opts  Options
	token string
	uid   int
	bus   *Process
	panel *Process
	x     *xgb.Conn
	seq   int
	// monitors are those that Monitors has made.
	monitors []image.Rectangle
	mu       sync.Mutex
	procs    []*Process
	portal   *portal
	unsaved  map[string]image.Image // the newest picture of each name, which a failure's reader wants
	seen     map[uint64][]Word      // recognised pictures, by hash
	offset   struct{ x, y int }     // of the inner screen on the outer
}

// New starts a desktop and has it stopped, with everything in it, when t ends.
func New(t testing.TB, opts Options) *Desktop {
	t.Helper()
	if opts.Width == 0 {
		opts.Width = 1024
	}
	if opts.Height == 0 {
		opts.Height = 800
	}
	dir, err := os.MkdirTemp("", "lpc")
	if err != nil {
		t.Fatalf("make the desktop's folder: %v", err)
	}
	var raw [8]byte
	rand.Read(raw[:])
	d := &Desktop{
		Dir: dir, Home: filepath.Join(dir, "home"), RunDir: filepath.Join(dir, "run"),
		t: t, opts: opts, token: hex.EncodeToString(raw[:]), uid: os.Getuid(),
		seen: map[uint64][]Word{},
	}
	if opts.Ordinary && d.uid == 0 {
		d.uid = ordinary
	}
	d.Artifacts = artifacts(t)
	t.Cleanup(func() { d.stop() })

	for _, sub := range []string{d.Home, d.RunDir, d.path("services"), d.path("home/.config"),
		d.path("home/.local/share"), d.path("home/.cache"), d.path("tmp")} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatalf("make the desktop's folder: %v", err)
		}
	}
	must(t, os.Chmod(dir, 0o711))
	d.writeConfigs()
	d.own(dir)

	d.startServers()
	if !opts.NoBus {
		d.startBus()
		d.startPortal()
		if !opts.NoKeyring {
			d.startKeyring()
		}
	}
	d.startOpenbox()
	if !opts.NoBus && !opts.NoNotifications {
		d.startNotifications()
	}
	if !opts.NoTray && !opts.NoBus {
		d.StartTray()
	}
	d.Move(opts.Width/2, opts.Height-40)
	return d
}

// artifacts makes the folder in which t's pictures and logs stay.
func artifacts(t testing.TB) string {
	t.Helper()
	base := os.Getenv("LOCALPC_ARTIFACTS")
	if base == "" {
		dir, err := os.MkdirTemp("", "localpc-artifacts-")
		must(t, err)
		t.Cleanup(func() {
			if !t.Failed() {
				os.RemoveAll(dir)
			}
		})
		return dir
	}
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' || r == ':' {
			return '-'
		}
		return r
	}, t.Name())
	dir := filepath.Join(base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make the folder for artifacts: %v", err)
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *Desktop) path(name string) string { return filepath.Join(d.Dir, name) }

// own gives a path and all below it to the desktop's user.
func (d *Desktop) own(root string) {
	if d.uid == os.Getuid() {
		return
	}
	err := filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, d.uid, d.uid)
	})
	must(d.t, err)
}

// UID is the user that the desktop's programs run as.
func (d *Desktop) UID() int { return d.uid }

// Give hands files that the test made to the desktop's user.
func (d *Desktop) Give(path string) { d.t.Helper(); d.own(path) }

// Env is the environment of the desktop's programs. Every process that
// inherits it is found and ended at the test's end.
func (d *Desktop) Env() []string {
	env := []string{
		"PATH=" + d.path("bin") + ":" + os.Getenv("PATH"),
		"HOME=" + d.Home,
		"USER=person", "LOGNAME=person", "SHELL=/bin/bash",
		"LANG=C.UTF-8",
		"TMPDIR=" + d.path("tmp"),
		"XDG_RUNTIME_DIR=" + d.RunDir,
		"XDG_CONFIG_HOME=" + d.path("home/.config"),
		"XDG_DATA_HOME=" + d.path("home/.local/share"),
		"XDG_CACHE_HOME=" + d.path("home/.cache"),
		"XDG_STATE_HOME=" + d.path("home/.local/state"),
		"XDG_SESSION_TYPE=x11", "XDG_CURRENT_DESKTOP=XFCE",
		"DISPLAY=" + d.Inner,
		"NO_AT_BRIDGE=1", "GSETTINGS_BACKEND=memory", "LIBGL_ALWAYS_SOFTWARE=1",
		tokenVar + "=" + d.token,
	}
	if d.BusAddress != "" {
		env = append(env, "DBUS_SESSION_BUS_ADDRESS="+d.BusAddress)
	}
	if v := os.Getenv("GOCOVERDIR"); v != "" {
		env = append(env, "GOCOVERDIR="+v)
	}
	return env
}

// stop ends everything: first what the test started, then the desktop, each
// in the reverse order of its start, then whatever still carries the token.
func (d *Desktop) stop() {
	if d.t.Failed() {
		for name, img := range d.unsaved {
			d.save(name, img)
		}
	}
	if d.t.Failed() && d.x != nil {
		if img, err := d.capture(); err == nil {
			d.save("at-the-end", img)
		}
	}
	d.mu.Lock()
	procs := append([]*Process(nil), d.procs...)
	d.mu.Unlock()
	for i := len(procs) - 1; i >= 0; i-- {
		p := procs[i]
		if p.daemon {
			continue
		}
		p.Stop(5 * time.Second)
	}
	if d.portal != nil {
		d.portal.close()
	}
	if d.Bus != nil {
		d.Bus.Close()
	}
	if d.x != nil {
		d.x.Close()
	}
	for i := len(procs) - 1; i >= 0; i-- {
		procs[i].Stop(2 * time.Second)
	}
	for range 50 {
		left := d.Leftovers()
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			syscall.Kill(p.PID, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if left := d.Leftovers(); len(left) > 0 {
		d.t.Errorf("processes of the desktop would not end: %v", left)
	}
	if err := os.RemoveAll(d.Dir); err != nil {
		d.t.Errorf("remove the desktop's folder: %v", err)
	}
}

// waitFor calls ready every 20 ms until it is true, at most for limit.
func (d *Desktop) waitFor(limit time.Duration, what string, ready func() bool) {
	d.t.Helper()
	if !until(limit, ready) {
		d.t.Fatalf("%s: not within %v\n%s", what, limit, d.logs())
	}
}

// Until calls ready every 20 ms until it is true, at most for limit, and says
// whether it was.
func (d *Desktop) Until(limit time.Duration, ready func() bool) bool { return until(limit, ready) }

func until(limit time.Duration, ready func() bool) bool {
	for end := time.Now().Add(limit); ; {
		if ready() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// logs is the end of every log, for a failure's text.
func (d *Desktop) logs() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, p := range d.procs {
		out := p.Output()
		if len(out) > 800 {
			out = "…" + out[len(out)-800:]
		}
		if strings.TrimSpace(out) != "" {
			fmt.Fprintf(&b, "--- %s\n%s\n", p.Name, strings.TrimSpace(out))
		}
	}
	return b.String()
}
