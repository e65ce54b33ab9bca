package display

import (
	"fmt"
	"image"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

func titled(s space.Stack, title string) (space.Window, bool) {
	i := slices.IndexFunc(s, func(w space.Window) bool { return w.Title == title })
	if i < 0 {
		return space.Window{}, false
	}
	return s[i], true
}

func xterm(t *testing.T, name, title, at string) *exec.Cmd {
	return start(t, name, "xterm", "-title", title, "-geometry", "30x8"+at, "-xrm", "*allowTitleOps: false")
}

func TestWindowsUnderAWindowManager(t *testing.T) {
	name := xvfb(t, "800x600")
	paint(t, name, "#3060c0")
	start(t, name, "openbox")
	eventually(t, "the window manager", func() bool {
		return strings.Contains(run(t, name, "xprop", "-root", "_NET_SUPPORTING_WM_CHECK"), "window id")
	})
	h := openAt(t, name)
	find := func(title string) (w space.Window) {
		eventually(t, title, func() bool {
			s, err := h.Windows(within(t))
			if err != nil {
				t.Fatal(err)
			}
			var ok bool
			w, ok = titled(s, title)
			return ok && !w.Frame.Empty()
		})
		return w
	}
	one := xterm(t, name, "one", "+50+60")
	first := find("one")
	xterm(t, name, "two", "+120+100")
	second := find("two")
	if first.PID != one.Process.Pid || first.Class != "XTerm" || first.App != "xterm" || first.Started == 0 || first.Popup || first.Ours {
		t.Errorf("%+v", first)
	}
	// Its frame has the decorations: xwininfo, which knows the frame, agrees.
	var x, y, w, hgt int
	for line := range strings.Lines(run(t, name, "xwininfo", "-frame", "-id", fmt.Sprint(first.ID))) {
		line = strings.TrimSpace(line)
		fmt.Sscanf(line, "Absolute upper-left X:  %d", &x)
		fmt.Sscanf(line, "Absolute upper-left Y:  %d", &y)
		fmt.Sscanf(line, "Width: %d", &w)
		fmt.Sscanf(line, "Height: %d", &hgt)
	}
	inner := image.Rect(x, y, x+w, y+hgt)
	if !inner.In(first.Frame) {
		t.Errorf("the frame %v does not have %v in it", first.Frame, inner)
	}
	active := func() string { return strings.TrimSpace(run(t, name, "xdotool", "getactivewindow")) }
	if err := h.Focus(within(t), first, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the focus on the first", func() bool { return active() == fmt.Sprint(first.ID) })
	s, err := h.Windows(within(t))
	if err != nil || len(s) < 2 || !s[0].Same(first) || !s[0].Focused || s[1].Focused {
		t.Fatalf("the topmost is not the one that was raised: %+v, %v", s, err)
	}
	if under, ok := s.Under(image.Pt(second.Frame.Max.X-3, second.Frame.Max.Y-3)); !ok || !under.Same(second) {
		t.Errorf("under the second's corner is %+v", under)
	}
	// Without raise it gets the keyboard and stays below.
	if err := h.Focus(within(t), second, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the focus on the second", func() bool { return active() == fmt.Sprint(second.ID) })
	if s, err = h.Windows(within(t)); err != nil || !s[0].Same(first) {
		t.Errorf("it was raised: %+v, %v", s, err)
	}
	// A minimised one is last, is no longer in pictures, and comes back.
	run(t, name, "xdotool", "windowminimize", fmt.Sprint(first.ID))
	eventually(t, "that it is minimised", func() bool {
		s, err = h.Windows(within(t))
		return err == nil && s[len(s)-1].Same(first) && s[len(s)-1].Minimized
	})
	if _, err := h.Shoot(within(t), hands.Ask{Window: &first}); wire.CodeOf(err) != wire.CodeNotSupported {
		t.Errorf("a picture of a minimised window: %v", err)
	}
	if err := h.Focus(within(t), first, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "that it is back", func() bool { return !find("one").Minimized && active() == fmt.Sprint(first.ID) })
	// One picture of one window.
	eventually(t, "its picture", func() bool {
		now := find("one")
		shot, err := h.Shoot(within(t), hands.Ask{Window: &now, Format: hands.PNG})
		return err == nil && shot.View.Area == now.Frame && shot.View.Size == now.Frame.Size()
	})
	// Another window in its place is another.
	other := first
	other.Started++
	if err := h.Focus(within(t), other, true, time.Now()); wire.CodeOf(err) != wire.CodeWindowStale {
		t.Errorf("a window of another process: %v", err)
	}
	one.Process.Kill()
	eventually(t, "that it is stale", func() bool {
		return wire.CodeOf(h.Focus(within(t), first, true, time.Now())) == wire.CodeWindowStale
	})
	if _, err := h.Shoot(within(t), hands.Ask{Window: &first}); wire.CodeOf(err) != wire.CodeWindowStale {
		t.Errorf("a picture of a window that is gone: %v", err)
	}
	if err := h.Control(within(t), hands.Control{Own: []int{second.PID}}); err != nil {
		t.Fatal(err)
	}
	if err := h.Focus(within(t), second, true, time.Now()); wire.CodeOf(err) != wire.CodeOwnWindow {
		t.Errorf("the focus for a window of our own: %v", err)
	}
	start(t, name, "xterm", "-title", "large", "-fullscreen")
	eventually(t, "that it is full", func() bool { w := find("large"); return w.Full && w.Frame == image.Rect(0, 0, 800, 600) })
}

// TestWindowsWithoutAWindowManager: as on an X server that has windows alone.
func TestWindowsWithoutAWindowManager(t *testing.T) {
	name := xvfb(t, "640x400")
	h := openAt(t, name)
	xterm(t, name, "one", "+20+20")
	eventually(t, "one", func() bool { s, err := h.Windows(within(t)); return err == nil && len(s) == 1 })
	xterm(t, name, "two", "+60+60")
	eventually(t, "two", func() bool { s, err := h.Windows(within(t)); return err == nil && len(s) == 2 && s[0].Title == "two" })
	s, err := h.Windows(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Focus(within(t), s[1], true, time.Now()); err != nil {
		t.Fatal(err)
	}
	if now, err := h.Windows(within(t)); err != nil || !now[0].Same(s[1]) || !now[0].Focused {
		t.Errorf("%+v, %v", now, err)
	}
}
