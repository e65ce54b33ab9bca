//go:build linux

package apptest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// startLimit is how long one part of the desktop may take to come up on a
// loaded machine.
const startLimit = 30 * time.Second

// part starts one program of the desktop itself.
func (d *Desktop) part(name string, cmd *exec.Cmd) *Process {
	d.t.Helper()
	p, err := d.launch(name, cmd, true)
	if err != nil {
		d.t.Fatalf("start %s: %v (is its package installed?)", name, err)
	}
	return p
}

// startServers starts Xvfb, where the person acts, and Xephyr in it, where the
// programs live. Each picks a free display number itself.
func (d *Desktop) startServers() {
	d.t.Helper()
	size := fmt.Sprintf("%dx%d", d.opts.Width, d.opts.Height)
	d.Outer = d.xserver("Xvfb", "", "-screen", "0", size+"x24", "-noreset", "-ac", "-nolisten", "tcp")
	d.Inner = d.xserver("Xephyr", d.Outer, "-screen", size, "-noreset", "-ac", "-no-host-grab", "-nolisten", "tcp")
	x, err := connect(d.Inner)
	if err != nil {
		d.t.Fatalf("connect to the inner display: %v", err)
	}
	d.x = x
	d.findOffset()
	d.paint()
}

// xserver starts one X server and returns the display it chose.
func (d *Desktop) xserver(name, on string, args ...string) string {
	d.t.Helper()
	r, w, err := os.Pipe()
	must(d.t, err)
	defer r.Close()
	cmd := d.Command(name, append([]string{"-displayfd", "3"}, args...)...)
	cmd.Env = append(cmd.Env, "DISPLAY="+on)
	cmd.ExtraFiles = []*os.File{w}
	d.part(name, cmd)
	w.Close()
	number, err := readLine(r, startLimit)
	if err != nil || number == "" {
		d.t.Fatalf("%s told no display number: %v\n%s", name, err, d.logs())
	}
	return ":" + number
}

// readLine reads one line from a pipe within limit.
func readLine(r *os.File, limit time.Duration) (string, error) {
	if err := r.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	return strings.TrimSpace(line), err
}

// startBus starts a session bus that can start only the few services written
// by writeConfigs, so that nothing of the surrounding system answers.
func (d *Desktop) startBus() {
	d.t.Helper()
	r, w, err := os.Pipe()
	must(d.t, err)
	defer r.Close()
	cmd := d.Command("dbus-daemon", "--config-file="+d.path("bus.conf"), "--nofork", "--nopidfile", "--print-address=3")
	cmd.ExtraFiles = []*os.File{w}
	d.bus = d.part("dbus-daemon", cmd)
	w.Close()
	addr, err := readLine(r, startLimit)
	if err != nil || addr == "" {
		d.t.Fatalf("dbus-daemon told no address: %v\n%s", err, d.logs())
	}
	d.BusAddress = addr
	d.Bus, err = dbus.Connect(addr)
	if err != nil {
		d.t.Fatalf("connect to the session bus: %v", err)
	}
	// What the bus starts gets the display from here.
	pairs := map[string]string{}
	for _, kv := range d.Env() {
		k, v, _ := strings.Cut(kv, "=")
		pairs[k] = v
	}
	call := d.Bus.BusObject().Call("org.freedesktop.DBus.UpdateActivationEnvironment", 0, pairs)
	must(d.t, call.Err)
}

// HasName says whether somebody owns a name on the session bus.
func (d *Desktop) HasName(name string) bool {
	var has bool
	err := d.Bus.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, name).Store(&has)
	return err == nil && has
}

