//go:build linux

package waytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Options of a desktop.
type Options struct {
	// Outputs are lines of sway's configuration, one for each screen: "resolution
	// 1024x700 position 0,0 scale 1.5". The first screen is HEADLESS-1.
	Outputs []string
	// Config is further lines of it.
	Config string
	// Portals starts a session bus with the portals of sway and GTK, and PipeWire
	// behind them; see AsPerson.
	Portals bool
}

// Desktop is one that runs.
type Desktop struct {
	Dir string // the person's home
	t   testing.TB
	env []string
	uid int
}

// Limit is how long something may take on a slow machine.
const Limit = 90 * time.Second

// AsPerson runs the test t anew in a process of its own that is not root's, and
// says whether it did: then t is done. The portals look into who asks them, which
// they can't do with root.
func AsPerson(t testing.TB) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "wl")
	must(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	must(t, os.Chmod(dir, 0o755))
	self, err := os.Executable()
	must(t, err)
	program, err := os.ReadFile(self) // where it lies others may not look
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "test"), program, 0o755))
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = os.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("as a person: %v\n%s", err, out)
	}
	return true
}

// nobody is who the person is where the test is root's.
const nobody = 65534

// Start starts a desktop, and sets the environment of the test to it.
func Start(t testing.TB, o Options) *Desktop {
	t.Helper()
	d := bare(t)
	run := filepath.Join(d.Dir, "run")
	var config strings.Builder
	for i, line := range o.Outputs {
		fmt.Fprintf(&config, "output HEADLESS-%d %s\n", i+1, line)
	}
	config.WriteString("xwayland disable\nfocus_follows_mouse no\ndefault_border none\noutput * bg #336699 solid_color\n" + o.Config + "\n")
	d.write(map[string]string{
		"sway.conf": config.String(), "portals/wlr.portal": portalFile("wlr", "Screenshot;org.freedesktop.impl.portal.ScreenCast"),
		"portals/gtk.portal":                    portalFile("gtk", "Access;org.freedesktop.impl.portal.AppChooser;org.freedesktop.impl.portal.Settings"),
		".config/xdg-desktop-portal-wlr/config": "[screencast]\nchooser_type=none\noutput_name=HEADLESS-1\nmax_fps=30\n",
	})
	d.env = append(d.env, "XDG_CURRENT_DESKTOP=sway", "XDG_DESKTOP_PORTAL_DIR="+filepath.Join(d.Dir, "portals"),
		"WLR_BACKENDS=headless", "WLR_RENDERER=pixman", "WLR_LIBINPUT_NO_DEVICES=1", "WLR_HEADLESS_OUTPUTS="+strconv.Itoa(max(1, len(o.Outputs))))
	d.start("sway", "-c", filepath.Join(d.Dir, "sway.conf"))
	d.wait("sway's sockets", func() bool {
		sway, _ := filepath.Glob(filepath.Join(run, "sway-ipc*"))
		way, _ := filepath.Glob(filepath.Join(run, "wayland-?"))
		if len(sway) == 0 || len(way) == 0 || !listens(sway[0]) || !listens(way[0]) {
			return false
		}
		d.env = append(d.env, "SWAYSOCK="+sway[0], "WAYLAND_DISPLAY="+filepath.Base(way[0]))
		return true
	})
	bus := ""
	if o.Portals {
		bus = "unix:path=" + filepath.Join(run, "bus")
		d.pipewire()
		d.env = append(d.env, "DBUS_SESSION_BUS_ADDRESS="+bus)
		d.start("dbus-daemon", "--session", "--nofork", "--address="+bus)
		d.wait("the bus", func() bool { return listens(filepath.Join(run, "bus")) })
		d.portals()
	}
	d.setenv(bus)
	return d
}

// bare is a desktop on which nothing runs yet.
func bare(t testing.TB) *Desktop {
	t.Helper()
	dir, err := os.MkdirTemp("", "wl") // short: sockets' names have a limit
	must(t, err)
	d := &Desktop{Dir: dir, t: t, uid: os.Getuid()}
	if d.uid == 0 {
		d.uid = nobody
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run := filepath.Join(dir, "run")
	must(t, os.Mkdir(run, 0o700))
	d.write(nil)
	d.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + run, "LANG=C.UTF-8", "XDG_SESSION_TYPE=wayland",
		"NO_AT_BRIDGE=1", "GTK_A11Y=none", "GIO_USE_VFS=local", "GSETTINGS_BACKEND=memory"}
	return d
}

// write writes files of the person.
func (d *Desktop) write(files map[string]string) {
	d.t.Helper()
	for name, text := range files {
		path := filepath.Join(d.Dir, name)
		must(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(d.t, os.WriteFile(path, []byte(text), 0o644))
	}
	must(d.t, filepath.WalkDir(d.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || os.Getuid() != 0 {
			return err
		}
		return os.Lchown(path, d.uid, d.uid)
	}))
}

