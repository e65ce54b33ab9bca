//go:build linux

package main_test

import (
	"image"
	"image/color"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/consent"
)

// acting is the card of one action of mouse or keyboard.
func acting(id, does, exact string, looks bool, details ...string) desklink.Card {
	c := screens(id)
	r := &c.Request
	r.Action, r.Screens, r.Exact, r.Looks, r.Details = "act", nil, exact, looks, details
	r.Title, r.Sentence = does, "Claude wants to "+does+"."
	text := "does this once"
	if looks {
		text = "does this once, where the ring is in the picture"
	}
	r.Effects = []consent.Effect{{Kind: consent.EffectControl, Text: text}}
	r.Scopes, r.Rule.Action, r.Rule.Exact = []consent.Scope{consent.Once}, "act", exact
	return c
}

// TestPicturesOfTheScreenInUse keeps a picture of all that a person sees of a
// program at their screen, light and dark, at the usual size and at 200 %, and
// reads a sentence off each of the first.
func TestPicturesOfTheScreenInUse(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		o    apptest.Options
		env  []string
	}{
		{"light", apptest.Options{Width: 1280, Height: 1000}, []string{"LOCALPC_THEME=light", "FYNE_SCALE=1"}},
		{"dark-200", apptest.Options{Width: 2200, Height: 1900, Dark: true}, []string{"LOCALPC_THEME=dark", "FYNE_SCALE=2"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			d := start(t, v.o, v.env...)
			shot := func(name, window, sentence string) {
				t.Helper()
				d.Move(4, 4)
				if v.name == "light" {
					d.Window(window).WaitSentence(soon, sentence)
				} else {
					d.WaitWindow(soon, window)
					time.Sleep(2 * time.Second)
				}
				d.Screenshot(name)
			}
			show := func(c desklink.Card, looks ...consent.Look) {
				t.Helper()
				d.send(desklink.Down{Card: &c})
				d.shown(c.Request.ID)
				for _, l := range looks {
					l.Request = c.Request.ID
					d.send(desklink.Down{Look: &l})
				}
				time.Sleep(time.Second)
				shot(c.Request.ID, cardTitle, c.Request.Sentence)
				d.send(desklink.Down{Close: &desklink.CloseCard{ID: c.Request.ID}})
			}
			blue, green, sand := color.RGBA{0x3a, 0x6e, 0xd8, 255}, color.RGBA{0x2f, 0x9e, 0x6a, 255}, color.RGBA{0xd8, 0xc0, 0x90, 255}
			first := consent.Look{Screen: "DP-1", Data: seen(480, 270, blue, image.Rect(190, 40, 330, 230), image.Rect(350, 60, 460, 140)), Note: "Blacked out: KeePassXC", Covers: []consent.Cover{
				{Min: [2]int{190, 40}, Max: [2]int{330, 230}, Own: true}, {Min: [2]int{350, 60}, Max: [2]int{460, 140}, Name: "KeePassXC"}}}
			all := []consent.Screen{{Name: "DP-1", Label: "Screen 1 of 3, 2560 × 1440, DP-1, the main one", Chosen: true},
				{Name: "HDMI-1", Label: "Screen 2 of 3, 1080 × 1920, HDMI-1"}, {Name: "DP-2", Label: "Screen 3 of 3, 1920 × 1080, DP-2"}}
			for n, name := range []string{"one-screen", "two-screens", "three-screens"} {
				c := screens(name)
				c.Request.Screens, c.Request.Exact = all[:n+1], "a picture of screen 1"
				c.Request.Scopes = []consent.Scope{consent.Once, consent.Session, consent.Minutes15}
				c.Request.Rule = consent.Rule{Capability: consent.CapabilityComputer, Action: "see", Folder: d.Home + "/project", Effects: "see"}
				if n == 0 {
					c.Request.Screens = []consent.Screen{{Name: "DP-1", Label: "Your screen, 2560 × 1440", Chosen: true}}
				}
				show(c, []consent.Look{first, {Screen: "HDMI-1", Data: seen(270, 480, green)}, {Screen: "DP-2", Data: seen(480, 270, sand)}}[:n+1]...)
			}
			asks := screens("system-asks")
			show(asks, consent.Look{Screen: "DP-1", Note: "Your desktop asks about this in a window of its own. Once you answer there, the picture is shown here."})
			open := screens("no-curtain")
			open.Request.Details = []string{"Windows can't be told apart on this display, so none is blacked out: everything on this screen is visible. On Wayland no program can list the windows of this desktop, so nothing can be blacked out in pictures. Close what nobody else is to see, or log in with an X11 session."}
			show(open, consent.Look{Screen: "DP-1", Data: seen(480, 270, blue)})
			target := consent.Look{Data: seen(480, 270, blue)}
			show(acting("click", "click at 812, 440 on screen 1", "click at 812, 440 on screen 1", true), target)
			show(acting("drag", "drag from 100, 200 on screen 1 to 900, 640 on screen 1", "drag from 100, 200 on screen 1 to 900, 640 on screen 1", true), target)
			show(acting("type", `type "Dear customer, the prices are in the tabl…"`, "type: Dear customer,\nthe prices are in the table below.", true,
				`It goes to the window that has the keyboard: "notes.txt" of gedit.`), target)
			show(acting("key", "press ctrl+s", "press ctrl+s", false))
			hands := acting("hands", "use mouse and keyboard", "click at 812, 440 on screen 1", false,
				"Your own hands come first: when you move the mouse or type, it stops at once.", "It can do with them whatever you could, in every window but those of Local PC Executor.")
			hands.Request.Scopes, hands.Request.Effects[0].Text = []consent.Scope{consent.Once, consent.Session, consent.Minutes15}, "moves the mouse, clicks and types"
			hands.Request.Rule = consent.Rule{Capability: consent.CapabilityComputer, Action: "act", Exact: "mouse and keyboard", Folder: d.Home + "/project", Effects: "control"}
			show(hands)
			clip := acting("clipboard-read", "read what you have copied", "read the clipboard", false, "What is on the clipboard when you allow it is sent. What a password manager has marked as a secret is not.")
			clip.Request.Action, clip.Request.Effects = "clipboard-read", []consent.Effect{{Kind: consent.EffectClipboard, Text: "reads the clipboard"}}
			show(clip)
			clip = acting("clipboard-write", "put text on your clipboard", "The total is 1,204.50", false, "What you have copied before is replaced.")
			clip.Request.Action, clip.Request.Effects = "clipboard-write", []consent.Effect{{Kind: consent.EffectClipboard, Text: "replaces what you have copied"}}
			clip.Request.Scopes = []consent.Scope{consent.Once, consent.Session}
			clip.Request.Rule = consent.Rule{Capability: consent.CapabilityComputer, Action: "clipboard-write", Exact: "write to the clipboard", Folder: d.Home + "/project", Effects: "clipboard"}
			show(clip)
			run := acting("launch", "start the program gimp", "/usr/bin/gimp photo.png", false, "It runs with all your rights, like a program that you start yourself, and goes on when the session has ended.")
			run.Request.Action, run.Request.Risk = "launch", consent.RiskHigh
			run.Request.Effects = []consent.Effect{{Kind: consent.EffectRun, Text: "starts gimp"}, {Kind: consent.EffectControl, Text: "opens its window on your screen"}}
			show(run)
			d.WaitNoWindow(soon, cardTitle)

			for _, c := range []struct {
				name, says string
				change     func(*snapshot.Control)
				paused     bool
			}{
				{"strip-sees", "Claude sees your screen", func(*snapshot.Control) {}, false},
				{"strip-acts", "Claude is using your mouse and keyboard", func(c *snapshot.Control) { c.Acts = true }, false},
				{"strip-person", "You took over; Claude waits", func(c *snapshot.Control) { c.Acts, c.Person = true, true }, false},
				{"strip-paused", "Paused; Claude waits", func(c *snapshot.Control) { c.Acts = true }, true},
			} {
				d.snapshot(func(s *snapshot.Snapshot) {
					s.Control = &snapshot.Control{Session: "s", Who: "Claude", Sees: true, Since: time.Now(), Colour: "#d9480f", StopKey: "Ctrl+Alt+Escape"}
					c.change(s.Control)
					s.Paused = c.paused
				})
				shot(c.name, stripTitle, c.says)
			}
			d.control(nil)
			d.WaitNoWindow(soon, stripTitle)

			computer := func(change func(*snapshot.Computer)) {
				d.snapshot(func(s *snapshot.Snapshot) {
					s.Settings.Computer = &snapshot.Computer{Clipboard: "own", Hide: []string{"Bank", "=thunderbird"}, HideUsual: true, Usual: []string{"=keepassxc", "=bitwarden"}, StopKey: "Ctrl+Alt+Escape"}
					change(s.Settings.Computer)
				})
			}
			off := snapshot.ScreenTest{Text: "1 of 3 screens is off: see below.", Screens: []snapshot.Check{{Name: "Screen 1, DP-1", OK: true, Text: "The click landed where it was aimed."},
				{Name: "Screen 2, HDMI-1", Text: "The click landed 12 pixels too far to the right.", Remedy: "Set this screen's scale to 100 % and test again."},
				{Name: "Screen 3, DP-2", OK: true, Text: "The click landed where it was aimed."}}}
			computer(func(*snapshot.Computer) {})
			set := d.open(snapshot.WindowSettings, "Settings")
			shot("settings", "Settings", "Settings")
			middle, _ := set.Rect()
			below := func() { d.Scroll((middle.Min.X+middle.Max.X)/2, (middle.Min.Y+middle.Max.Y)/2, 12) }
			below()
			for _, c := range []struct {
				name   string
				change func(*snapshot.Computer)
			}{
				{"settings-computer", func(*snapshot.Computer) {}},
				{"settings-testing", func(c *snapshot.Computer) { c.Testing = true }},
				{"settings-ok", func(c *snapshot.Computer) { c.Test = &snapshot.ScreenTest{OK: true, Text: "3 screens OK"} }},
				{"settings-off", func(c *snapshot.Computer) { c.Test = &off }},
			} {
				computer(c.change)
				time.Sleep(700 * time.Millisecond)
				d.Screenshot(c.name)
			}
		})
	}
}
