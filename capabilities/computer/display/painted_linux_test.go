package display

import (
	"image"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/shape"
	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// bare makes a window that has no background, and does not map it.
func bare(t *testing.T, c *xconn, at image.Rectangle) xproto.Window {
	t.Helper()
	w, err := xproto.NewWindowId(c.Conn)
	if err == nil {
		err = xproto.CreateWindowChecked(c.Conn, 0, w, c.root, int16(at.Min.X), int16(at.Min.Y), uint16(at.Dx()), uint16(at.Dy()), 0,
			xproto.WindowClassInputOutput, 0, xproto.CwOverrideRedirect, []uint32{1}).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// owns says which processes are this program's: the windows of a test are not.
func owns(h hands.Hands, pids ...int) {
	d := h.(*desk)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.own = map[int]bool{}
	for _, pid := range pids {
		d.own[pid] = true
	}
}

func dialed(t *testing.T, name string) *xconn {
	t.Helper()
	c, err := dialX11(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestUnpaintedCoversNothing: a window that has just come, grown or been raised
// shows what was there before until its program paints it.
func TestUnpaintedCoversNothing(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	h := openAt(t, name)
	owns(h)
	start(t, name, "xterm", "-geometry", "20x6+100+120", "-bg", "#ff00ff", "-fg", "#ff00ff", "-cr", "#ff00ff", "-class", "Bitwarden")
	shoot := func(hide hands.Curtain) hands.Shot {
		s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG, Hide: hide})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	eventually(t, "the secret", func() bool { return len(leaks(decode(t, shoot(hands.Curtain{})))) > 1000 })
	whole := image.Rect(0, 0, 640, 400)
	c := dialed(t, name)
	for how, act := range map[string]func(w xproto.Window){
		"mapped": func(w xproto.Window) { xproto.MapWindow(c.Conn, w) },
		"grown": func(w xproto.Window) {
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowWidth|xproto.ConfigWindowHeight, []uint32{10, 10})
			xproto.MapWindow(c.Conn, w)
			c.Sync()
			time.Sleep(trailFades + 100*time.Millisecond)
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowWidth|xproto.ConfigWindowHeight, []uint32{640, 400})
		},
		"raised": func(w xproto.Window) {
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeBelow})
			xproto.MapWindow(c.Conn, w)
			c.Sync()
			time.Sleep(trailFades + 100*time.Millisecond)
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
		},
	} {
		t.Run(how, func(t *testing.T) {
			eventually(t, "a look that began soon enough", func() bool {
				w := bare(t, c, whole)
				defer func() {
					xproto.DestroyWindow(c.Conn, w)
					c.Sync()
				}()
				began := time.Now()
				act(w)
				c.Sync()
				acted := time.Now()
				s := shoot(usual)
				if limit := trailFades - 50*time.Millisecond; how == "mapped" && s.At.Sub(began) > limit || s.At.Sub(acted) > limit {
					return false // this computer was too busy
				}
				if at := leaks(decode(t, s)); len(at) > 0 {
					t.Fatalf("%d pixels of the hidden window are in the picture, from %v", len(at), at[0])
				}
				return true
			})
		})
	}
}

func TestCompositingManagerCoversNothing(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	h := openAt(t, name)
	start(t, name, "xterm", "-title", "one")
	clear := func() bool {
		s, err := h.Windows(within(t))
		if err != nil {
			t.Fatal(err)
		}
		w, ok := titled(s, "one")
		return !ok || w.Seethrough
	}
	eventually(t, "an opaque window", func() bool { return !clear() })
	c := dialed(t, name)
	if err := xproto.SetSelectionOwnerChecked(c.Conn, bare(t, c, image.Rect(0, 0, 1, 1)), c.atom("_NET_WM_CM_S0"), 0).Check(); err != nil {
		t.Fatal(err)
	}
	if !clear() {
		t.Error("with a compositing manager a window is taken to cover others")
	}
}

// TestLongTitle: browsers say last that a window is private.
func TestLongTitle(t *testing.T) {
	name := xvfb(t, "640x400")
	h := openAt(t, name)
	c := dialed(t, name)
	w := bare(t, c, image.Rect(10, 10, 90, 90))
	title := strings.Repeat("page ", 4000) + "— Mozilla Firefox (Private Browsing)"
	xproto.ChangeProperty(c.Conn, xproto.PropModeReplace, w, c.atom("_NET_WM_NAME"), c.atom("UTF8_STRING"), 8, uint32(len(title)), []byte(title))
	xproto.MapWindow(c.Conn, w)
	c.Sync()
	s, err := h.Windows(within(t))
	if err != nil || len(s) != 1 {
		t.Fatalf("%v, %v", s, err)
	}
	if !usual.Hides(s[0]) || len(s[0].Title) > 4200 {
		t.Errorf("a private window is not hidden; its title has %d bytes", len(s[0].Title))
	}
}

