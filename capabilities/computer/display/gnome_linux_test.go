package display

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/display/waytest"
	"localpc/capabilities/computer/hands"
	"localpc/tunnel/wire"
)

// GNOME's own compositor, portals and questions, which its person answers:
// frames of the shared screen are what the person sees, pixel for pixel; what is
// clicked and typed is what a program gets; characters that the keyboard has no
// key for are refused before anything is typed; the second time nothing is
// asked for the screen; and each no, in whole or in part, is told from a yes.
func TestWaylandGnome(t *testing.T) {
	if why := waytest.NoGnome(); why != "" {
		t.Log("left out: " + why)
		return
	}
	if waytest.AsPerson(t) {
		return
	}
	g := waytest.StartGnome(t, "1280x800")
	kept := &memory{}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	h, err := Open(ctx, Options{Kept: kept})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	a, err := h.Abilities(ctx)
	if err != nil || !a.Pictures || !a.Input || a.Windows || a.Clipboard || a.Person || a.Frame {
		t.Fatalf("abilities are %+v, %v", a, err)
	}
	for name, want := range map[string]string{hands.AbilityWindows: "no program can list the windows", hands.AbilityClipboard: "the clipboard only to the window that is in front",
		hands.AbilityPerson: "does not pause it", hands.AbilityFrame: "no frame can be drawn"} {
		if !strings.Contains(a.Why[name], want) {
			t.Errorf("why not %s: %q", name, a.Why[name])
		}
	}
	if err := h.Control(ctx, hands.Control{On: true, StopKey: true}); err != nil {
		t.Fatal(err)
	}
	if a, err = h.Abilities(ctx); err != nil || a.StopKey != "" || !strings.Contains(a.StopKeyProblem, "GNOME gives programs no key") {
		t.Errorf("the stop key is %q, %q, %v", a.StopKey, a.StopKeyProblem, err)
	}
	g.Start("stdbuf", "-oL", "wev")
	g.Wait("the witness", func() bool { return strings.Contains(g.Log("stdbuf"), "xdg_surface") })
	all := hands.Ask{ID: "p", Format: hands.PNG, Area: image.Rect(0, 0, 1280, 800)}

	// The screen, asked for and allowed.
	taken := make(chan error, 1)
	go func() { _, err := h.Shoot(ctx, all); taken <- err }()
	g.Answers(waytest.ShareScreen)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	_, ours := shot(ctx, t, h, all)
	same(t, ours, g.Seen())
	// It was remembered: a new start is not asked about.
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = Open(ctx, Options{Kept: kept}); err != nil {
		t.Fatal(err)
	}
	_, ours = shot(ctx, t, h, all)
	same(t, ours, g.Seen())

	// Mouse and keyboard: the screen alone is not enough, and is told so.
	origin := checkered(ours)
	at := origin.Add(image.Pt(200, 100))
	click := hands.Action{Kind: hands.Click, At: &at}
	done := make(chan error, 1)
	go func() { done <- h.Act(ctx, click) }()
	g.Answers(waytest.ShareAsIs)
	if err := <-done; wire.CodeOf(err) != wire.CodeNotSupported || !strings.Contains(err.Error(), "not mouse and keyboard") {
		t.Fatalf("with the screen alone: %v", err)
	}
	if err := h.Act(ctx, click); wire.CodeOf(err) != wire.CodeNotSupported || !strings.Contains(err.Error(), "answered with no") {
		t.Fatalf("right after that: %v", err)
	}
	again := func(answer waytest.Answer) error {
		t.Helper()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if h, err = Open(ctx, Options{Kept: kept}); err != nil {
			t.Fatal(err)
		}
		go func() { done <- h.Act(ctx, click) }()
		g.Answers(answer)
		return <-done
	}
	if err := again(waytest.Cancel); wire.CodeOf(err) != wire.CodeNotSupported || !strings.Contains(err.Error(), "answered with no") {
		t.Fatalf("a no: %v", err)
	}
	if err := again(waytest.ShareInput); err != nil {
		t.Fatal(err)
	}
	_, ours = shot(ctx, t, h, all) // of the screen that is shared with them
	if checkered(ours) != origin {
		t.Fatalf("the witness is at %v now, not at %v", checkered(ours), origin)
	}

	// What the witness gets.
	from := 0
	act := func(a hands.Action) {
		t.Helper()
		from = len(g.Log("stdbuf"))
		if err := h.Act(ctx, a); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
	}
	heard := func(what string, want ...string) {
		t.Helper()
		g.Wait(what, func() bool { return inOrder(g.Log("stdbuf")[from:], want) })
	}
	from = 0
	heard("the click", "x, y: 200.250000, 100.250000", "272 (left), state: 1", "272 (left), state: 0")
	to := origin.Add(image.Pt(321, 7))
	act(hands.Action{Kind: hands.Click, At: &to, Button: "right", Count: 2, Modifiers: []string{"ctrl"}})
	heard("two clicks with Ctrl held", "x, y: 321.250000, 7.250000", "depressed: 00000004", "273 (right), state: 1", "273 (right), state: 0", "273 (right), state: 1", "273 (right), state: 0", "depressed: 00000000")
	act(hands.Action{Kind: hands.Scroll, Direction: "down", Amount: 2})
	heard("two steps of the wheel", "axis: 0 (vertical), discrete: 1", "axis: 0 (vertical), discrete: 1")
	act(hands.Action{Kind: hands.Scroll, Direction: "left", Amount: 1})
	heard("one to the left", "axis: 1 (horizontal), discrete: -1")
	act(hands.Action{Kind: hands.Drag, Path: []image.Point{at, to}, Button: "middle"})
	heard("a drag", "x, y: 200.250000, 100.250000", "274 (middle), state: 1", "x, y: 321.250000, 7.250000", "274 (middle), state: 0")
	act(hands.Action{Kind: hands.Key, Chord: "ctrl+shift+Page_Down"})
	heard("a chord", "sym: Control_L", "sym: Shift_L", "sym: Next", "sym: Next", "sym: Shift_L", "sym: Control_L")
	const text = "Hello yz{@~}|\\\n\t9"
	act(hands.Action{Kind: hands.Type, Text: text})
	want := strings.ReplaceAll(text, "\n", "\r")
	g.Wait("the text", func() bool { return len(typed(g.Log("stdbuf")[from:])) >= len(want) })
	if got := typed(g.Log("stdbuf")[from:]); got != want {
		t.Errorf("the witness got %q", got)
	}
	// No key of this keyboard has them, and GNOME would leave them out in silence.
	from = len(g.Log("stdbuf"))
	err = h.Act(ctx, hands.Action{Kind: hands.Type, Text: "Hé"})
	if wire.CodeOf(err) != wire.CodeNotSupported || !strings.Contains(err.Error(), "has no key for \"é\"") {
		t.Errorf("typing what there is no key for: %v", err)
	}
	if err := h.Act(ctx, hands.Action{Kind: hands.Key, Chord: "ctrl+é"}); wire.CodeOf(err) != wire.CodeNotSupported {
		t.Errorf("pressing what there is no key for: %v", err)
	}
	act(hands.Action{Kind: hands.Press, At: &at})
	heard("the button", "272 (left), state: 1")
	if got := typed(g.Log("stdbuf")[from:]); got != "" {
		t.Errorf("%q was typed of it", got)
	}
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	heard("the button to be up", "272 (left), state: 1", "272 (left), state: 0")
}

