package ui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// settled is a snapshot with some of everything that can be settled.
func (s *stage) settled(n *snapshot.Snapshot) {
	now := s.clock.now
	n.Machine, n.State, n.Line = "Workshop PC", snapshot.Online, "Online · 2 sessions open"
	n.Hub = snapshot.Hub{Paired: true, Kind: "this", Name: "This computer only", Address: "http://127.0.0.1:4417", Online: true, SignIn: "kept in the keychain"}
	n.Secrets = "in the keychain"
	n.Grants = []snapshot.Grant{
		{ID: "g1", Who: "Claude", May: "Read and write in ~/project", Scope: "this session", Session: "s1", LastUsed: now.Add(-2 * time.Minute)},
		{ID: "g2", Who: "Claude", May: "Run `npm test` in ~/project, kept inside its folder", Scope: "always", LastUsed: now},
		{ID: "g3", Who: "Claude", May: "Delete what it did not make in ~/project", Scope: "15 minutes", Until: now.Add(11*time.Minute + 24*time.Second), LastUsed: now.Add(-time.Minute)},
		{ID: "g4", Who: "AutoGPT", May: "Reach example.org:443", Deny: true, Scope: "15 minutes", Until: now.Add(4 * time.Minute)},
	}
	n.Sessions = []snapshot.Session{
		{ID: "s1", Principal: "Claude", Title: "Write a small website", Folder: "/home/person/project", Mode: "Work in this folder", Since: now.Add(-12 * time.Minute), Running: 2},
		{ID: "s2", Principal: "Research agent", Folder: "/home/person/papers", Mode: "trusted", Since: now.Add(-3 * time.Minute), TrustedUntil: now.Add(14*time.Minute + 5*time.Second)},
	}
	n.Programs = []snapshot.Program{
		{ID: "p1", Name: "Claude", Since: now.Add(-40 * 24 * time.Hour), LastSeen: now.Add(-2 * time.Minute), Sessions: 1, CanDisconnect: true},
		{ID: "p2", Name: "Research agent", Since: now.Add(-24 * time.Hour), LastSeen: now, Sessions: 1, CanDisconnect: true},
		{ID: "p3", Name: "Old script", Since: now.Add(-300 * 24 * time.Hour), CanDisconnect: true},
	}
	n.Capabilities = []snapshot.Capability{
		{Name: "files", Label: "Files", Extent: "ask", Extents: []snapshot.Extent{{Value: "ask", Label: "May be asked for"}, {Value: "read", Label: "Reading only"}, {Value: "off", Label: "Never"}}},
		{Name: "shell", Label: "Commands", Extent: "contained", Extents: []snapshot.Extent{{Value: "ask", Label: "May be asked for"}, {Value: "contained", Label: "Inside their folder only"}, {Value: "off", Label: "Never"}}},
		{Name: "network", Label: "Network", Extent: "off", Extents: []snapshot.Extent{{Value: "ask", Label: "May be asked for"}, {Value: "off", Label: "Never"}}},
	}
	n.Settings = snapshot.Settings{Name: "Workshop PC", Folder: "/home/person/Documents", Autostart: true, Data: "/home/person/.local/share/localpc", Version: "0.4.0",
		Rates: []snapshot.Rate{{Capability: "session", Label: "Sessions", PerMinute: 60, Usual: 60}, {Capability: "files", Label: "Files", PerMinute: 3000, Usual: 3000},
			{Capability: "shell", Label: "Commands", PerMinute: 300, Usual: 600}, {Capability: "network", Label: "Connections", PerMinute: 600, Usual: 600}},
		Checks: []snapshot.Check{{Name: "Container", OK: true, Text: "Commands can be contained here."}, {Name: "Keychain", OK: false, Text: "The keychain is locked.", Remedy: "Unlock it, or log in again."}},
		Computer: &snapshot.Computer{Clipboard: "own", HideUsual: true, Usual: []string{"=keepassxc", "=pinentry", "(Private Browsing)"}, Hide: []string{"Online banking", "=thunderbird"},
			StopKey: "Ctrl+Alt+Escape"}}
}

