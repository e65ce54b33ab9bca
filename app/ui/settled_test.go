package ui

import (
	"slices"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

func (s *stage) told(kind snapshot.IntentKind, ok bool, text string) {
	s.u.Handle(desklink.Down{Told: &desklink.Told{Intent: kind, OK: ok, Text: text}})
}

// waits is how many timers are set.
func (c *clock) waits() (n int) {
	for _, t := range c.timers {
		if !t.off {
			n++
		}
	}
	return n
}

func (s *stage) settledWindow(name string) fyne.Window {
	s.snapshot(s.settled)
	w := s.window(name)
	s.intents()
	return w
}

// anomalyco/opencode#9554: what was allowed can be taken back.
func TestRevoke(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowPermissions)
	row := func(id string) *kit.Button { return s.u.permits.grants[id].revoke }
	w.Canvas().Focus(row("g2"))
	keyOn(w, fyne.KeySpace)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Revoke, Text: "g2"})
	if !row("g2").Disabled() {
		t.Error("it can be revoked twice")
	}
	s.told(snapshot.Revoke, false, "The permission could not be revoked; the log says why.")
	if row("g2").Disabled() || !has(w, "could not be revoked") {
		t.Errorf("after a failure the window says %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Grants = append(n.Grants[:1:1], n.Grants[2:]...) })
	if has(w, "npm test") || w.Canvas().Focused() != fyne.Focusable(row("g3")) {
		t.Errorf("the keyboard is at %v, want the next row", w.Canvas().Focused())
	}
	for _, back := range []func(){func() { s.tap(w, "Keep them") }, func() { keyOn(w, fyne.KeyEscape) }} {
		s.tap(w, "Revoke all…")
		if !has(w, "Revoke all 3 answers?") || w.Canvas().Focused() != fyne.Focusable(s.button(w, "Keep them")) {
			t.Fatalf("it asks %q with the keyboard at %v", texts(w), w.Canvas().Focused())
		}
		back()
		if got := s.intents(); len(got) != 0 || has(w, "Keep them") || !s.u.open[w] {
			t.Fatalf("taken back, it sent %+v", got)
		}
	}
	s.tap(w, "Revoke all…")
	s.tap(w, "Revoke all")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Revoke})
	s.snapshot(func(n *snapshot.Snapshot) { n.Grants = nil })
	if !has(w, "Nothing is remembered.") {
		t.Errorf("the window says %q", texts(w))
	}
	keyOn(w, fyne.KeyEscape)
	if s.u.open[w] {
		t.Error("Escape does not close the window")
	}
}

// What counts down ticks while the window is open, and wakes nothing after.
func TestCountdownsTick(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowPermissions)
	s.clock.run(5 * time.Second)
	for _, want := range []string{"11:19 left", "14:00 left", "3:55 left"} {
		if !has(w, want) {
			t.Errorf("no %q after 5 s: %q", want, texts(w))
		}
	}
	s.clock.run(12 * time.Minute)
	if !has(w, "ended") || has(w, "11:19") {
		t.Errorf("at its end the window says %q", texts(w))
	}
	s.u.hide(w)
	a := s.window(snapshot.WindowActivity)
	if s.clock.run(time.Second); !has(a, "Research agent is trusted: 1:59 left.") {
		t.Errorf("Activity says %q", texts(a))
	}
	s.u.hide(a)
	if n := s.clock.waits(); n != 0 {
		t.Errorf("%d timers go on behind hidden windows", n)
	}
	s.window(snapshot.WindowPermissions)
	s.snapshot(func(n *snapshot.Snapshot) { n.Grants, n.Sessions = n.Grants[:2], nil })
	if n := s.clock.waits(); n != 1 || s.clock.timers[len(s.clock.timers)-1].at.Sub(s.clock.now) < 20*time.Second {
		t.Errorf("with nothing that counts down, %d timers: %+v", n, s.clock.timers)
	}
}

