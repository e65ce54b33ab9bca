package display

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/display/waytest"
	"localpc/capabilities/computer/display/wl"
	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// openHere opens the display of the test's environment, as it is or with
// nothing but the portals.
func openHere(t *testing.T, direct bool) (context.Context, hands.Hands) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	o := Options{}
	if direct {
		h, err := Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return ctx, h
	}
	o = o.filled()
	p, err := openWaylandAs(ctx, o, false)
	if err != nil {
		t.Fatal(err)
	}
	h := compose(o, p)
	t.Cleanup(func() { _ = h.Close() })
	return ctx, h
}

func shot(ctx context.Context, t *testing.T, h hands.Hands, a hands.Ask) (hands.Shot, image.Image) {
	t.Helper()
	a.ID, a.Format = "p", hands.PNG
	taken, err := h.Shoot(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(bytes.NewReader(taken.Data))
	if err != nil {
		t.Fatal(err)
	}
	return taken, m
}

var blue = color.RGBA{R: 0x33, G: 0x66, B: 0x99, A: 255}

func colourAt(m image.Image, x, y int) color.Color { return color.RGBAModel.Convert(m.At(x, y)) }

// Screens of two scales make one plane of device pixels: a point of 1.5 pixels
// is 1.5 device pixels on both.
func TestWaylandPlane(t *testing.T) {
	for _, c := range []struct {
		name string
		outs []wl.Output
		want []image.Rectangle
		most float64
	}{
		{"one at 1.25", []wl.Output{{Points: image.Rect(0, 0, 1536, 864), Pixels: image.Pt(1920, 1080)}}, []image.Rectangle{image.Rect(0, 0, 1920, 1080)}, 1.25},
		{"rounded points at 1.5", []wl.Output{{Points: image.Rect(0, 0, 911, 512), Pixels: image.Pt(1366, 768)}}, []image.Rectangle{image.Rect(0, 0, 1366, 768)}, 1.5},
		{"2 beside 1, at a negative place", []wl.Output{
			{Points: image.Rect(0, 0, 1920, 1080), Pixels: image.Pt(3840, 2160)},
			{Points: image.Rect(-1280, 0, 0, 1024), Pixels: image.Pt(1280, 1024)},
		}, []image.Rectangle{image.Rect(0, 0, 3840, 2160), image.Rect(-2560, 0, 0, 2048)}, 2},
	} {
		l := plane(c.outs)
		for i, want := range c.want {
			if l.Screens[i].Device != want || l.Screens[i].Scale != c.most || l.Screens[i].Points != c.outs[i].Points {
				t.Errorf("%s: screen %d is %+v, want %v at %v", c.name, i, l.Screens[i], want, c.most)
			}
		}
	}
}

// A desktop like sway's, with two screens of which one lies at a negative place
// and has a scale of 1.5: pictures, mouse and keyboard all count in the same
// pixels, as programs that are not ours see.
func TestWaylandDirect(t *testing.T) {
	d := waytest.Start(t, waytest.Options{Outputs: []string{
		"resolution 800x600 position 0,0 scale 1", "resolution 1200x900 position -800,0 scale 1.5"},
		Config: "for_window [app_id=\"wev\"] floating enable, resize set 500 400, move absolute position 200 100\n"})
	ctx, h := openHere(t, true)
	a, err := h.Abilities(ctx)
	if err != nil || !a.Pictures || !a.Input || !a.Windows || a.Person || a.Frame || a.System != "wayland" {
		t.Fatalf("abilities are %+v, %v", a, err)
	}
	l, err := h.Layout(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := image.Rect(-1200, 0, 1200, 900); l.Bounds() != want || l.Screens[1].Device != image.Rect(-1200, 0, 0, 900) {
		t.Fatalf("the screens are %+v, all in %v, want %v", l.Screens, l.Bounds(), want)
	}
	d.Wait("the background", func() bool {
		_, left := shot(ctx, t, h, hands.Ask{Area: image.Rect(-1100, 100, -1080, 120)})
		_, right := shot(ctx, t, h, hands.Ask{Area: image.Rect(1100, 800, 1120, 820)})
		return colourAt(left, 10, 10) == blue && colourAt(right, 10, 10) == blue
	})
	d.Start("stdbuf", "-oL", "wev")
	d.Wait("the witness's window", func() bool {
		s, err := h.Windows(ctx)
		return err == nil && len(s) == 1 && s[0].Frame == image.Rect(300, 150, 1050, 750)
	})
	stack, err := h.Windows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := stack[0]
	if w.Class != "wev" || w.PID == 0 || w.Started == 0 {
		t.Fatalf("the window is %+v", w)
	}
	// Every pixel of the picture that is the window's is where the list says.
	_, m := shot(ctx, t, h, hands.Ask{Window: &w})
	if m.Bounds().Size() != w.Frame.Size() {
		t.Errorf("its picture is %v, its frame %v", m.Bounds().Size(), w.Frame.Size())
	}
	taken, m := shot(ctx, t, h, hands.Ask{Area: w.Frame.Inset(-30), Hide: hands.Curtain{Words: []string{"=wev"}}})
	if got := colourAt(m, 10, 10); got != blue {
		t.Errorf("beside the curtain there is %v", got)
	}
	if got := colourAt(m, 31, 31); got != (color.RGBA{A: 255}) || len(taken.Hidden) != 1 {
		t.Errorf("behind the curtain there is %v; hidden are %q", got, taken.Hidden)
	}

	act := func(a hands.Action) {
		t.Helper()
		if err := h.Act(ctx, a); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
	}
	on := func(x, y int) *image.Point { p := w.Frame.Min.Add(image.Pt(x, y)); return &p }
	heard := func(what string, want ...string) {
		t.Helper()
		d.Wait(what, func() bool {
			rest := d.Log("stdbuf")
			for _, line := range want {
				i := strings.Index(rest, line)
				if i < 0 {
					return false
				}
				rest = rest[i+len(line):]
			}
			return true
		})
	}
	for _, p := range []*image.Point{on(0, 0), on(600, 151), on(333, 222)} {
		act(hands.Action{Kind: hands.Click, At: p, Layout: l.Fingerprint(), Aim: []hands.Aim{{Point: *p, Window: &w}}})
		if got, err := h.Cursor(ctx); err != nil || got != *p {
			t.Errorf("the pointer is at %v, %v", got, err)
		}
	}
	heard("three clicks", "x, y: 0.1", "272 (left), state: 1", "272 (left), state: 0", "x, y: 400.1", "state: 1", "state: 0", "x, y: 222.1", "state: 0")
	act(hands.Action{Kind: hands.Click, Button: "right", Count: 2, Modifiers: []string{"ctrl"}})
	heard("two clicks with Ctrl held", "sym: Control_L", "273 (right), state: 1", "273 (right), state: 0", "273 (right), state: 1", "273 (right), state: 0", "state: 0 (released)")
	act(hands.Action{Kind: hands.Scroll, Direction: "down", Amount: 2, At: on(9, 9)})
	act(hands.Action{Kind: hands.Scroll, Direction: "left", Amount: 1})
	heard("three steps of the wheel", "axis: 0 (vertical), discrete: 1", "axis: 0 (vertical), discrete: 1", "axis: 1 (horizontal), discrete: -1")
	act(hands.Action{Kind: hands.Drag, Path: []image.Point{*on(30, 30), *on(300, 90)}, Button: "middle"})
	heard("a drag", "x, y: 20.1", "274 (middle), state: 1", "x, y: 200.1", "274 (middle), state: 0")
	act(hands.Action{Kind: hands.Key, Chord: "ctrl+shift+Page_Down"})
	heard("a chord", "sym: Control_L", "sym: Shift_L", "sym: Next")
	const text = "Héllo yz{@~}|\\ñ Ω 世界 😀\n\tß"
	before := len(d.Log("stdbuf"))
	act(hands.Action{Kind: hands.Type, Text: text})
	var got string
	d.Wait("the text", func() bool { got = typed(d.Log("stdbuf")[before:]); return len(got) >= len(text) })
	if got != strings.ReplaceAll(text, "\n", "\r") {
		t.Errorf("the witness got %q", got)
	}
	before = len(d.Log("stdbuf"))
	act(hands.Action{Kind: hands.Press, At: on(50, 50)})
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	d.Wait("the button to be up", func() bool { return strings.Contains(d.Log("stdbuf")[before:], "272 (left), state: 0") })
	beside := image.Pt(-700, 400)
	err = h.Act(ctx, hands.Action{Kind: hands.Click, At: &beside, Aim: []hands.Aim{{Point: beside, Window: &w}}})
	if wire.CodeOf(err) != wire.CodePictureStale {
		t.Errorf("a click beside the window: %v", err)
	}
	outside := image.Pt(1200, 5)
	if err := h.Act(ctx, hands.Action{Kind: hands.Click, At: &outside}); wire.CodeOf(err) != wire.CodeBounds {
		t.Errorf("a click at no screen: %v", err)
	}
	held, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	before = len(d.Log("stdbuf"))
	if err := h.Act(held, hands.Action{Kind: hands.HoldKey, Chord: "F7", Hold: time.Minute}); err == nil {
		t.Error("holding a key went on")
	}
	d.Wait("the key to be up", func() bool {
		_, after, down := strings.Cut(d.Log("stdbuf")[before:], "sym: F7")
		return down && strings.Contains(after, "sym: F7")
	})
	d.Start("wev") // a second window, at the same place, which takes the keyboard
	d.Wait("a second window", func() bool {
		s, err := h.Windows(ctx)
		return err == nil && len(s) == 2 && s[0].Focused && !s[0].Same(w)
	})
	if err := h.Focus(ctx, w, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	d.Wait("the witness to have the keyboard", func() bool {
		s, err := h.Windows(ctx)
		return err == nil && s[0].Focused != s[1].Focused && (s[0].Same(w) && s[0].Focused || s[1].Same(w) && s[1].Focused)
	})
	d.Sway(fmt.Sprintf("[con_id=%d] kill", w.ID))
	d.Wait("one window", func() bool { s, err := h.Windows(ctx); return err == nil && len(s) == 1 })
	if err := h.Focus(ctx, w, true, time.Now()); wire.CodeOf(err) != wire.CodeWindowStale {
		t.Errorf("focus on a window that is gone: %v", err)
	}
}

// typed is what wev says was typed: a line for each key, with the character in
// quotes on the next.
func typed(log string) string {
	var b strings.Builder
	down := false
	for line := range strings.Lines(log) {
		if strings.Contains(line, "wl_keyboard] key:") {
			down = strings.Contains(line, "state: 1")
		}
		_, char, ok := strings.Cut(line, "utf8: '")
		if !ok || !down {
			continue
		}
		char = strings.TrimSuffix(strings.TrimSuffix(char, "\n"), "'")
		b.WriteString(char)
	}
	return b.String()
}

// Where a desktop offers nothing but portals, as GNOME does, and has none for
// mouse and keyboard: pictures work, and each thing that does not says why and
// what helps; nothing goes by way of X11.
func TestWaylandPortalsWithoutRemoteDesktop(t *testing.T) {
	if waytest.AsPerson(t) {
		return
	}
	waytest.Start(t, waytest.Options{Outputs: []string{"resolution 640x480 position 0,0 scale 1"}, Portals: true})
	t.Setenv("DISPLAY", ":987") // there is no such thing: it is not even tried
	ctx, h := openHere(t, false)
	a, err := h.Abilities(ctx)
	if err != nil || !a.Pictures || a.Input || a.Windows || a.Person {
		t.Fatalf("abilities are %+v, %v", a, err)
	}
	for name, want := range map[string]string{
		hands.AbilityInput:     "The desktop sway has no way to allow mouse and keyboard from programs: install xdg-desktop-portal-wlr and xdg-desktop-portal-gtk and log in again, or log in with an X11 session.",
		hands.AbilityWindows:   "nothing can be blacked out",
		hands.AbilityClipboard: "log in with an X11 session",
		hands.AbilityPerson:    "mouse and keyboard from programs", // there are none to be told apart
		hands.AbilityFrame:     "No frame can be drawn around the screens",
	} {
		if !strings.Contains(strings.ToLower(a.Why[name]), strings.ToLower(want)) {
			t.Errorf("why not %s: %q", name, a.Why[name])
		}
	}
	taken, m := shot(ctx, t, h, hands.Ask{Area: image.Rect(0, 0, 640, 480)})
	if colourAt(m, 300, 200) != blue || taken.Stack != nil {
		t.Errorf("the picture has %v in its middle; windows %v", colourAt(m, 300, 200), taken.Stack)
	}
	p := image.Pt(10, 10)
	err = h.Act(ctx, hands.Action{Kind: hands.Click, At: &p})
	if wire.CodeOf(err) != wire.CodeNotSupported {
		t.Errorf("a click: %v", err)
	}
	if err := h.Control(ctx, hands.Control{On: true, StopKey: true}); err != nil {
		t.Error(err)
	}
}

// Without portals nothing works on desktops like GNOME's and KDE's, and what is
// said names the desktop and the package that helps: to the agent, which is
// refused with it, and on the lines of "localpc doctor", which are Why.
func TestWaylandWithoutPortals(t *testing.T) {
	waytest.Start(t, waytest.Options{})
	for session, want := range map[string]string{
		"ubuntu:GNOME": "The desktop ubuntu has no way to allow pictures of the screen: install xdg-desktop-portal-gnome and log in again, or log in with an X11 session.",
		"GNOME":        "The desktop GNOME has no way to allow pictures of the screen: install xdg-desktop-portal-gnome and log in again, or log in with an X11 session.",
		"KDE":          "The desktop KDE has no way to allow pictures of the screen: install xdg-desktop-portal-kde and log in again, or log in with an X11 session.",
	} {
		t.Setenv("XDG_CURRENT_DESKTOP", session)
		o := Options{}.filled()
		_, err := openWaylandAs(t.Context(), o, false)
		if wire.CodeOf(err) != wire.CodeNotSupported || err.Error() != want {
			t.Fatalf("%s: %v", session, err)
		}
		h := compose(o, nothing(err.Error()))
		a, err := h.Abilities(t.Context())
		if err != nil || a.Pictures || a.Input || a.Windows || a.Clipboard || a.Person || a.Frame {
			t.Errorf("%s: abilities are %+v, %v", session, a, err)
		}
		for _, name := range []string{hands.AbilityPictures, hands.AbilityInput, hands.AbilityWindows, hands.AbilityClipboard, hands.AbilityPerson, hands.AbilityFrame} {
			if a.Why[name] != want {
				t.Errorf("%s: why not %s: %q", session, name, a.Why[name])
			}
		}
		at := image.Pt(1, 1)
		for what, err := range map[string]error{
			"a picture":     func() error { _, err := h.Shoot(t.Context(), hands.Ask{Area: image.Rect(0, 0, 9, 9)}); return err }(),
			"a click":       h.Act(t.Context(), hands.Action{Kind: hands.Click, At: &at}),
			"the clipboard": h.WriteClipboard(t.Context(), "x"),
		} {
			if wire.CodeOf(err) != wire.CodeNotSupported || err.Error() != want {
				t.Errorf("%s: %s: %v", session, what, err)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A floating window of sway's may be a dialog of any window of its process, and
// hides with them; so does nothing else.
func TestSwayDialogs(t *testing.T) {
	own, other := os.Getpid(), os.Getppid()
	tree := fmt.Sprintf(`{"nodes":[{"type":"output","nodes":[{"type":"workspace",
		"nodes":[{"id":1,"pid":%[1]d,"app_id":"firefox","name":"Bank - Private Browsing","visible":true},
			{"id":2,"pid":%[2]d,"app_id":"notes","name":"Notes","visible":true},
			{"id":3,"pid":%[1]d,"app_id":"firefox","name":"News","visible":true}],
		"floating_nodes":[{"id":4,"pid":%[1]d,"app_id":"firefox","name":"Save as","visible":true},
			{"id":5,"pid":%[2]d,"app_id":"notes","name":"Save as","visible":true}]}]}]}`, own, other)
	var root swayNode
	if err := json.Unmarshal([]byte(tree), &root); err != nil {
		t.Fatal(err)
	}
	hide := hands.Curtain{Words: []string{"private browsing"}}
	hidden := map[uint64]bool{}
	stack := root.stack(1)
	for _, w := range stack {
		hidden[w.ID] = hide.Hides(w)
	}
	if len(stack) != 5 || !hidden[1] || hidden[2] || hidden[3] || !hidden[4] || hidden[5] {
		t.Errorf("hidden are %v", hidden)
	}
}
