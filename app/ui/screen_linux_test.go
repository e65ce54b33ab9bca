package ui

import (
	"bufio"
	"image"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver"
	"fyne.io/fyne/v2/test"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/shape"
	"github.com/jezek/xgb/xproto"
)

// onX is a Screen of an X server of the test's own.
func onX(t *testing.T) *x11 {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "800x600x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	w.Close()
	r.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("the X server did not start: %v", err)
	}
	t.Setenv("DISPLAY", ":"+strings.TrimSpace(n))
	t.Setenv("XAUTHORITY", "")
	x, ok := newScreen().(*x11)
	if !ok {
		t.Fatal("there is no screen")
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// within fails the test where fn takes long.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what)
	}
}

// What the server tells everybody, and what nobody waits for, does not pile up
// until nothing is answered any more; and no table that connections read is
// written while they do.
func TestScreenOverALongTime(t *testing.T) {
	x := onX(t)
	within(t, "the display hangs after some thousand errors and notices", func() {
		for range 6000 {
			xproto.ConfigureWindow(x.conn, 1, xproto.ConfigWindowX, []uint32{1}) // there is no such window
		}
		if x.atom("_LOCALPC_TEST") == 0 {
			t.Error("the display does not answer")
		}
	})
	events := len(xgb.NewEventFuncs)
	if _, _, wide := x.primary(); wide != 800 || !x.randr {
		t.Errorf("the first screen is %d wide; several are known of: %v", wide, x.randr)
	}
	if n := len(xgb.NewEventFuncs); n != events {
		t.Errorf("asking for the screens wrote %d events into the table that other connections read", n-events)
	}
}

// madeWindow is a window that the toolkit has made.
type madeWindow struct {
	fyne.Window
	id xproto.Window
}

func (w madeWindow) RunNative(f func(any)) {
	f(driver.X11WindowContext{WindowHandle: uintptr(w.id)})
}

// On a Wayland desktop a window that is kept from the window manager may be in
// no list of windows: the strip is an ordinary one there, which the person moves
// as they do others and which stays where they put it.
func TestStripIsAWindowOnWayland(t *testing.T) {
	for _, name := range []string{"", "wayland-1"} {
		t.Setenv("WAYLAND_DISPLAY", name)
		x := onX(t)
		id, err := xproto.NewWindowId(x.conn)
		if err != nil {
			t.Fatal(err)
		}
		if err := xproto.CreateWindowChecked(x.conn, 0, id, x.root.Root, 0, 0, 10, 10, 0, xproto.WindowClassInputOutput, 0, 0, nil).Check(); err != nil {
			t.Fatal(err)
		}
		w := madeWindow{test.NewTempWindow(t, nil), id}
		x.Bare(w)
		a, err := xproto.GetWindowAttributes(x.conn, id).Reply()
		if err != nil {
			t.Fatal(err)
		}
		if bare := name == ""; a.OverrideRedirect != bare {
			t.Errorf("with WAYLAND_DISPLAY %q, kept from the window manager: %v", name, a.OverrideRedirect)
		}
		for again, stays := range map[bool]bool{false: false, true: name != ""} {
			xproto.ConfigureWindow(x.conn, id, xproto.ConfigWindowX|xproto.ConfigWindowY, []uint32{50, 60})
			x.PlaceTop(w, fyne.NewSize(10, 10), again)
			g, err := xproto.GetGeometry(x.conn, xproto.Drawable(id)).Reply()
			if err != nil {
				t.Fatal(err)
			}
			if at := image.Pt(int(g.X), int(g.Y)); (at == image.Pt(50, 60)) != stays {
				t.Errorf("with WAYLAND_DISPLAY %q, put at its place again %v, it is at %v", name, again, at)
			}
		}
	}
}

// A screen may go from under the strip, or become smaller.
func TestWhatIsOnAScreen(t *testing.T) {
	x := onX(t)
	id, err := xproto.NewWindowId(x.conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := xproto.CreateWindowChecked(x.conn, 0, id, x.root.Root, 700, 10, 180, 20, 0, xproto.WindowClassInputOutput, 0, 0, nil).Check(); err != nil {
		t.Fatal(err)
	}
	w := madeWindow{test.NewTempWindow(t, nil), id}
	for at, want := range map[uint32]bool{0: true, 700: true, 720: false, 1200: false} {
		xproto.ConfigureWindow(x.conn, id, xproto.ConfigWindowX, []uint32{at})
		if x.OnScreen(w) != want {
			t.Errorf("at %d of 800, 180 wide, on the screen: %v", at, !want)
		}
	}
}

// A click that goes through another window is told from one on what is seen: a
// program may lay over a card what it likes, and let the click through.
func TestClicksThroughAnotherWindow(t *testing.T) {
	x := onX(t)
	other, err := xgb.NewConn() // another program
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	r, err := xproto.QueryExtension(other, 5, "SHAPE").Reply()
	if err != nil {
		t.Fatal(err)
	}
	other.ExtLock.Lock()
	other.Extensions["SHAPE"] = r.MajorOpcode
	other.ExtLock.Unlock()
	show := func(c *xgb.Conn, px, py int16, w, h uint16) xproto.Window {
		t.Helper()
		id, err := xproto.NewWindowId(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := xproto.CreateWindowChecked(c, 0, id, x.root.Root, px, py, w, h, 0, xproto.WindowClassInputOutput, 0, xproto.CwOverrideRedirect, []uint32{1}).Check(); err != nil {
			t.Fatal(err)
		}
		if err := xproto.MapWindowChecked(c, id).Check(); err != nil {
			t.Fatal(err)
		}
		return id
	}
	cut := func(w xproto.Window, kind shape.Kind, rects ...xproto.Rectangle) {
		t.Helper()
		if err := shape.RectanglesChecked(other, shape.SoSet, kind, xproto.ClipOrderingUnsorted, w, 0, 0, rects).Check(); err != nil {
			t.Fatal(err)
		}
	}
	at := func(what string, px, py int16, want bool) {
		t.Helper()
		if err := xproto.WarpPointerChecked(x.conn, 0, x.root.Root, 0, 0, 0, 0, px, py).Check(); err != nil {
			t.Fatal(err)
		}
		if got := x.gate.through(); got != want {
			t.Errorf("%s: through another window %v, want %v", what, got, want)
		}
	}
	show(x.conn, 100, 100, 400, 300) // the card
	at("nothing over it", 200, 200, false)
	over := show(other, 150, 150, 300, 200)
	at("one that takes the click itself", 200, 200, false)
	cut(over, shape.SkInput)
	at("one that lets it through", 200, 200, true)
	at("beside that", 120, 120, false)
	cut(over, shape.SkBounding, xproto.Rectangle{Width: 300, Height: 20})
	at("one that is not there, by its shape", 200, 200, false)
	at("where it is", 200, 160, true)
	below := xproto.ConfigureWindowChecked(other, over, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeBelow})
	if err := below.Check(); err != nil {
		t.Fatal(err)
	}
	at("one below it", 200, 160, false)
	frame := show(other, 100, 200, 400, 4)
	cut(frame, shape.SkInput)
	at("a narrow frame", 200, 202, false)
}
