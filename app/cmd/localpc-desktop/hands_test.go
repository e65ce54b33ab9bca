//go:build linux

package main_test

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
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

// Killed at any moment of any action, it leaves no key and no button down: the
// fresh one lets go of them.
func TestHandsAreKilledWhileTheyHold(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoBus: true})
	d.Start("xterm", "-title", "under it", "-geometry", "80x24+100+100", "-e", "cat")
	d.WaitWindow(soon, "under it")
	h := handsOn(t, d)
	lost := make(chan struct{}, 1)
	h.Listen(func(e hands.Event) {
		if e.Lost {
			lost <- struct{}{}
		}
	})
	ctx := t.Context()
	path := make([]image.Point, 400)
	for i := range path {
		path[i] = image.Pt(200+i, 300+i%20)
	}
	actions := []hands.Action{
		{Kind: hands.HoldKey, Chord: "ctrl+shift+a", Hold: time.Minute},
		{Kind: hands.Drag, Button: "left", Path: path, Modifiers: []string{"alt"}},
		{Kind: hands.Type, Text: strings.Repeat("ÄÖ aA世界", 500)},
		{Kind: hands.Key, Chord: "shift+x", Repeat: 100},
		{Kind: hands.Press, Button: "left", At: &image.Point{X: 300, Y: 300}},
	}
	held := 0
	for i, a := range append(actions, actions...) {
		if err := h.Control(ctx, hands.Control{On: true, Colour: "#d9480f"}); err != nil {
			t.Fatal(err)
		}
		a.Seen = time.Now()
		done := make(chan error, 1)
		go func() { done <- h.Act(ctx, a) }()
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		held += d.Held()
		pid := h.PID()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		if !d.Until(soon, func() bool { return h.PID() != pid && d.Held() == 0 }) {
			t.Fatalf("%d: after %s %d keys or buttons are down", i, a.Kind, d.Held())
		}
		select {
		case <-lost:
		case <-time.After(soon):
			t.Fatal("nothing told of the loss")
		}
		t.Logf("%s: all was up after %v", a.Kind, time.Since(killed).Round(time.Millisecond))
		<-done
		if n := d.Held(); n != 0 {
			t.Fatalf("%d: after %s %d keys or buttons are down again", i, a.Kind, n)
		}
	}
	if held == 0 {
		t.Error("nothing was ever held")
	}
}

// What ends it otherwise lets go, too: its link, a signal.
func TestHandsLetGo(t *testing.T) {
	t.Parallel()
	d := apptest.New(t, apptest.Options{NoBus: true})
	h := handsOn(t, d)
	hold := func() {
		t.Helper()
		ended := make(chan error, 1)
		act := func() {
			ended <- h.Act(t.Context(), hands.Action{Kind: hands.HoldKey, Chord: "shift+a", Hold: time.Minute, Seen: time.Now()})
		}
		go act()
		var err error
		if !d.Until(soon, func() bool {
			select {
			case err = <-ended: // it went to a process that was about to end
				go act()
			default:
			}
			return d.Held() == 2
		}) {
			t.Fatalf("%d keys are down, %v", d.Held(), err)
		}
	}
	hold()
	if err := syscall.Kill(h.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !d.Until(soon, func() bool { return d.Held() == 0 }) {
		t.Error("keys are down after a signal")
	}
	hold()
	h.Close()
	if n := d.Held(); n != 0 {
		t.Errorf("%d keys are down after its link has ended", n)
	}
}