func TestSessionModes(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowPermissions)
	r := s.u.permits.sessions["s1"]
	w.Canvas().Focus(r.mode.Segments)
	keyOn(w, fyne.KeyLeft, fyne.KeyRight, fyne.KeyRight) // over what is between
	s.clock.run(time.Second)
	s.wantIntent(snapshot.Intent{Kind: snapshot.SetMode, Entry: "s1", Text: "ask"})
	s.snapshot(func(n *snapshot.Snapshot) { n.Line = "meanwhile" })
	if r.mode.Selected() != 2 {
		t.Error("the choice jumps back before it is answered")
	}
	s.told(snapshot.SetMode, false, "This session has ended.")
	if r.mode.Selected() != 1 || !has(w, "This session has ended.") {
		t.Errorf("refused, it shows %d and says %q", r.mode.Selected(), texts(w))
	}

	// Trust is asked for once more.
	keyOn(w, fyne.KeyRight, fyne.KeyRight)
	s.clock.run(time.Second)
	if got := s.intents(); len(got) != 0 || !has(w, "Trust it for 15 minutes?") {
		t.Fatalf("sent %+v, says %q", got, texts(w))
	}
	keyOn(w, fyne.KeyEscape)
	if r.mode.Selected() != 1 || has(w, "Trust it") || !s.u.open[w] {
		t.Errorf("taken back, it shows %d", r.mode.Selected())
	}
	w.Canvas().Focus(r.mode.Segments)
	keyOn(w, fyne.KeyRight, fyne.KeyRight)
	s.clock.run(time.Second)
	for _, b := range s.buttons(w, "Trust for 15 minutes") {
		b.Tapped(nil)
	}
	s.wantIntent(snapshot.Intent{Kind: snapshot.SetMode, Entry: "s1", Text: "trusted"})
	s.told(snapshot.SetMode, true, "")
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Sessions = slices.Clone(n.Sessions)
		n.Sessions[0].Mode, n.Sessions[0].TrustedUntil = "trusted", s.clock.now.Add(15*time.Minute)
	})
	if r.mode.Selected() != 3 || !has(w, "15:00 left") || has(w, "Trust it") {
		t.Errorf("it shows %d and says %q", r.mode.Selected(), texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Sessions = slices.Clone(n.Sessions)
		n.Sessions[0].Mode, n.Sessions[0].TrustedUntil = "work", time.Time{}
	})
	if r.mode.Selected() != 1 {
		t.Error("what has ended is still shown")
	}
}

// buttons are all with a word on them, in order.
func (s *stage) buttons(w fyne.Window, word string) (all []*kit.Button) {
	walk(w.Content(), func(o fyne.CanvasObject) {
		if b, ok := o.(*kit.Button); ok && b.Text() == word {
			all = append(all, b)
		}
	})
	return all
}

func TestEndSessionAndDisconnect(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowPermissions)
	s.buttons(w, "End session")[0].Tapped(nil) // something runs there
	if got := s.intents(); len(got) != 0 || !has(w, "End this session?") {
		t.Fatalf("sent %+v, says %q", got, texts(w))
	}
	s.tap(w, "Let it go on")
	s.buttons(w, "End session")[1].Tapped(nil) // nothing runs there
	s.wantIntent(snapshot.Intent{Kind: snapshot.EndSession, Entry: "s2"})
	s.told(snapshot.EndSession, true, "")

	s.buttons(w, "Disconnect…")[0].Tapped(nil)
	if !has(w, "Disconnect Claude? Its key stops working, its 1 open session ends with all that runs there, and what it was allowed is forgotten.") {
		t.Fatalf("it asks %q", texts(w))
	}
	s.tap(w, "Keep it")
	s.buttons(w, "Disconnect…")[0].Tapped(nil)
	s.tap(w, "Disconnect")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Disconnect, Text: "p1"})
	s.told(snapshot.Disconnect, true, "Claude is disconnected.")
	s.snapshot(func(n *snapshot.Snapshot) { n.Programs = n.Programs[1:] })
	if !has(w, "Claude is disconnected.") || len(s.buttons(w, "Disconnect…")) != 2 {
		t.Errorf("the window says %q", texts(w))
	}

	s.snapshot(func(n *snapshot.Snapshot) {
		n.Hub = snapshot.Hub{Paired: true, Kind: "own", Name: "Home", Address: "https://hub.example/"}
		n.Programs = []snapshot.Program{{ID: "p9", Name: "Far"}}
	})
	if len(s.buttons(w, "Disconnect…")) != 0 {
		t.Error("a program of another hub can be disconnected here")
	}
	s.tap(w, "Open the Keys page")
	if !slices.Equal(s.visited, []string{"https://hub.example/keys"}) {
		t.Errorf("visited %q", s.visited)
	}
}

