//go:build linux

package apptest

import (
	"context"
	"image"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// hand runs xdotool on the outer display, where the person is.
func (d *Desktop) hand(args ...string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "xdotool", args...)
	cmd.Env = append(os.Environ(), "DISPLAY="+d.Outer)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("xdotool %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Move puts the mouse at a point of the inner screen.
func (d *Desktop) Move(x, y int) {
	d.t.Helper()
	d.hand("mousemove", strconv.Itoa(x+d.offset.x), strconv.Itoa(y+d.offset.y))
}

// Click moves the mouse there and presses the left button once, as a hand
// does: the pointer arrives a moment before the press.
func (d *Desktop) Click(x, y int) { d.t.Helper(); d.press(x, y, 1) }

// RightClick presses the right button.
func (d *Desktop) RightClick(x, y int) { d.t.Helper(); d.press(x, y, 3) }

func (d *Desktop) press(x, y, button int) {
	d.t.Helper()
	d.Move(x, y)
	time.Sleep(60 * time.Millisecond)
	b := strconv.Itoa(button)
	d.hand("mousedown", b, "sleep", "0.05", "mouseup", b)
}

// Drag presses the left button at one point of the inner screen, moves to
// another, and lets go there.
func (d *Desktop) Drag(from, to image.Point) {
	d.t.Helper()
	d.Move(from.X, from.Y)
	time.Sleep(60 * time.Millisecond)
	d.hand("mousedown", "1")
	for i := 1; i <= 8; i++ { // as a hand does: on the way, too
		p := from.Add(to.Sub(from).Mul(i).Div(8))
		d.Move(p.X, p.Y)
		time.Sleep(20 * time.Millisecond)
	}
	d.hand("sleep", "0.1", "mouseup", "1")
}

// Scroll turns the wheel at a point: positive is down, in notches.
func (d *Desktop) Scroll(x, y, notches int) {
	d.t.Helper()
	d.Move(x, y)
	button := "5"
	if notches < 0 {
		button, notches = "4", -notches
	}
	d.hand("click", "--repeat", strconv.Itoa(notches), "--delay", "30", button)
}

// Type types text that a US keyboard has, to whatever has the focus.
func (d *Desktop) Type(text string) {
	d.t.Helper()
	d.hand("type", "--delay", "40", "--", text)
}

// Key presses one key or chord by its X name: "Return", "ctrl+a".
func (d *Desktop) Key(name string) {
	d.t.Helper()
	d.hand("key", "--delay", "40", name)
}
