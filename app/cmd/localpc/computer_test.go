//go:build linux

package main

import (
	"fmt"
	"image"
	"image/color"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/snapshot"
)

// private is in the title of a window that is hidden by default.
const private = "Bank - Mozilla Firefox Private Browsing"

// A program sees the screen and works a window there, as the person allowed it
// by mouse; the person's own hands, their cards and this program's windows come
// first.
func TestAProgramWorksTheScreen(t *testing.T) {
	t.Parallel()
	p := startForAgent(t, apptest.Options{Width: 1280, Height: 800})
	d := p.d
	a := p.agent("Claude")
	editor := p.reader("editor", "50x12+60+420")
	d.Start("xterm", "-title", private, "-geometry", "40x8+700+120", "-bg", "#e0f0ff", "-e", "cat")
	hidden := d.WaitWindow(20*time.Second, private)

	// The card shows what would be seen, with what is hidden black in it.
	c := a.start("local_pc_screenshot", nil)
	card := a.asked(c, "Claude is requesting screen access")
	card.WaitSentence(10*time.Second, "Windows on your hide list are blacked out")
	thumbnail(t, p, card)
	d.Screenshot("screen-card")
	p.allowedForSession(card)
	first := a.wait(c)
	if first.failed {
		t.Fatalf("no picture came: %s", first.text)
	}
	a.keep(first)
	if dark := first.dark(t, hidden.Rect); dark < 0.99 {
		t.Errorf("%.0f %% of a private window is black in the picture", 100*dark)
	}
	if dark := share(d.Capture(), hidden.Rect); dark > 0.5 {
		t.Error("the person does not see their own private window")
	}
	if dark := first.dark(t, editor.rect); dark > 0.5 {
		t.Error("what is not hidden is black in the picture")
	}

	// The strip says who sees, and is black in the picture itself.
	p.waitControl("Claude sees", func(c *snapshot.Control) bool { return c != nil && c.Who == "Claude" && c.Sees && !c.Acts })
	strip := p.strip("Claude sees your screen")
	d.Screenshot("strip")
	seen := a.see(nil)
	if dark := seen.dark(t, strip); dark < 0.99 {
		t.Errorf("%.0f %% of the strip is black in the picture", 100*dark)
	}

	// Mouse and keyboard are asked for once; what is typed arrives as it is.
	x, y := editor.middle()
	a.acting("Claude", a.see(nil), x, y)
	strip = p.strip("Claude is using your mouse and keyboard")
	a.click(a.see(nil), x, y)
	const text = "héllo ñ Ω 世界 {@~}|A"
	a.call("local_pc_type", map[string]any{"text": text + "\n"})
	editor.has(text + "\n")
	a.call("local_pc_key", map[string]any{"key": "x"})
	a.call("local_pc_key", map[string]any{"key": "Return"})
	editor.has(text + "\nx\n")

	// The person's hands pause it at once; it goes on after a new picture.
	d.Move(900, 600)
	d.Move(910, 610)
	a.refused("new picture", "local_pc_key", map[string]any{"key": "y"})
	p.waitControl("the person is at work", func(c *snapshot.Control) bool { return c != nil && c.Person })
	d.Screenshot("person")
	a.refused("new picture", "local_pc_click", map[string]any{"coordinate": seen.at(t, x, y)})
	a.click(a.see(nil), x, y)
	a.call("local_pc_type", map[string]any{"text": "on\n"})
	editor.has(text + "\nx\non\n")

	// The strip, Settings and an open card are out of its reach, and that is noted.
	at := a.see(nil)
	middle := strip.Min.Add(strip.Max).Div(2)
	a.refused("Local PC Executor", "local_pc_click", map[string]any{"coordinate": at.at(t, middle.X, middle.Y)})
	p.intend(snapshot.Intent{Kind: snapshot.ShowWindow, Text: snapshot.WindowSettings})
	settings := d.WaitWindow(20*time.Second, "Settings").Rect
	d.Window("Settings").WaitText(20*time.Second, "Folder")
	at = a.see(nil)
	if dark := at.dark(t, settings); dark < 0.95 {
		t.Errorf("%.0f %% of Settings is black in the picture", 100*dark)
	}
	a.refused("Local PC Executor", "local_pc_click", map[string]any{"coordinate": at.at(t, settings.Min.X+settings.Dx()/2, settings.Min.Y+settings.Dy()/2)})
	d.Click(settings.Min.X+settings.Dx()/2, settings.Min.Y+20)
	a.see(nil)
	a.refused("Local PC Executor", "local_pc_type", map[string]any{"text": "into settings"})
	d.CloseWindow(d.WaitWindow(20*time.Second, "Settings"))
	d.WaitNoWindow(20*time.Second, "Settings")
	at = a.see(nil)
	clip := a.start("local_pc_clipboard_write", map[string]any{"text": "hers"})
	const copies = "Claude wants to put text on your clipboard"
	card = a.asked(clip, copies)
	r, _ := card.Rect()
	a.refused("question is open", "local_pc_click", map[string]any{"coordinate": at.at(t, r.Max.X-60, r.Max.Y-40)})
	a.refused("question is open", "local_pc_key", map[string]any{"key": "Return"})
	d.Forge("mousemove", fmt.Sprint(r.Max.X-60), fmt.Sprint(r.Max.Y-40), "sleep", "1", "click", "1")
	time.Sleep(time.Second)
	p.press(p.card(copies), "Deny")
	if g := a.wait(clip); !g.failed || !strings.Contains(g.text, "declined") {
		t.Errorf("the clipboard was written: %+v", g)
	}
	p.noCard()
	for _, what := range []string{"Local PC Executor", "question is open"} {
		if out := p.must("record", "tail"); !strings.Contains(out, what) {
			t.Errorf("the record does not say %q:\n%s", what, out)
		}
	}
	if got := editor.read(); got != text+"\nx\non\n" {
		t.Errorf("the editor has read %q", got)
	}

	// Activity keeps exactly the picture that was sent; Stop ends all of it.
	a.see(nil)
	p.intend(snapshot.Intent{Kind: snapshot.ShowWindow, Text: snapshot.WindowActivity})
	p.choose([]string{"See", "screen"}, "Exactly", "this")
	d.Screenshot("activity-picture")
	for range 5 { // its words, and with them its buttons, change as the hand comes
		d.In(p.strip("Claude")).ClickText("Stop")
		if d.Until(5*time.Second, func() bool { return p.status().Stopped != nil }) {
			break
		}
	}
	p.waitControl("nobody sees", func(c *snapshot.Control) bool { return c == nil })
	a.refused("", "local_pc_screenshot", nil)
}