// TestTrailOfALongLook: what showed when a look began is in it to its end.
func TestTrailOfALongLook(t *testing.T) {
	trail, began := newTrail(), time.Now()
	trail.at(1, space.Window{ID: 7, Frame: image.Rect(0, 0, 9, 9)})
	trail.left(1)
	trail.moved(2, image.Rect(0, 0, 5, 5))
	trail.at(2, space.Window{ID: 8, Frame: image.Rect(0, 0, 5, 5)})
	time.Sleep(trailFades + 10*time.Millisecond)
	look := func(since time.Time) (old, clear bool) {
		s := space.Stack{{ID: 8}}
		trail.unpainted(s, since)
		return slices.ContainsFunc(trail.old(since), func(w space.Window) bool { return w.ID == 7 }), s[0].Seethrough
	}
	if old, clear := look(began); !old || !clear {
		t.Errorf("a look that began before: %v, %v", old, clear)
	}
	if old, clear := look(time.Now()); old || clear {
		t.Errorf("a look that begins after: %v, %v", old, clear)
	}
}

// TestTrailOfAnEarlierProcess: a fresh process does not know what was hidden where
// until just before it came, and waits until that has gone from the screen.
func TestTrailOfAnEarlierProcess(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	c := dialed(t, name)
	// It has no background: where it is uncovered it shows what lay over it, until
	// its program comes to paint.
	slow := bare(t, c, image.Rect(0, 0, 640, 400))
	xproto.MapWindow(c.Conn, slow)
	secret := start(t, name, "xterm", "-geometry", "20x6+100+120", "-bg", "#ff00ff", "-fg", "#ff00ff", "-cr", "#ff00ff", "-class", "Bitwarden")
	first := openAt(t, name)
	owns(first)
	eventually(t, "the secret", func() bool {
		s, err := first.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG})
		return err == nil && len(leaks(decode(t, s))) > 1000
	})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = secret.Process.Kill()
	_ = secret.Wait()
	time.Sleep(20 * time.Millisecond)
	painted := time.AfterFunc(trailFades/2, func() {
		xproto.ClearArea(c.Conn, false, c.root, 0, 0, 0, 0)
		xproto.UnmapWindow(c.Conn, slow)
		c.Sync()
	})
	defer painted.Stop()
	h := openAt(t, name)
	owns(h)
	s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG, Hide: usual})
	if err != nil {
		t.Fatal(err)
	}
	if at := leaks(decode(t, s)); len(at) > 0 {
		t.Errorf("%d pixels of a window that was hidden are in the picture of a fresh process, from %v", len(at), at[0])
	}
}

// TestClickThroughAHole: a window of this program that lies under a hole of
// another one's input shape gets no click.
func TestClickThroughAHole(t *testing.T) {
	name := xvfb(t, "640x400")
	h := openAt(t, name)
	ours := start(t, name, "xterm", "-geometry", "30x10+50+50", "-title", "ours")
	eventually(t, "the window", func() bool {
		s, err := h.Windows(within(t))
		_, ok := titled(s, "ours")
		return err == nil && ok
	})
	owns(h, ours.Process.Pid)
	c := dialed(t, name)
	if _, ok := c.extension("SHAPE"); !ok {
		t.Fatal("no SHAPE")
	}
	w := bare(t, c, image.Rect(0, 0, 640, 400))
	xproto.MapWindow(c.Conn, w)
	shape.Rectangles(c.Conn, shape.SoSet, shape.SkInput, 0, w, 0, 0, []xproto.Rectangle{{X: 0, Y: 0, Width: 640, Height: 80}})
	c.Sync()
	click := func(at image.Point) error {
		return h.Act(within(t), hands.Action{Kind: hands.Click, At: &at, Seen: time.Now()})
	}
	if err := click(image.Pt(80, 70)); err != nil {
		t.Errorf("where the window on top takes the click: %v", err)
	}
	if err := click(image.Pt(80, 100)); wire.CodeOf(err) != wire.CodeOwnWindow {
		t.Errorf("through the hole: %v", err)
	}
}