// startKeyring starts gnome-keyring with a login keyring. All of standard input
// is the password: a newline would be part of it.
func (d *Desktop) startKeyring() {
	d.t.Helper()
	cmd := d.Command("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	cmd.Stdin = strings.NewReader(KeyringPassword)
	d.part("gnome-keyring-daemon", cmd)
	d.waitFor(startLimit, "the keyring is there and unlocked", func() bool {
		locked, ok := d.keyringLocked()
		return ok && !locked
	})
	if d.opts.LockedKeyring {
		d.LockKeyring()
	}
}

// LockKeyring locks the person's keyring, as after a long absence: the next
// program that asks makes a prompt appear on the screen.
func (d *Desktop) LockKeyring() {
	d.t.Helper()
	service := d.Bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
	var done []dbus.ObjectPath
	var prompt dbus.ObjectPath
	err := service.Call("org.freedesktop.Secret.Service.Lock", 0,
		[]dbus.ObjectPath{"/org/freedesktop/secrets/collection/login"}).Store(&done, &prompt)
	must(d.t, err)
	if locked, ok := d.keyringLocked(); !ok || !locked {
		d.t.Fatal("the keyring would not lock")
	}
}

// keyringLocked reads the state of the default collection; ok is false when
// there is none.
func (d *Desktop) keyringLocked() (locked, ok bool) {
	if !d.HasName("org.freedesktop.secrets") {
		return false, false
	}
	var path dbus.ObjectPath
	err := d.Bus.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").
		Call("org.freedesktop.Secret.Service.ReadAlias", 0, "default").Store(&path)
	if err != nil || path == "/" {
		return false, false
	}
	v, err := d.Bus.Object("org.freedesktop.secrets", path).GetProperty("org.freedesktop.Secret.Collection.Locked")
	if err != nil {
		return false, false
	}
	locked, ok = v.Value().(bool)
	return locked, ok
}

func (d *Desktop) startOpenbox() {
	d.t.Helper()
	d.part("openbox", d.Command("openbox", "--sm-disable"))
	d.waitFor(startLimit, "the window manager is there", d.managed)
}

func (d *Desktop) startNotifications() {
	d.t.Helper()
	d.part("dunst", d.Command("dunst", "-conf", d.path("dunstrc")))
	d.waitFor(startLimit, "the notification service is there", func() bool {
		return d.HasName("org.freedesktop.Notifications")
	})
}

// StartTray starts the panel and waits until it hosts tray icons.
func (d *Desktop) StartTray() {
	d.t.Helper()
	if d.panel != nil && d.panel.Running() {
		d.t.Fatal("the panel runs already")
	}
	cmd := d.Command("xfce4-panel", "--disable-wm-check", "--sm-client-disable")
	if d.opts.Dark {
		cmd.Env = append(cmd.Env, "GTK_THEME=Adwaita:dark")
	}
	d.panel = d.part("xfce4-panel", cmd)
	d.waitFor(startLimit, "the panel hosts tray icons", d.hasHost)
}

// StopTray ends the panel, as a crash would, and waits until no tray host is
// left.
func (d *Desktop) StopTray() {
	d.t.Helper()
	if d.panel == nil || !d.panel.Running() {
		d.t.Fatal("no panel runs")
	}
	d.panel.Kill()
	d.waitFor(startLimit, "the tray host is gone", func() bool {
		return !d.HasName("org.kde.StatusNotifierWatcher")
	})
}

// KillBus ends the session bus, as a crash would.
func (d *Desktop) KillBus() {
	d.t.Helper()
	d.bus.Kill()
}

// hasHost asks the watcher whether a host draws icons.
func (d *Desktop) hasHost() bool {
	if !d.HasName("org.kde.StatusNotifierWatcher") {
		return false
	}
	v, err := d.Bus.Object("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher").
		GetProperty("org.kde.StatusNotifierWatcher.IsStatusNotifierHostRegistered")
	if err != nil {
		return false
	}
	on, _ := v.Value().(bool)
	return on
}

// services that the private bus may start; copied from the system, because
// their programs lie where the distribution put them.
var services = []string{"org.xfce.Xfconf.service", "org.gnome.keyring.SystemPrompter.service"}

func (d *Desktop) writeConfigs() {
	d.t.Helper()
	write := func(name, text string) {
		file := d.path(name)
		must(d.t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(d.t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, s := range services {
		b, err := os.ReadFile("/usr/share/dbus-1/services/" + s)
		if err != nil {
			d.t.Fatalf("read a bus service (is its package installed?): %v", err)
		}
		write("services/"+s, string(b))
	}
	write("bus.conf", fmt.Sprintf(busConf, d.path("run/bus"), d.path("services")))
	write("dunstrc", dunstConf)
	dark := "false"
	if d.opts.Dark {
		dark = "true"
	}
	write("home/.config/xfce4/xfconf/xfce-perchannel-xml/xfce4-panel.xml", fmt.Sprintf(panelConf, dark, trayIconSize))
	write("home/.config/openbox/rc.xml", openboxConf)
}

const busConf = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <keep_umask/>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <servicedir>%s</servicedir>
  <policy context="default">
    <allow user="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
`

// A notification stays until it is withdrawn or clicked; a click is its
// default action.
const dunstConf = `[global]
    monitor = 0
    follow = none
    width = 230
    height = 200
    origin = bottom-left
    offset = 8x8
    font = DejaVu Sans 11
    markup = full
    format = "<b>%s</b>\n%b"
    frame_width = 1
    idle_threshold = 0
    mouse_left_click = do_action, close_current
    mouse_right_click = close_current
[urgency_low]
    background = "#ffffff"
    foreground = "#1b1e24"
    timeout = 0
[urgency_normal]
    background = "#ffffff"
    foreground = "#1b1e24"
    timeout = 0
[urgency_critical]
    background = "#ffffff"
    foreground = "#1b1e24"
    timeout = 0
`

const panelConf = `<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="dark-mode" type="bool" value="%s"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="length" type="uint" value="100"/>
      <property name="size" type="uint" value="28"/>
      <property name="plugin-ids" type="array">
        <value type="int" value="1"/>
        <value type="int" value="2"/>
      </property>
    </property>
  </property>
  <property name="plugins" type="empty">
    <property name="plugin-1" type="string" value="separator">
      <property name="expand" type="bool" value="true"/>
      <property name="style" type="uint" value="0"/>
    </property>
    <property name="plugin-2" type="string" value="systray">
      <property name="square-icons" type="bool" value="true"/>
      <property name="icon-size" type="int" value="%d"/>
      <property name="known-legacy-items" type="array"/>
    </property>
  </property>
</channel>
`

// Windows open where the program asks, click to focus, new windows focused:
// openbox's own defaults, in a file so that the system's cannot differ.
const openboxConf = `<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew><followMouse>no</followMouse></focus>
  <placement><policy>Smart</policy><center>yes</center></placement>
  <theme><name>Clearlooks</name><titleLayout>NLIMC</titleLayout></theme>
  <desktops><number>1</number><popupTime>0</popupTime></desktops>
  <mouse>
    <context name="Titlebar">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
    </context>
    <context name="Close">
      <mousebind button="Left" action="Click"><action name="Close"/></mousebind>
    </context>
    <context name="Client">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
    </context>
  </mouse>
  <keyboard>
    <keybind key="A-F4"><action name="Close"/></keybind>
    <keybind key="A-Tab"><action name="NextWindow"/></keybind>
  </keyboard>
</openbox_config>
`