// share is how much of an area of a picture is black.
func share(img *image.RGBA, area image.Rectangle) float64 {
	black := 0
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			if c := img.RGBAAt(x, y); c.R < 16 && c.G < 16 && c.B < 16 {
				black++
			}
		}
	}
	return float64(black) / float64(area.Dx()*area.Dy())
}

// ownGrey is what this program's own windows are in a card's picture.
var ownGrey = color.RGBA{0x6b, 0x72, 0x80, 255}

// thumbnail waits until a card has a picture of the screen, with something
// hidden, and so black, in it, and the card itself, which is grey.
func thumbnail(t testing.TB, p *program, card *apptest.Area) {
	t.Helper()
	if !p.d.Until(15*time.Second, func() bool {
		r, ok := card.Rect()
		if !ok {
			return false
		}
		img := p.d.Capture()
		black, grey := false, false
		for y := r.Min.Y; y < r.Max.Y-24; y++ {
			for x := r.Min.X; x < r.Max.X-60; x++ {
				grey = grey || near(img.RGBAAt(x, y), ownGrey) && near(img.RGBAAt(x+59, y), ownGrey) && near(img.RGBAAt(x+30, y+23), ownGrey)
				black = black || share(img, image.Rect(x, y, x+12, y+1)) == 1 && share(img, image.Rect(x, y, x+12, y+8)) == 1
			}
		}
		return black && grey
	}) {
		p.d.Screenshot("no-thumbnail")
		t.Error("the card does not show the screen with what is hidden black in it")
	}
}

// near tells whether two colours are alike, as a JPEG file leaves them.
func near(a, b color.RGBA) bool {
	apart := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return apart(a.R, b.R) < 8 && apart(a.G, b.G) < 8 && apart(a.B, b.B) < 8
}

// strip is where the strip is, once it says this.
func (p *program) strip(words string) image.Rectangle {
	p.t.Helper()
	var r image.Rectangle
	if !p.d.Until(20*time.Second, func() bool {
		for _, w := range p.d.Popups() {
			if w.PID == p.desktopPID() && w.Rect.Dy() < 90 && p.d.In(w.Rect).Contains(words) {
				r = w.Rect
				return true
			}
		}
		return false
	}) {
		p.d.Screenshot("no-strip")
		p.t.Fatalf("there is no strip that says %q; there are %+v", words, p.d.Popups())
	}
	return r
}

// holds are what an agent can have held down: a button, keys and modifiers in the
// middle of local_pc_hold_key, a button and a modifier in the middle of a drag.
var holds = []struct {
	name string
	held int
	do   func(t testing.TB, a *agent) chan got
}{
	{"a button, and keys in the middle of hold_key", 4, func(t testing.TB, a *agent) chan got {
		a.call("local_pc_mouse_down", map[string]any{"coordinate": a.see(nil).at(t, 300, 450)})
		return a.start("local_pc_hold_key", map[string]any{"key": "ctrl+shift+b", "duration_s": 120})
	}},
	{"a button and a modifier in the middle of a drag", 2, func(t testing.TB, a *agent) chan got {
		g := a.see(nil)
		a.call("local_pc_mouse_move", map[string]any{"coordinate": g.at(t, 300, 450)})
		var path [][]int
		for i := range 5000 {
			path = append(path, g.at(t, 200+i%150, 420+i%40))
		}
		return a.start("local_pc_drag", map[string]any{"path": path, "modifiers": []string{"shift"}})
	}},
}