// pipewire starts it without a bus: else it asks the portals, which wait for it.
func (d *Desktop) pipewire() {
	d.t.Helper()
	d.start("pipewire")
	d.wait("PipeWire", func() bool { return listens(filepath.Join(d.Dir, "run", "pipewire-0")) })
	d.start("wireplumber")
}

// portals starts them, which takes them half a minute where one of their parts
// does not answer another: what is tested has less patience on a slow machine.
func (d *Desktop) portals() {
	d.t.Helper()
	d.Output("gdbus", "call", "--session", "--timeout", "80", "--dest", "org.freedesktop.DBus", "--object-path", "/org/freedesktop/DBus",
		"--method", "org.freedesktop.DBus.StartServiceByName", "org.freedesktop.portal.Desktop", "uint32 0")
}

// setenv sets the environment of the test to the desktop's.
func (d *Desktop) setenv(bus string) {
	d.t.Helper()
	for _, e := range append([]string{"SWAYSOCK=", "DISPLAY="}, append(d.env, "DBUS_SESSION_BUS_ADDRESS="+bus)...) {
		if name, value, _ := strings.Cut(e, "="); name != "HOME" && name != "PATH" && name != "LANG" {
			d.t.Setenv(name, value)
		}
	}
}

// listens tells whether somebody takes calls there; the name comes before.
func listens(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

func portalFile(name, interfaces string) string {
	return "[portal]\nDBusName=org.freedesktop.impl.portal.desktop." + name +
		"\nInterfaces=org.freedesktop.impl.portal." + interfaces + ";\nUseIn=sway;gnome\n"
}

// Command is a program on this desktop, as its person.
func (d *Desktop) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = d.env, d.Dir
	// What is still there when the test's process ends, ends too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(d.uid), Gid: uint32(d.uid)}
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// start runs a program until the test ends.
func (d *Desktop) start(name string, args ...string) {
	d.t.Helper()
	log, err := os.Create(filepath.Join(d.Dir, filepath.Base(name)+".log"))
	must(d.t, err)
	d.keep(d.Command(context.Background(), name, args...), name, log)
}

// plain runs a program as who the test is.
func (d *Desktop) plain(name string, args ...string) {
	d.t.Helper()
	log, err := os.Create(filepath.Join(d.Dir, filepath.Base(name)+".log"))
	must(d.t, err)
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	d.keep(cmd, name, log)
}

func (d *Desktop) keep(cmd *exec.Cmd, name string, log *os.File) {
	d.t.Helper()
	cmd.Stdout, cmd.Stderr = log, log
	must(d.t, cmd.Start())
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	d.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-done
		}
		_ = log.Close()
		if d.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			d.t.Logf("%s said:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

// Start runs a program on this desktop until the test ends.
func (d *Desktop) Start(name string, args ...string) { d.t.Helper(); d.start(name, args...) }

// Log is what a program that was started has said.
func (d *Desktop) Log(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.Dir, filepath.Base(name)+".log"))
	must(d.t, err)
	return string(text)
}

// Output runs a program and returns what it printed.
func (d *Desktop) Output(name string, args ...string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	var out bytes.Buffer
	cmd := d.Command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, io.Discard
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("%s %q: %v", name, args, err)
	}
	return out.String()
}

// Sway gives sway one command.
func (d *Desktop) Sway(command ...string) {
	d.t.Helper()
	d.Output("swaymsg", append([]string{"--"}, command...)...)
}

// Windows counts the windows that are shown.
func (d *Desktop) Windows() int {
	var count func(n node) int
	count = func(n node) int {
		c := 0
		if n.PID > 0 && n.Visible {
			c = 1
		}
		for _, child := range append(n.Nodes, n.Floating...) {
			c += count(child)
		}
		return c
	}
	var root node
	must(d.t, json.Unmarshal([]byte(d.Output("swaymsg", "-r", "-t", "get_tree")), &root))
	return count(root)
}

type node struct {
	PID      int    `json:"pid"`
	Visible  bool   `json:"visible"`
	Nodes    []node `json:"nodes"`
	Floating []node `json:"floating_nodes"`
}

// Grim has grim, which is not ours, take a picture of one screen.
func (d *Desktop) Grim(args ...string) image.Image {
	d.t.Helper()
	m, err := png.Decode(strings.NewReader(d.Output("grim", append(args, "-")...)))
	must(d.t, err)
	return m
}

// Wait waits until ok.
func (d *Desktop) Wait(what string, ok func() bool) { d.t.Helper(); d.wait(what, ok) }

func (d *Desktop) wait(what string, ok func() bool) {
	d.t.Helper()
	for end := time.Now().Add(Limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			d.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
