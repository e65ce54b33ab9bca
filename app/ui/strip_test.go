package ui

import (
	"os"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"

	"localpc/app/snapshot"
	"localpc/app/ui/kit"
)

// control has Claude see the screen, and more where change wants it.
func (s *stage) control(change func(*snapshot.Control)) {
	s.snapshot(func(n *snapshot.Snapshot) {
		n.Control = &snapshot.Control{Session: "s1", Who: "Claude", Sees: true, Since: s.clock.now, Colour: "#d9480f", StopKey: "Ctrl+Alt+Escape"}
		if change != nil {
			change(n.Control)
		}
	})
}

// placed is a Screen that counts how often the strip was put at its place.
type placed struct {
	Screen
	n    int
	off  bool // no screen shows it
	pass func(Press) bool
}

func (p *placed) ShowBare(w fyne.Window)                   { w.Show() }
func (*placed) Bare(fyne.Window)                           {}
func (p *placed) PlaceTop(fyne.Window, fyne.Size, bool)    { p.n++ }
func (*placed) Raise(fyne.Window)                          {}
func (p *placed) OnScreen(fyne.Window) bool                { return !p.off }
func (p *placed) Guard(_ fyne.Window, fn func(Press) bool) { p.pass = fn }

// Resume on the strip lets a program go on, so it hears the person's own hand
// only, and none that came through a window which hides what it does; Pause and
// Stop hear everybody.
func TestStripResumesForThePersonOnly(t *testing.T) {
	s := newStage(t)
	p := &placed{}
	s.u.o.Screen = p
	s.control(nil)
	w := s.u.strip.win
	for _, c := range []struct {
		press  Press
		remote bool
		hears  bool
	}{
		{Press{Mine: true}, false, true},
		{Press{}, false, false},
		{Press{Mine: true, Through: true}, false, false},
		{Press{Mine: true, Through: true}, true, true},
		{Press{}, true, true},
	} {
		s.snapshot(func(n *snapshot.Snapshot) {
			n.Paused = false
			n.Settings.Computer = &snapshot.Computer{Remote: c.remote}
		})
		s.intents()
		press := func(button string) {
			t.Helper()
			if !p.pass(c.press) {
				t.Errorf("%+v: %s does not hear it", c.press, button)
			}
			s.tap(w, button)
		}
		press("Pause")
		s.wantIntent(snapshot.Intent{Kind: snapshot.Pause})
		press("Stop")
		s.wantIntent(snapshot.Intent{Kind: snapshot.StopAll, Text: snapshot.WindowActivity})
		s.snapshot(func(n *snapshot.Snapshot) { n.Paused = true })
		press("Resume")
		if got := s.intents(); (len(got) == 1 && got[0].Kind == snapshot.Resume) != c.hears || len(got) > 1 {
			t.Errorf("%+v, remote %v: Resume sent %+v", c.press, c.remote, got)
		}
	}
}

// Screens change while the strip is up: it keeps to its place, or to where the
// person has put it for as long as that is to be seen.
func TestStripFollowsTheScreens(t *testing.T) {
	s := newStage(t)
	p := &placed{}
	s.u.o.Screen = p
	s.control(nil)
	again := func() bool {
		before := p.n
		s.clock.run(stripAgain)
		return p.n > before
	}
	for range 5 { // the first few are for the scale
		again()
	}
	if !again() {
		t.Error("it does not keep to its place")
	}
	s.u.strip.moved = true
	if again() {
		t.Error("it leaves the place that the person gave it")
	}
	p.off = true
	if !again() {
		t.Error("it stays where no screen shows it")
	}
}

