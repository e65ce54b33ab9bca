package tray

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"io"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// soon is how long anything may take on a loaded machine.
const soon = 30 * time.Second

// program is the tray alone, running in a desktop.
type program struct {
	*apptest.Process
	t  *testing.T
	d  *apptest.Desktop
	in io.Writer
}

func start(t *testing.T, d *apptest.Desktop) *program {
	t.Helper()
	bin := d.Install("localpc/app/tray/testdata/program")
	cmd := d.Command(bin + "/program")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &program{d.StartCmd("tray", cmd), t, d, in}
}

func (p *program) say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatalf("the tray program takes no input: %v\n%s", err, p.Output())
	}
}

func (p *program) update(s snapshot.Snapshot) {
	p.t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		p.t.Fatal(err)
	}
	p.say(string(b))
}

func (p *program) expect(line string) {
	p.t.Helper()
	p.d.WaitOutput(p.Process, soon, line)
}

func TestPersonUsesTheMenu(t *testing.T) {
	d := apptest.New(t, apptest.Options{Ordinary: true})
	p := start(t, d)
	p.expect("host true")
	working := snapshot.Snapshot{State: snapshot.Working, Line: "Claude is working", Machine: "work_shop", Waiting: 1, Capabilities: capabilities("read", "ask", "off")}
	p.update(working)
	d.WaitTrayIcon(soon)
	menu := d.OpenTrayMenu()
	// Entries come one after the other, also into a menu that is open.
	for _, want := range []string{"Claude is working", "work_shop", "1 waiting: show", "Pause", "Stop everything", "Capabilities", "Activity", "Permissions", "Settings", "Pair", "Quit"} {
		menu.WaitText(soon, strings.Fields(want)...)
	}
	d.Screenshot("menu")
	d.ReadAndClose(menu)
	d.ClickTray("Stop everything")
	p.expect("intent stop-all")
	d.ClickTray("waiting: show")
	p.expect("intent show-card")
	d.ClickTray("Activity")
	p.expect("intent show-window activity")
	d.ClickTray("Permissions")
	p.expect("intent show-window permissions")
	menu = d.OpenTrayMenu()
	menu.ClickText("Capabilities")
	d.WaitText(soon, "Files: reading only")
	d.Screenshot("capabilities")
	d.ClickText("Network")
	p.expect("intent set-capability network ask")

	p.update(snapshot.Snapshot{State: snapshot.Paused, Line: "Paused", Paused: true, Hub: snapshot.Hub{Paired: true}})
	menu = d.OpenTrayMenu()
	menu.WaitText(soon, "Resume")
	menu.WaitText(soon, "Unpair")
	menu.WaitNoText(soon, "waiting:", "show")
	menu.ClickText("Resume")
	p.expect("intent resume")
	d.ClickTray("Quit")
	p.expect("ended")
	if code := p.ExitCode(soon); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
}

// The icons as a panel draws them, to be looked at, and each unlike the others.
func TestStatesInThePanel(t *testing.T) {
	states := []snapshot.State{snapshot.Offline, snapshot.Online, snapshot.Working,
		snapshot.NeedsYou, snapshot.Paused, snapshot.SignIn}
	for _, dark := range []bool{false, true} {
		t.Run(map[bool]string{false: "light", true: "dark"}[dark], func(t *testing.T) {
			d := apptest.New(t, apptest.Options{Dark: dark})
			p := start(t, d)
			all := map[string]snapshot.State{}
			for _, state := range states {
				p.update(snapshot.Snapshot{State: state})
				var icon []byte
				if !d.Until(soon, func() bool {
					where, ok := d.TrayIcon()
					if !ok {
						return false
					}
					c := where.Min.Add(where.Max).Div(2)
					icon = d.Picture(string(state), image.Rect(c.X-14, c.Y-14, c.X+14, c.Y+14))
					_, old := all[string(icon)]
					return !old
				}) {
					t.Fatalf("the panel shows %q as it shows %q", state, all[string(icon)])
				}
				all[string(icon)] = state
			}
			p.update(snapshot.Snapshot{State: snapshot.NeedsYou, Line: "Claude waits for you", Waiting: 2})
			menu := d.OpenTrayMenu()
			menu.WaitText(soon, "2 waiting: show")
			d.Screenshot("menu")
		})
	}
}