// A field is saved by itself, says at its place what was wrong, and keeps what
// is typed while snapshots come.
func TestSettingsAreSavedByField(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowSettings)
	name := s.u.settings.general.name.field
	w.Canvas().Focus(name)
	name.SetText("Workshop P")
	s.snapshot(func(n *snapshot.Snapshot) { n.Settings.Folder, n.Settings.Name = "/home/person/elsewhere", "Shed PC" })
	if name.Text != "Workshop P" || !has(w, "/home/person/elsewhere") || w.Canvas().Focused() != fyne.Focusable(name) {
		t.Fatalf("a snapshot made %q of what was typed", name.Text)
	}
	name.SetText("")
	keyOn(w, fyne.KeyReturn)
	if got := s.intents(); len(got) != 0 || !has(w, "▲ Give this computer a name") {
		t.Fatalf("sent %+v, says %q", got, texts(w))
	}
	keyOn(w, fyne.KeyEscape)
	if name.Text != "Shed PC" || has(w, "Give this computer") || !s.u.open[w] {
		t.Fatalf("Escape leaves %q: %q", name.Text, texts(w))
	}
	name.SetText(" Attic ")
	rate := s.u.settings.limits.rows[2]
	w.Canvas().Focus(rate.field) // the name is saved as the keyboard goes
	attic, three := "Attic", map[string]int{"shell": 1200}
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Name: &attic}})
	rate.field.SetText("many")
	keyOn(w, fyne.KeyReturn)
	if !has(w, "▲ Type a number from 1 to 100000.") {
		t.Errorf("the window says %q", texts(w))
	}
	rate.field.SetText("1200")
	keyOn(w, fyne.KeyReturn)
	if got := s.intents(); len(got) != 0 {
		t.Fatalf("sent %+v before the first was answered", got)
	}
	s.told(snapshot.Change, false, "The name is taken.")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Rates: three}})
	s.told(snapshot.Change, true, "Saved.")
	if !has(w, "▲ The name is taken.") || !has(w, "✓ Saved") || has(w, "Type a number") {
		t.Errorf("the window says %q", texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Settings.Rates = slices.Clone(n.Settings.Rates)
		n.Settings.Rates[2].PerMinute = 1200
	})
	s.clock.run(5 * time.Second)
	if has(w, "✓ Saved") || !has(w, "▲ The name is taken.") || name.Text != " Attic " {
		t.Errorf("the window says %q, the name is %q", texts(w), name.Text)
	}
	w.Canvas().Focus(name)
	keyOn(w, fyne.KeyReturn) // once more, unchanged
	attic = "Attic"
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Name: &attic}})
	name.SetText("Cellar")
	s.u.hide(w) // saved, in its turn
	s.told(snapshot.Change, true, "Saved.")
	cellar := "Cellar"
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Name: &cellar}})
	s.told(snapshot.Change, true, "Saved.")
	s.window(snapshot.WindowSettings)
	s.tap(w, "Reset to defaults")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Rates: map[string]int{"session": 0, "files": 0, "shell": 0, "network": 0}}})
}

func TestSettingsSwitches(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowSettings)
	g := s.u.settings.general
	g.check.Tapped(nil)
	off, none := false, ""
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Autostart: &off}})
	s.told(snapshot.Change, false, "The system does not let it.")
	if !g.check.On() || !has(w, "▲ The system does not let it.") {
		t.Errorf("refused, it is ticked %v: %q", g.check.On(), texts(w))
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Settings.AutostartProblem = "There is no desktop here." })
	g.check.Tapped(nil)
	if got := s.intents(); len(got) != 0 || !has(w, "There is no desktop here.") {
		t.Errorf("sent %+v, says %q", got, texts(w))
	}
	s.tap(w, "Offer a new folder instead")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{Folder: &none}})
	s.told(snapshot.Change, true, "")

	files := s.u.settings.caps.rows[0]
	w.Canvas().Focus(files.Segments)
	keyOn(w, fyne.KeyRight, fyne.KeyRight)
	s.clock.run(time.Second)
	s.wantIntent(snapshot.Intent{Kind: snapshot.SetCapability, Text: "files", Way: "off"})
	s.told(snapshot.SetCapability, false, "This computer could not write its record.")
	if files.Selected() != 0 || !has(w, "could not write its record") {
		t.Errorf("refused, it shows %d: %q", files.Selected(), texts(w))
	}

	s.tap(w, "Run the self-test")
	s.wantIntent(snapshot.Intent{Kind: snapshot.SelfTest})
	if !has(w, "◌ Checking…") || !s.button(w, "Run the self-test").Disabled() {
		t.Errorf("the window says %q", texts(w))
	}
	s.told(snapshot.SelfTest, true, "Looking at what works here.")
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Settings.Checks = []snapshot.Check{{Name: "Container", OK: true, Text: "It works."}}
	})
	if !has(w, "✓ Everything works") || s.button(w, "Run the self-test").Disabled() {
		t.Errorf("the window says %q", texts(w))
	}
	s.tap(w, "Unpair…")
	s.tap(w, "Keep it paired")
	s.tap(w, "Unpair…")
	s.tap(w, "Unpair")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Unpair})
}