// The strip says who does what, stops it, and comes and goes with that.
func TestStrip(t *testing.T) {
	s := newStage(t)
	if s.snapshot(func(*snapshot.Snapshot) {}); s.u.strip.win != nil {
		t.Fatal("there is a strip while nobody sees the screen")
	}
	s.control(nil)
	w := s.u.strip.win
	if !s.u.strip.on || !has(w, "Claude sees your screen") || !has(w, "Ctrl+Alt+Escape stops it") {
		t.Fatalf("the strip says %q", texts(w))
	}
	s.control(func(c *snapshot.Control) { c.Acts = true })
	if !has(w, "Claude is using your mouse and keyboard") {
		t.Errorf("in control, it says %q", texts(w))
	}
	s.control(func(c *snapshot.Control) { c.Acts, c.Person, c.StopKey = true, true, "" })
	if !has(w, "You took over; Claude waits") || has(w, "stops it") {
		t.Errorf("after the person's hands, it says %q", texts(w))
	}
	s.intents()
	s.tap(w, "Pause")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Pause})
	s.snapshot(func(n *snapshot.Snapshot) { n.Paused = true })
	if !has(w, "Paused; Claude waits") {
		t.Errorf("paused, it says %q", texts(w))
	}
	s.tap(w, "Resume")
	s.wantIntent(snapshot.Intent{Kind: snapshot.Resume})
	s.tap(w, "–")
	if size := w.Canvas().Size(); !s.u.strip.small || has(w, "Paused") || size.Width > 240 {
		t.Errorf("made small, it is %v and says %q", size, texts(w))
	}
	s.tap(w, "Stop")
	s.wantIntent(snapshot.Intent{Kind: snapshot.StopAll, Text: snapshot.WindowActivity})
	s.tap(w, "+")
	w.Close()
	if got := s.intents(); len(got) != 0 || !s.u.strip.on {
		t.Errorf("closing the strip sent %+v", got)
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Control = nil })
	if s.u.strip.on || s.u.open[w] {
		t.Error("the strip is there after all has ended")
	}
	if s.clock.run(time.Minute); s.clock.waits() != 0 {
		t.Error("a timer goes on behind the hidden strip")
	}
	s.control(func(c *snapshot.Control) { c.Who = "\u202eevil" })
	if !s.u.strip.on || has(w, "\u202e") {
		t.Errorf("the second time it says %q", texts(w))
	}
}

// The strip holds its words, in both themes and sizes.
func TestStripHoldsItsContents(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		for _, scale := range []float32{1, 2} {
			if (theme == "light") == (scale == 2) && os.Getenv("LOCALPC_ARTIFACTS") == "" {
				continue // pictures for people, no other layout
			}
			t.Setenv(kit.ThemeEnv, theme)
			s := newStage(t)
			for name, change := range map[string]func(*snapshot.Control){
				"sees": nil,
				"acts": func(c *snapshot.Control) { c.Acts = true },
				"you":  func(c *snapshot.Control) { c.Acts, c.Person = true, true },
				"long": func(c *snapshot.Control) {
					c.Who = "A program with a name that goes on and on and does not end before the line"
				},
			} {
				s.control(change)
				w := s.u.strip.win
				w.Canvas().(test.WindowlessCanvas).SetScale(scale)
				s.u.strip.fit()
				file := "strip-" + name + "-" + theme
				if scale == 2 {
					file += "-200"
				}
				s.keep(w, file)
				if m := w.Content().MinSize(); m.Width > 900 || m.Height > 48 {
					t.Errorf("the strip %q is %v", name, m)
				}
				for _, b := range []*kit.Button{s.u.strip.pause, s.u.strip.stop, s.u.strip.fold} {
					if at := fyne.CurrentApp().Driver().AbsolutePositionForObject(b); at.X+b.Size().Width > w.Canvas().Size().Width {
						t.Errorf("%q of the strip %q stands out of it", b.Text(), name)
					}
				}
			}
		}
	}
}

// dragScreen is a screen on which windows are dragged; no more is asked of it.
type dragScreen struct {
	Screen
	drags int
}

func (d *dragScreen) Drag(fyne.Window, fyne.Position) { d.drags++ }

// A drag ends with the strip: nobody tells of its end then.
func TestStripEndsWhileItIsDragged(t *testing.T) {
	s := newStage(t)
	s.control(nil)
	d := &dragScreen{}
	s.u.o.Screen = d
	s.u.strip.grip.MouseDown(&desktop.MouseEvent{})
	s.u.strip.grip.Dragged(&fyne.DragEvent{})
	if d.drags == 0 {
		t.Fatal("it does not follow the pointer")
	}
	s.snapshot(func(n *snapshot.Snapshot) { n.Control = nil })
	s.u.strip.grip.Dragged(&fyne.DragEvent{}) // was on its way
	drags := d.drags
	if s.clock.run(time.Second); d.drags != drags {
		t.Errorf("a strip that has gone followed the pointer %d times", d.drags-drags)
	}
	if s.clock.waits() != 0 {
		t.Error("a timer goes on behind the hidden strip")
	}
}
