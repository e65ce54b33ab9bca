package display

import (
	"fmt"
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// TestKeysGoWhereTheyHaveTo: what is typed, pressed or held stops where the
// keyboard goes to a window of this program, or to another than was allowed.
func TestKeysGoWhereTheyHaveTo(t *testing.T) {
	name := managed(t, "800x600")
	h := openAt(t, name)
	ours := start(t, name, "xterm", "-geometry", "30x10+20+40", "-T", "ours")
	window := func(title string) (found space.Window) {
		eventually(t, title, func() bool {
			s, _ := h.Windows(within(t))
			for _, w := range s {
				if w.Title == title {
					found = w
				}
			}
			return found.ID != 0
		})
		return found
	}
	own := window("ours")
	entry := take(t, h, name, "xterm")
	theirs := window("xterm entry")
	start(t, name, "xterm", "-geometry", "30x5+400+300", "-T", "third")
	third := window("third")
	if err := h.Control(within(t), hands.Control{Own: []int{ours.Process.Pid}}); err != nil {
		t.Fatal(err)
	}
	focus := func(w space.Window) {
		t.Helper()
		run(t, name, "xdotool", "windowfocus", "--sync", decimal(uint32(w.ID)))
	}
	for _, c := range []struct {
		what string
		to   space.Window // what gets the keyboard meanwhile
		must *space.Window
		want wire.Code
	}{
		{"ours", own, nil, wire.CodeOwnWindow},
		{"ours, where another was allowed", own, &theirs, wire.CodeOwnWindow},
		{"another than was allowed", third, &theirs, wire.CodePictureStale},
	} {
		for _, a := range []hands.Action{
			{Kind: hands.HoldKey, Chord: "shift+Tab", Hold: time.Minute},
			{Kind: hands.Type, Text: strings.Repeat("long ", 2000)},
		} {
			focus(theirs)
			a.Seen, a.Keyboard = time.Now(), c.must
			began, done := time.Now(), make(chan error, 1)
			go func() { done <- h.Act(within(t), a) }()
			eventually(t, "keys", func() bool { return len(held(t, name)) > 0 || time.Since(began) > time.Second })
			focus(c.to)
			err := <-done
			if wire.CodeOf(err) != c.want {
				t.Errorf("%s gets the keyboard during %s: %v", c.what, a.Kind, err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%s went on for %v", a.Kind, took)
			}
			if got := held(t, name); len(got) > 0 {
				t.Errorf("still down: %q", got)
			}
		}
	}
	focus(third)
	if err := h.Act(within(t), hands.Action{Kind: hands.Type, Text: "x", Keyboard: &theirs, Seen: time.Now()}); wire.CodeOf(err) != wire.CodePictureStale {
		t.Errorf("into another window: %v", err)
	}
	focus(theirs)
	act(t, h, hands.Action{Kind: hands.Key, Chord: "ctrl+u"})
	had := len(entry.text())
	act(t, h, hands.Action{Kind: hands.Type, Text: "into the one", Keyboard: &theirs, Seen: time.Now()})
	eventually(t, "the text", func() bool { return strings.Contains(entry.text()[had:], "into the one") })
}

func TestOwnWindowsAndStale(t *testing.T) {
	name := managed(t, "800x600")
	h := openAt(t, name)
	ours := start(t, name, "xterm", "-geometry", "30x10+20+40", "-T", "ours")
	find := func(title string) space.Window {
		var found space.Window
		eventually(t, title, func() bool {
			s, _ := h.Windows(within(t))
			for _, w := range s {
				if w.Title == title {
					found = w
				}
			}
			return found.ID != 0
		})
		return found
	}
	own := find("ours")
	other := take(t, h, name, "xterm")
	theirs := find("xterm entry")
	if err := h.Control(within(t), hands.Control{Own: []int{ours.Process.Pid}}); err != nil {
		t.Fatal(err)
	}
	s, err := h.Windows(within(t))
	if err != nil {
		t.Fatal(err)
	}
	// A point of each where the other is not.
	point := func(w space.Window) image.Point {
		for y := w.Frame.Min.Y + 3; y < w.Frame.Max.Y; y += 5 {
			for x := w.Frame.Min.X + 3; x < w.Frame.Max.X; x += 5 {
				if u, ok := s.Under(image.Pt(x, y)); ok && u.ID == w.ID {
					return image.Pt(x, y)
				}
			}
		}
		t.Fatalf("%q is covered", w.Title)
		return image.Point{}
	}
	inOwn, inOther := point(own), point(theirs)
	refused := func(code wire.Code, a hands.Action) {
		t.Helper()
		a.Seen = time.Now()
		if err := h.Act(within(t), a); wire.CodeOf(err) != code {
			t.Errorf("%+v: %v, want %s", a, err, code)
		}
	}
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Click, At: &inOwn})
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Click, At: &inOwn, Test: true})
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Move, At: &inOwn})
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Scroll, At: &inOwn, Direction: "up", Amount: 1})
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Drag, Path: []image.Point{inOther, inOwn}})
	run(t, name, "xdotool", "mousemove", fmt.Sprint(inOwn.X), fmt.Sprint(inOwn.Y))
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Click})
	wantText(t, h, other, "typed while the pointer is over our window")
	run(t, name, "xdotool", "windowfocus", "--sync", fmt.Sprint(own.ID))
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Type, Text: "rm -rf\n"})
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.Key, Chord: "Return"})
	refused(wire.CodeOwnWindow, hands.Action{Kind: hands.HoldKey, Chord: "space", Hold: time.Second})

	// Ours comes under the pointer while it scrolls.
	scrolled := make(chan error, 1)
	go func() {
		scrolled <- h.Act(within(t), hands.Action{Kind: hands.Scroll, At: &inOther, Direction: "up", Amount: 1000, Seen: time.Now()})
	}()
	time.Sleep(200 * time.Millisecond)
	run(t, name, "xdotool", "windowmove", fmt.Sprint(own.ID), fmt.Sprint(inOther.X-60), fmt.Sprint(inOther.Y-60))
	run(t, name, "xdotool", "windowraise", fmt.Sprint(own.ID))
	if err := <-scrolled; wire.CodeOf(err) != wire.CodeOwnWindow {
		t.Errorf("scrolling ended with %v", err)
	}
	run(t, name, "xdotool", "windowmove", fmt.Sprint(own.ID), "20", "40")
	run(t, name, "xdotool", "windowraise", fmt.Sprint(theirs.ID))
	run(t, name, "xdotool", "windowfocus", "--sync", fmt.Sprint(theirs.ID))
	eventually(t, "the other window at its point", func() bool {
		s, _ := h.Windows(within(t))
		w, ok := s.Under(inOther)
		return ok && w.ID == theirs.ID
	})

	now, _ := s.Under(inOther)
	gone := now
	gone.ID += 99
	act(t, h, hands.Action{Kind: hands.Click, At: &inOther, Aim: []hands.Aim{{Point: inOther, Window: &now}}})
	refused(wire.CodePictureStale, hands.Action{Kind: hands.Click, At: &inOther, Aim: []hands.Aim{{Point: inOther, Window: &gone}}})
	refused(wire.CodePictureStale, hands.Action{Kind: hands.Click, At: &inOther, Aim: []hands.Aim{{Point: inOther}}})

	// The window goes while text is typed: the rest does not reach ours.
	done := make(chan error, 1)
	had := other.text()
	go func() {
		done <- h.Act(within(t), hands.Action{Kind: hands.Type, Text: strings.Repeat("a long text ", 200), Seen: time.Now()})
	}()
	eventually(t, "typing", func() bool { return len(other.text()) > len(had)+20 })
	run(t, name, "xdotool", "windowfocus", fmt.Sprint(own.ID))
	if err := <-done; wire.CodeOf(err) != wire.CodeOwnWindow {
		t.Errorf("typing ended with %v", err)
	}
	if got := held(t, name); len(got) > 0 {
		t.Errorf("still down: %q", got)
	}
}