// What is held down is let go of within a second, however it ends: the person's
// hand, the hub killed, the process at the display killed, localpc killed.
func TestNothingStaysHeld(t *testing.T) {
	t.Parallel()
	p := startForAgent(t, apptest.Options{})
	d := p.d
	hub := startBareHub(t, p)
	p.reader("editor", "50x12+60+320")
	key := hub.word("key", "add", "Claude")
	var a *agent
	ready := func() { // the person allows it, once a session
		t.Helper()
		p.waitStatus(60*time.Second, "online", func(s snapshot.Snapshot) bool { return s.Hub.Online })
		a = agentAt(t, p, hub.address, key)
		a.acting("Claude", a.shown("Claude"), 300, 450)
	}
	ready()
	for _, end := range []struct {
		name string
		do   func()
		say  string // what the program is told; "": it may be told nothing
	}{
		{"the process at the display was killed", func() {
			if err := syscall.Kill(p.handsPID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}, "new picture"},
		{"the person pressed a key", func() { d.Key("Escape") }, "new picture"},
		{"the hub was killed", func() { hub.p.Kill() }, ""},
		{"localpc was killed", func() { p.p.Kill() }, ""},
	} {
		for _, held := range holds {
			cards := p.desktopPID()
			c := held.do(t, a)
			if !d.Until(20*time.Second, func() bool { return d.Held() >= held.held || len(c) > 0 }) || len(c) > 0 {
				t.Fatalf("%s: %d are held, not %d; the call gave %+v", held.name, d.Held(), held.held, a.wait(c))
			}
			end.do()
			began := time.Now()
			if !d.Until(10*time.Second, func() bool { return d.Held() == 0 }) {
				t.Fatalf("%s: %d are down still, 10 s after %s", held.name, d.Held(), end.name)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: all were up %v after %s", held.name, took.Round(time.Millisecond), end.name)
			}
			if g := a.wait(c); !g.failed || !strings.Contains(g.text, end.say) {
				t.Errorf("%s: when %s the program was told %+v", held.name, end.name, g)
			}
			switch {
			case !hub.p.Running():
				p.waitControl("nobody is in control without a hub", func(c *snapshot.Control) bool { return c == nil })
				hub.run()
				p.waitStatus(60*time.Second, "online again", func(s snapshot.Snapshot) bool { return s.Hub.Online })
			case !p.p.Running():
				if !d.Until(10*time.Second, func() bool { return p.handsPID() == 0 }) {
					t.Error("the process at the display lives on without localpc")
				}
				p.run()
				ready()
			case p.desktopPID() != cards:
				t.Errorf("%s: the cards went when %s", held.name, end.name)
			}
		}
	}
}

// With several screens the person chooses; what was not chosen stays unseen and
// out of reach. The screen test finds all of them.
func TestScreensAreChosenOnTheCard(t *testing.T) {
	t.Parallel()
	p := startForAgent(t, apptest.Options{Width: 1500, Height: 800})
	d := p.d
	left, right := image.Rect(0, 0, 900, 800), image.Rect(900, 0, 1500, 800)
	d.Monitors(left, right)
	a := p.agent("Claude")
	d.Start("xterm", "-title", "secret", "-geometry", "30x8+1000+300", "-bg", "#ffffff", "-e", "cat")
	secret := d.WaitWindow(20*time.Second, "secret").Rect
	editor := p.reader("editor", "40x8+60+500")

	c := a.start("local_pc_screenshot", map[string]any{"monitor": -1})
	card := a.asked(c, "Claude is requesting screen access", "Screen 1 of 2, 900 × 800", "Screen 2 of 2, 600 × 800")
	d.Screenshot("two-screens")
	card.ClickText("Screen", "2", "of", "2")
	card.WaitText(10*time.Second, "1", "of", "2", "screens", "chosen")
	p.allowedForSession(card)
	g := a.wait(c)
	if g.failed {
		t.Fatalf("no picture came: %s", g.text)
	}
	a.keep(g)
	if p, ok := g.picture.In(secret.Min.X+20, secret.Min.Y+20); ok && g.dark(t, secret) < 0.99 {
		t.Errorf("a screen that was not chosen is in the picture, at %v", p)
	}
	c = a.start("local_pc_screenshot", map[string]any{"monitor": 1})
	p.press(a.asked(c, "Claude is requesting screen access"), "Deny")
	if g := a.wait(c); !g.failed || g.image != nil {
		t.Error("a screen that was not chosen was seen")
	}
	p.noCard()
	x, y := editor.middle()
	a.acting("Claude", a.see(nil), x, y)
	a.click(a.see(nil), x, y)
	a.call("local_pc_type", map[string]any{"text": "left\n"})
	editor.has("left\n")

	// A third one comes: what was aimed at before is stale, a new picture is not.
	at := a.see(nil)
	d.Monitors(left, image.Rect(900, 0, 1200, 800), image.Rect(1200, 0, 1500, 800))
	a.refused("changed", "local_pc_click", map[string]any{"coordinate": at.at(t, x, y)})
	if got := a.call("local_pc_displays", nil).text; strings.Count(got, "\n") != 3 {
		t.Errorf("the screens are %q", got)
	}

	p.intend(snapshot.Intent{Kind: snapshot.TestScreens})
	p.waitStatus(60*time.Second, "tested", func(s snapshot.Snapshot) bool {
		return s.Settings.Computer != nil && s.Settings.Computer.Test != nil && s.Settings.Computer.Test.Text == "3 screens OK"
	})
}

// Each action is asked for where the person has it so, with a picture of where
// it goes; the stop key stops everything. As an ordinary user.
func TestEachActionIsAsked(t *testing.T) {
	t.Parallel()
	p := startForAgent(t, apptest.Options{Ordinary: true})
	d := p.d
	a := p.agent("Claude")
	editor := p.reader("editor", "50x10+60+400")
	g := a.shown("Claude")
	p.intend(snapshot.Intent{Kind: snapshot.Change, Changes: &snapshot.Changes{PerAction: new(true)}})
	x, y := editor.middle()
	c := a.start("local_pc_click", map[string]any{"coordinate": g.at(t, x, y)})
	card := a.asked(c, "Claude wants to click")
	time.Sleep(2 * time.Second)
	d.Screenshot("action-card")
	// Nobody allows what they do not see: a click that goes through another window.
	r, _ := card.Rect()
	allow := p.d.In(image.Rect(r.Min.X, r.Max.Y-70, r.Max.X, r.Max.Y)).WaitText(10*time.Second, "Allow")
	lift := d.Veil(image.Rect(r.Min.X, r.Min.Y+200, r.Max.X, r.Max.Y))
	d.Click((allow.Min.X+allow.Max.X)/2, (allow.Min.Y+allow.Max.Y)/2)
	time.Sleep(time.Second)
	if len(c) > 0 {
		t.Fatalf("a click through another window was an answer: %+v", <-c)
	}
	lift()
	card.WaitSentence(10*time.Second, "Another window lies over this one")
	d.Screenshot("click-through")
	p.press(card, "Allow")
	if g := a.wait(c); g.failed {
		t.Fatal(g.text)
	}
	p.noCard()
	a.see(nil)
	c = a.start("local_pc_type", map[string]any{"text": "asked\n"})
	p.press(a.asked(c, "Claude wants to type"), "Deny")
	if g := a.wait(c); !g.failed || !strings.Contains(g.text, "declined") {
		t.Errorf("it typed: %+v", g)
	}
	p.noCard()
	a.see(nil)
	c = a.start("local_pc_type", map[string]any{"text": "asked\n"})
	p.press(a.asked(c, "Claude wants to type"), "Allow")
	if g := a.wait(c); g.failed {
		t.Fatal(g.text)
	}
	editor.has("asked\n")
	// Another window takes the keyboard while the card names the editor.
	a.see(nil)
	c = a.start("local_pc_type", map[string]any{"text": "for the editor\n"})
	card = a.asked(c, "Claude wants to type", "editor")
	other := p.reader("other", "30x5+20+200")
	p.press(card, "Allow")
	if g := a.wait(c); !g.failed || !strings.Contains(g.text, "Another window has the keyboard") {
		t.Errorf("it typed: %+v", g)
	}
	if got := editor.read() + other.read(); got != "asked\n" {
		t.Errorf("the windows have read %q", got)
	}

	var key string
	p.waitControl("the stop key is bound", func(c *snapshot.Control) bool {
		if c != nil {
			key = c.StopKey
		}
		return key != ""
	})
	d.Key(strings.NewReplacer("Ctrl", "ctrl", "Alt", "alt", "Shift", "shift", "Super", "super", "Esc", "Escape").Replace(key))
	p.waitStatus(20*time.Second, "stopped", func(s snapshot.Snapshot) bool { return s.Stopped != nil && s.Control == nil })
	if fi, err := os.Stat(editor.file); err != nil || int(fi.Sys().(*syscall.Stat_t).Uid) != d.UID() {
		t.Errorf("the editor is not the person's: %v, %v", fi, err)
	}
}