func TestIdleTrayCostsNothing(t *testing.T) {
	d := apptest.New(t, apptest.Options{})
	p := start(t, d)
	p.update(snapshot.Snapshot{State: snapshot.Online, Line: "Online"})
	d.WaitTrayIcon(soon)
	d.TrayMenu() // the menu has been used once
	cost, err := apptest.Idle(p.PID, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("idle with the tray shown: %v", cost)
	if cost.Wakeups >= 1 {
		t.Errorf("%.1f wake-ups a second", cost.Wakeups)
	}
	if cost.Share > 30e6 {
		t.Errorf("%d bytes of memory", cost.Share)
	}
}

// qdot/systray-rs#46, tailscale#17525, #20349: a panel that comes late, or
// again, has the icon.
func TestPanelComesAndGoes(t *testing.T) {
	d := apptest.New(t, apptest.Options{NoTray: true})
	p := start(t, d)
	p.update(snapshot.Snapshot{State: snapshot.Online, Line: "Online"})
	p.expect("host false")
	d.StartTray()
	p.expect("host true")
	d.WaitTrayIcon(soon)
	d.StopTray()
	d.StartTray()
	d.WaitTrayIcon(soon)
	d.ClickTray("Stop everything")
	p.expect("intent stop-all")
	if n := strings.Count(p.Output(), "host "); n != 2 {
		t.Errorf("a panel that restarted counts as gone:\n%s", p.Output())
	}
	d.StopTray()
	if !d.Until(soon, func() bool { return strings.Count(p.Output(), "host false") == 2 }) {
		t.Errorf("a panel that stays away is not told:\n%s", p.Output())
	}
}

func TestNoBus(t *testing.T) {
	d := apptest.New(t, apptest.Options{NoBus: true})
	p := start(t, d)
	p.expect("host false")
	p.update(snapshot.Snapshot{State: snapshot.NeedsYou, Waiting: 1})
	p.say("notify Claude waits for you|It wants to run a command")
	p.expect("Notifications can't be shown")
	ends(t, p)
}

func TestNoNotificationService(t *testing.T) {
	d := apptest.New(t, apptest.Options{NoNotifications: true})
	p := start(t, d)
	for range 3 {
		p.say("notify Claude waits for you|It wants to run a command")
	}
	p.expect("Notifications can't be shown")
	ends(t, p)
	if n := strings.Count(p.Output(), "can't be shown"); n != 1 {
		t.Errorf("it complains %d times:\n%s", n, p.Output())
	}
}

func TestBusDies(t *testing.T) {
	d := apptest.New(t, apptest.Options{})
	p := start(t, d)
	p.update(snapshot.Snapshot{State: snapshot.Online, Line: "Online"})
	p.say("notify Claude waits for you|It wants to run a command")
	d.WaitTrayIcon(soon)
	d.KillBus()
	p.expect("host false")
	p.update(snapshot.Snapshot{State: snapshot.NeedsYou, Waiting: 1})
	p.say("notify Claude waits for you|again")
	p.expect("Notifications can't be shown")
	ends(t, p)
}

// ends asks the program to end, as the system does at log-out.
func ends(t *testing.T, p *program) {
	t.Helper()
	if !p.Running() {
		t.Fatalf("the program has ended:\n%s", p.Output())
	}
	p.Stop(soon)
	if code := p.ExitCode(0); code != 0 || !strings.Contains(p.Output(), "ended") {
		t.Errorf("the program ended with %d:\n%s", code, p.Output())
	}
}

func TestNotification(t *testing.T) {
	d := apptest.New(t, apptest.Options{})
	p := start(t, d)
	p.say("notify Claude waits for you|It wants to <b>run</b> Tom & Jerry")
	d.WaitText(soon, "Claude waits for you")
	d.WaitText(soon, "Jerry")
	d.Screenshot("notification")
	p.say("notify Claude waits for you|Two things wait")
	d.WaitText(soon, "Two things wait")
	d.WaitNoText(soon, "Jerry")
	d.ClickText("Two things wait")
	p.expect("notification clicked")
	d.WaitNoText(soon, "Two things wait")
	p.say("notify Claude waits for you|One thing waits")
	d.WaitText(soon, "One thing waits")
	p.say("hide")
	d.WaitNoText(soon, "One thing waits")
	p.say("notify Claude waits for you|The last thing")
	d.WaitText(soon, "The last thing")
	ends(t, p)
	d.WaitNoText(soon, "The last thing")
}

// While a program sees the screen or has mouse and keyboard, the icon and the menu
// of a real panel say so, between two of its actions too, and offer to end it.
func TestMenuWhileInControl(t *testing.T) {
	d := apptest.New(t, apptest.Options{})
	p := start(t, d)
	icon := func(unlike ...[]byte) (now []byte) {
		t.Helper()
		if !d.Until(soon, func() bool {
			where, ok := d.TrayIcon()
			if !ok {
				return false
			}
			c := where.Min.Add(where.Max).Div(2)
			now = d.Picture("in-control", image.Rect(c.X-14, c.Y-14, c.X+14, c.Y+14))
			for _, other := range unlike {
				if string(now) == string(other) {
					return false
				}
			}
			return true
		}) {
			t.Fatal("the icon stays as it was")
		}
		return now
	}
	paired := snapshot.Snapshot{State: snapshot.Online, Line: "Online", Hub: snapshot.Hub{Paired: true}}
	p.update(paired)
	d.WaitTrayIcon(soon)
	menu := d.OpenTrayMenu()
	menu.WaitText(soon, "Online") // the panel has what it was told
	d.ReadAndClose(menu)
	online := icon(nil)
	acts := paired
	acts.Control = &snapshot.Control{Who: "Claude", Sees: true, Acts: true}
	p.update(acts)
	icon(online)
	menu = d.OpenTrayMenu()
	for _, want := range []string{"Claude is using this computer", "Pause", "Stop everything"} {
		menu.WaitText(soon, strings.Fields(want)...)
	}
	d.Screenshot("menu-in-control")
	d.ReadAndClose(menu)
	d.ClickTray("Pause")
	p.expect("intent pause")
	d.ClickTray("Stop everything")
	p.expect("intent stop-all")

	taken := acts
	taken.Control = &snapshot.Control{Who: "Claude", Acts: true, Person: true}
	p.update(taken)
	menu = d.OpenTrayMenu()
	menu.WaitText(soon, "You", "took", "over;", "Claude", "waits")
	d.ReadAndClose(menu)

	p.update(paired) // it is over
	menu = d.OpenTrayMenu()
	menu.WaitText(soon, "Online")
	menu.WaitNoText(soon, "Claude")
	d.ReadAndClose(menu)
	if !d.Until(soon, func() bool { return bytes.Equal(icon(), online) }) {
		t.Error("the icon says that a program is in control still")
	}
}