// TestFocusOnTheRoot: with the focus on the root window, keys go to what is
// under the pointer.
func TestFocusOnTheRoot(t *testing.T) {
	name := xvfb(t, "640x400") // no window manager that would take the focus back
	h := openAt(t, name)
	start(t, name, "xterm", "-geometry", "30x10+50+50", "-title", "ours")
	var ours space.Window
	eventually(t, "the window", func() bool {
		s, err := h.Windows(within(t))
		var ok bool
		ours, ok = titled(s, "ours")
		return err == nil && ok
	})
	owns(h, ours.PID)
	c := dialed(t, name)
	xproto.SetInputFocus(c.Conn, xproto.InputFocusPointerRoot, c.root, 0)
	c.Sync()
	for over, want := range map[image.Point]wire.Code{image.Pt(80, 80): wire.CodeOwnWindow, image.Pt(600, 380): ""} {
		run(t, name, "xdotool", "mousemove", fmt.Sprint(over.X), fmt.Sprint(over.Y))
		for _, a := range []hands.Action{{Kind: hands.Type, Text: "x"}, {Kind: hands.Key, Chord: "Return"}} {
			a.Seen = time.Now()
			if err := h.Act(within(t), a); wire.CodeOf(err) != want {
				t.Errorf("%s with the pointer at %v: %v", a.Kind, over, err)
			}
		}
	}
}

func TestTargets(t *testing.T) {
	name := xvfb(t, "1000x600")
	three(t, name)
	h := openAt(t, name)
	points := []image.Point{{200, 300}, {401, 1}, {850, 400}, {998, 598}}
	if err := h.Target(within(t), points); err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		pixel := run(t, name, "import", "-window", "root", "-crop", fmt.Sprintf("1x1+%d+%d", p.X, p.Y), "txt:-")
		if !strings.Contains(pixel, "srgb(255,0,200)") {
			t.Errorf("the middle of the target at %v is %s", p, pixel)
		}
		if err := h.Act(within(t), hands.Action{Kind: hands.Click, At: &p, Seen: time.Now()}); wire.CodeOf(err) != wire.CodeOwnWindow {
			t.Errorf("an agent's click on a target: %v", err)
		}
		act(t, h, hands.Action{Kind: hands.Click, At: &p, Test: true})
	}
	if got, err := h.Hits(within(t)); err != nil || !slices.Equal(got, points) {
		t.Errorf("the targets were hit at %v, %v; want %v", got, err, points)
	}
	if err := h.Target(within(t), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Hits(within(t)); err != nil || len(got) > 0 {
		t.Errorf("without targets: %v, %v", got, err)
	}
	if tree := run(t, name, "xwininfo", "-root", "-tree"); strings.Contains(tree, "Screen test") {
		t.Errorf("targets are still there:\n%s", tree)
	}
}
