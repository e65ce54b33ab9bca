//go:build linux

package main_test

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg"
	"os/exec"
	"testing"
	"time"

	"localpc/app/apptest"
	"localpc/app/desklink"
	"localpc/capabilities/computer/hands"
)

// handsOn is a link to the process at a desktop's display, with the test in
// localpc's place.
func handsOn(t *testing.T, d *apptest.Desktop) *desklink.Hands {
	t.Helper()
	h := desklink.NewHands(desklink.HandsOptions{Command: func() *exec.Cmd { return d.Command(binary, "hands") }})
	t.Cleanup(func() { h.Close() })
	return h
}

// The process at the display takes pictures of it, and has no window.
func TestHandsSee(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoBus: true, Ordinary: true})
	h := handsOn(t, d)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, err := h.Abilities(ctx)
	if err != nil || a.System != "x11" || !a.Pictures || !a.Windows {
		t.Fatalf("it can do %+v, %v", a, err)
	}
	d.Start("xterm", "-title", "seen", "-bg", "#c02080", "-geometry", "40x10+100+100", "-e", "cat")
	w := d.WaitWindow(soon, "seen")
	l, err := h.Layout(ctx)
	if err != nil || len(l.Screens) != 1 || l.Screens[0].Device != image.Rect(0, 0, 1024, 800) {
		t.Fatalf("the screens are %+v, %v", l, err)
	}
	var pic image.Image
	if !d.Until(soon, func() bool {
		s, err := h.Shoot(ctx, hands.Ask{ID: "1", Area: l.Bounds(), Format: hands.JPEG})
		if err != nil {
			t.Fatal(err)
		}
		if pic, _, err = image.Decode(bytes.NewReader(s.Data)); err != nil {
			t.Fatal(err)
		}
		r, g, b, _ := pic.At(w.Rect.Min.X+w.Rect.Dx()/2, w.Rect.Min.Y+w.Rect.Dy()/2).RGBA()
		return r>>8 > 0xa0 && g>>8 < 0x40 && b>>8 > 0x60 && len(s.Stack) > 0
	}) {
		d.Keep("it-saw", pic)
		t.Error("the picture does not show what is on the screen")
	}
	for _, w := range d.Windows() {
		if w.PID == h.PID() {
			t.Errorf("it has a window, %q", w.Title)
		}
	}
	pid := h.PID()
	h.Close()
	for _, p := range d.Processes() {
		if p.PID == pid {
			t.Errorf("%v runs on", p)
		}
	}
}