// inOrder tells whether the log has all of want, one after another.
func inOrder(log string, want []string) bool {
	for _, line := range want {
		_, rest, ok := strings.Cut(log, line)
		if !ok {
			return false
		}
		log = rest
	}
	return true
}

// same tells where two pictures differ.
func same(t *testing.T, a, b image.Image) {
	t.Helper()
	if a.Bounds() != b.Bounds() {
		t.Fatalf("the picture is %v, the person sees %v", a.Bounds(), b.Bounds())
	}
	of := func(m image.Image) *image.RGBA {
		out := image.NewRGBA(m.Bounds())
		draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Src)
		return out
	}
	p, q := of(a), of(b)
	if bytes.Equal(p.Pix, q.Pix) {
		return
	}
	for y := range p.Rect.Dy() {
		for x := range p.Rect.Dx() {
			if p.RGBAAt(x, y) != q.RGBAAt(x, y) {
				t.Fatalf("pixel (%d, %d) is %v, the person sees %v", x, y, p.RGBAAt(x, y), q.RGBAAt(x, y))
			}
		}
	}
}

// checkered is the upper left corner of the witness's window, which is
// grey and white.
func checkered(m image.Image) image.Point {
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			if c := colourAt(m, x, y); c == (color.RGBA{0x66, 0x66, 0x66, 255}) || c == (color.RGBA{0xee, 0xee, 0xee, 255}) {
				return image.Pt(x, y)
			}
		}
	}
	return image.Point{}
}
