//go:build linux

package main_test

import (
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/app/snapshot"
)

const stripTitle = "in use"

// control has Claude see the screen, and more where change wants it; nobody with
// a nil change.
func (d *desk) control(change func(*snapshot.Control)) {
	d.t.Helper()
	d.snapshot(func(s *snapshot.Snapshot) {
		if change == nil {
			return
		}
		s.Control = &snapshot.Control{Session: "s", Who: "Claude", Sees: true, Since: time.Now(), Colour: "#d9480f", StopKey: "Ctrl+Alt+Escape"}
		change(s.Control)
	})
}

// inStripColour says whether a point of the screen has the strip's colour.
func (d *desk) inStripColour(p image.Point) bool {
	c := d.Capture().RGBAAt(p.X, p.Y)
	return c.R == 0xd9 && c.G == 0x48 && c.B == 0x0f
}

// The strip stands above everything at the top middle, takes no keyboard, obeys
// the person's mouse, can be dragged, and goes when nobody sees the screen.
func TestStrip(t *testing.T) {
	t.Parallel()
	d := start(t, apptest.Options{})
	typed := filepath.Join(d.Home, "typed")
	d.Start("xterm", "-T", "keeper", "-fullscreen", "-e", "sh", "-c", "read line; echo \"$line\" >"+typed+"; sleep 100")
	d.WaitWindow(soon, "keeper")
	if !d.Until(soon, func() bool { return d.Focused() == "keeper" }) {
		t.Fatalf("the focus is at %q", d.Focused())
	}
	d.control(func(*snapshot.Control) {})
	w := d.WaitWindow(soon, stripTitle)
	d.until("the strip counted", func(u desklink.Up) bool { return u.Windows != nil && *u.Windows == 1 })
	place := func() image.Rectangle {
		t.Helper()
		w, _ := d.FindWindow(stripTitle)
		return w.Rect
	}
	middle := func() bool {
		r := place()
		off := (r.Min.X+r.Max.X)/2 - 1240/2
		return r.Min.Y < 24 && off > -12 && off < 12 && d.inStripColour(r.Min.Add(image.Pt(3, 20)))
	}
	if !w.Override || !d.Until(soon, middle) {
		d.Screenshot("strip-misplaced")
		t.Fatalf("the strip is at %v, left alone by the window manager: %v", place(), w.Override)
	}
	d.Window(stripTitle).WaitSentence(soon, "Claude sees your screen")
	d.Screenshot("strip")
	d.Type("one ")

	d.Window(stripTitle).ClickText("Pause")
	d.until("Pause", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.Pause })
	d.control(func(c *snapshot.Control) { c.Acts = true })
	d.Window(stripTitle).WaitSentence(soon, "Claude is using your mouse and keyboard")
	if !d.Until(soon, middle) {
		t.Errorf("with longer words the strip is at %v", place())
	}
	d.Type("two ")
	d.Screenshot("strip-acts")

	was := place()
	d.Drag(was.Min.Add(image.Pt(40, 8)), was.Min.Add(image.Pt(40-120, 8+200)))
	want := was.Min.Add(image.Pt(-120, 200))
	near := func() bool { p := place().Min.Sub(want); return p.X*p.X+p.Y*p.Y < 100 }
	if !d.Until(soon, near) {
		t.Errorf("dragged to %v, the strip is at %v", want, place().Min)
	}
	d.control(func(c *snapshot.Control) { c.Acts, c.Person = true, true })
	d.Window(stripTitle).WaitSentence(soon, "You took over")
	if !near() {
		t.Errorf("it went back to %v by itself", place().Min)
	}
	d.Window(stripTitle).ClickText("Stop")
	d.until("Stop", func(u desklink.Up) bool { return u.Intent != nil && u.Intent.Kind == snapshot.StopAll })
	d.Key("Return")
	if !d.Until(soon, func() bool { b, _ := os.ReadFile(typed); return strings.TrimSpace(string(b)) == "one two" }) {
		b, _ := os.ReadFile(typed)
		t.Errorf("the keeper got %q; the focus is at %q", b, d.Focused())
	}
	d.control(nil)
	d.WaitNoWindow(soon, stripTitle)
	d.control(func(*snapshot.Control) {}) // made once, and shown again
	if d.WaitWindow(soon, stripTitle); !d.Until(soon, middle) {
		t.Errorf("the second time the strip is at %v", place())
	}
	d.control(nil)
	d.WaitNoWindow(soon, stripTitle)

	// Of several screens it stands on one, and not between them.
	d.Monitors(image.Rect(0, 0, 620, 860), image.Rect(620, 0, 1240, 860))
	d.control(func(*snapshot.Control) {})
	d.WaitWindow(soon, stripTitle)
	onOne := func() bool {
		r := place()
		off := (r.Min.X + r.Max.X) / 2 % 620
		return off > 310-12 && off < 310+12
	}
	if !d.Until(soon, onOne) {
		t.Errorf("with two screens the strip is at %v", place())
	}
}