// Nobody removes the program by accident, and the last word is read.
func TestRemoveFromThisComputer(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowSettings)
	r := s.u.settings.remove
	s.tap(w, "Remove from this computer…")
	if !s.button(w, "Remove from this computer").Disabled() {
		t.Fatal("it is removed without a word")
	}
	keyOn(w, fyne.KeyReturn) // on the options
	w.Canvas().Focus(r.field)
	typeOn(w, "remov")
	keyOn(w, fyne.KeyReturn)
	if got := s.intents(); len(got) != 0 {
		t.Fatalf("sent %+v", got)
	}
	keyOn(w, fyne.KeyEscape)
	if !has(w, "What programs may ask for") || !s.u.open[w] {
		t.Fatalf("Escape leads to %q", texts(w))
	}
	s.tap(w, "Remove from this computer…")
	if r.field.Text != "" {
		t.Error("what was typed before is still there")
	}
	w.Canvas().Focus(r.options)
	keyOn(w, fyne.KeyDown)
	w.Canvas().Focus(r.field)
	typeOn(w, "Remove")
	s.tap(w, "Remove from this computer")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Remove, Text: "erase"})
	s.told(snapshot.Remove, false, "A session could not be ended.")
	if !has(w, "A session could not be ended.") || !s.button(w, "Remove from this computer").Disabled() {
		t.Fatalf("failed, the window says %q", texts(w))
	}
	typeOn(w, "remove")
	keyOn(w, fyne.KeyReturn)
	s.wantIntent(snapshot.Intent{Kind: snapshot.Remove, Text: "erase"})
	keyOn(w, fyne.KeyEscape)
	other := s.window(snapshot.WindowActivity)
	s.told(snapshot.Remove, true, "It is being removed. The hub could not be told.")
	if !has(w, "The hub could not be told.") || !has(w, "Removing…") || has(w, "uninstall") || has(w, "Permissions") {
		t.Errorf("meanwhile the window says %q", texts(w))
	}
	if s.u.open[other] {
		t.Error("a window stays open that has no use any more")
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Problem = "Not connected." })
	s.u.Handle(desklink.Down{Removed: &desklink.Removed{Notes: []string{"Not this program's, so it stays: notes.txt"}}})
	s.clock.run(time.Hour) // it is there until somebody has read it
	if !s.u.open[w] || !has(w, "Removed.") || !has(w, "You can now uninstall the package.") || !has(w, "The hub could not be told.") || !has(w, "notes.txt") || has(w, "being removed") || has(w, "Not connected") {
		t.Fatalf("at the end the window says %q", texts(w))
	}
	s.tap(w, "Close")
	if s.u.open[w] {
		t.Error("Close does not close it")
	}
}

func TestBannersOfSessions(t *testing.T) {
	s := newStage(t)
	w := s.settledWindow(snapshot.WindowActivity)
	denied := func(n int) {
		s.snapshot(func(sn *snapshot.Snapshot) {
			sn.Sessions = slices.Clone(sn.Sessions)
			sn.Sessions[0].Denied = n
		})
	}
	if denied(2); has(w, "in a row") {
		t.Error("it is offered too early")
	}
	denied(3)
	main := s.window(snapshot.WindowMain)
	s.tap(w, "Keep")
	if has(w, "in a row") || has(main, "in a row") {
		t.Error("kept, it is still offered to be ended")
	}
	denied(4)
	if !has(w, "Claude was denied 4 times in a row.") || !has(main, "Claude was denied 4 times in a row.") {
		t.Errorf("the window says %q", texts(w))
	}
	s.intents()
	s.tap(w, "End session")
	s.wantIntent(snapshot.Intent{Kind: snapshot.EndSession, Entry: "s1"})
	s.tap(main, "End now")
	s.wantIntent(snapshot.Intent{Kind: snapshot.SetMode, Entry: "s2", Text: "work"})
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Sessions, n.Warnings, n.Standing = nil, []string{"No container."}, []string{"All is allowed."}
	})
	if has(w, "in a row") || has(w, "is trusted") || !has(w, "All is allowed.") {
		t.Errorf("the window says %q", texts(w))
	}
	if n := len(s.buttons(w, "Dismiss")); n != 1 {
		t.Fatalf("%d lines can be dismissed", n)
	}
	s.tap(w, "Dismiss")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Dismiss, Text: "No container."})
}

// From each window the others are one step away.
func TestWayBetweenWindows(t *testing.T) {
	s := newStage(t)
	s.snapshot(s.settled)
	names := map[string]string{snapshot.WindowActivity: "Activity", snapshot.WindowPermissions: "Permissions", snapshot.WindowSettings: "Settings", snapshot.WindowPair: "Connect a program"}
	for _, from := range []string{snapshot.WindowActivity, snapshot.WindowPermissions, snapshot.WindowSettings, snapshot.WindowPair, snapshot.WindowMain} {
		for to, word := range names {
			if to == from {
				continue
			}
			w := s.window(from)
			for other := range s.u.open {
				if other != w {
					s.u.hide(other)
				}
			}
			s.buttons(w, word)[0].Tapped(nil)
			if len(s.u.open) != 2 {
				t.Errorf("%s does not lead from %s to %s", word, from, to)
			}
		}
	}
}