// looks are the windows of settled things in their states.
var looks = []struct {
	name, window string
	set          func(*stage, fyne.Window)
	says         []string
}{
	{"permissions-empty", snapshot.WindowPermissions, func(s *stage, _ fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) { n.Grants, n.Sessions, n.Programs = nil, nil, nil })
	}, []string{"Nothing is remembered.", "No session is open.", "No program is connected yet."}},
	{"permissions", snapshot.WindowPermissions, func(s *stage, _ fyne.Window) {}, []string{"session ends", "11:24 left", "ends if unused until 2 Apr", "2 min ago", "never", "■ May not: Reach example.org:443", "14:05 left"}},
	{"permissions-long", snapshot.WindowPermissions, func(s *stage, _ fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Grants = append([]snapshot.Grant{{ID: "long", Who: longHub, May: "Run `" + strings.Repeat("find . -name '*.tmp' -delete; ", 40) + "` in " + longHost, Scope: "always"}}, n.Grants...)
			n.Sessions[0].Principal, n.Sessions[0].Title, n.Sessions[0].Folder = longHub, longHub, "/srv/"+longHost+"/"+longHost
			n.Programs[0].Name = longHub
		})
	}, []string{"Show all", "ends if unused for 30 days"}},
	{"permissions-revoke-all", snapshot.WindowPermissions, func(s *stage, w fyne.Window) { s.tap(w, "Revoke all…") }, []string{"Revoke all 4 answers?", "Keep them"}},
	{"permissions-elsewhere", snapshot.WindowPermissions, func(s *stage, _ fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Hub = snapshot.Hub{Paired: true, Kind: "own", Name: "Home", Address: "https://hub.example", Online: true}
			for i := range n.Programs {
				n.Programs[i].CanDisconnect = false
			}
		})
	}, []string{"on the Keys page of Home", "Open the Keys page"}},
	{"settings", snapshot.WindowSettings, func(s *stage, _ fyne.Window) {}, []string{"Start Local PC when you log in", "Paired with this computer only", "1 of 2 need a look", "What helps: Unlock it, or log in again.", "Version"}},
	{"settings-computer", snapshot.WindowSettings, func(s *stage, w fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) {
			c := *n.Settings.Computer
			c.Problems = []string{"Windows can't be told apart on this display: nothing is blacked out in pictures."}
			c.StopKeyProblem = "Ctrl+Alt+Escape belongs to another program, so it stops nothing here."
			c.PerAction, c.Remote = true, true
			c.Test = &snapshot.ScreenTest{Text: "1 of 2 screens is off: clicks land beside the mark.", Screens: []snapshot.Check{{Name: "Screen 1, 2560 × 1440", OK: true, Text: "All 5 marks were hit."},
				{Name: "Screen 2, 1920 × 1080", Text: "A click landed 12 pixels to the right of its mark.", Remedy: "Set the same scale for both screens."}}}
			n.Settings.Computer = &c
		})
		s.tap(w, "Show which")
		s.u.settings.scroll.ScrollToOffset(fyne.NewPos(0, 420))
	}, []string{"keepassxc · pinentry", "Online banking", "belongs to another program", "Something is off", "What helps: Set the same scale", "any program on this computer can answer cards"}},
	{"settings-bare", snapshot.WindowSettings, func(s *stage, _ fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Hub, n.Settings.Folder, n.Settings.Checks, n.Settings.Checking = snapshot.Hub{}, "", nil, true
			n.Settings.AutostartProblem = "Local PC was started by hand from a folder that may go away; install the package to start it at log-in."
		})
	}, []string{"A new folder for each program", "install the package", "is not paired", "◌ Checking…"}},
	{"settings-remove", snapshot.WindowSettings, func(s *stage, w fyne.Window) { s.tap(w, "Remove from this computer…") }, []string{"It takes away:", "Keep the record", "Erase everything", "type the word remove"}},
	{"settings-removing", snapshot.WindowSettings, func(s *stage, w fyne.Window) { s.removing(w) }, []string{"Removing…"}},
	{"settings-removed", snapshot.WindowSettings, func(s *stage, w fyne.Window) {
		s.removing(w)
		s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Remove, OK: true}})
		s.u.Handle(desklink.Down{Removed: &desklink.Removed{Notes: []string{"The record of what was done here stays in /home/person/.local/share/localpc."}}})
	}, []string{"Removed.", "You can now uninstall the package.", "stays in /home/person"}},
	{"settings-not-removed", snapshot.WindowSettings, func(s *stage, w fyne.Window) {
		s.removing(w)
		s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: snapshot.Remove, OK: true}})
		s.u.Handle(desklink.Down{Removed: &desklink.Removed{Problem: "keys and sign-ins: the keychain can't be used; unlock it"}})
	}, []string{"Not everything could be removed", "unlock it", "remove it once more"}},
	{"activity-banners", snapshot.WindowActivity, func(s *stage, _ fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Entries = s.entries(12)
			n.Sessions[0].Denied = 3
			n.Warnings, n.Standing = []string{"Commands can't be contained here."}, []string{"Everything is allowed without asking."}
		})
	}, []string{"Claude was denied 3 times in a row.", "Research agent is trusted: 14:05 left."}},
	{"main-banners", snapshot.WindowMain, func(s *stage, _ fyne.Window) {
		s.snapshot(func(n *snapshot.Snapshot) { n.Sessions[0].Denied = 3 })
	}, []string{"Claude was denied 3 times in a row.", "Research agent is trusted: 14:05 left."}},
}

func (s *stage) removing(w fyne.Window) {
	s.tap(w, "Remove from this computer…")
	s.u.settings.remove.field.SetText("remove")
	s.tap(w, "Remove from this computer")
}

// Each look, light and dark, at the usual size and at 200 %, in the window's
// own width and in a narrow one.
func TestSettledWindows(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, scale := range []float32{1, 2} {
			if (theme == "dark") != (scale == 2) && os.Getenv("LOCALPC_ARTIFACTS") == "" {
				continue
			}
			for _, l := range looks {
				name := fmt.Sprint(l.name, "-", theme)
				if scale == 2 {
					name += "-200"
				}
				t.Run(name, func(t *testing.T) {
					t.Setenv(kit.ThemeEnv, theme)
					s := newStage(t)
					s.snapshot(s.settled)
					w := s.window(l.window)
					w.Canvas().(test.WindowlessCanvas).SetScale(scale)
					if scale == 2 && l.window != snapshot.WindowMain {
						w.Resize(fyne.NewSize(512, 620))
					}
					l.set(s, w)
					s.keep(w, name)
					for _, want := range l.says {
						if !has(w, want) {
							t.Errorf("it lacks %q: %q", want, texts(w))
						}
					}
					if l.window != snapshot.WindowActivity { // its edges are closer
						s.inside(w)
					}
				})
			}
		}
	}
}
