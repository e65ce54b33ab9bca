package display

import (
	"image"
	"image/color"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
)

// fling is a program with a window of one colour that nothing else on the
// screen has, and the class of a password manager; it never keeps still.
func fling(how string) {
	c, err := dialX11(os.Getenv("DISPLAY"))
	if err != nil {
		os.Exit(1)
	}
	w, _ := xproto.NewWindowId(c.Conn)
	err = xproto.CreateWindowChecked(c.Conn, 0, w, c.root, 0, 0, 90, 70, 0, xproto.WindowClassInputOutput, 0,
		xproto.CwBackPixel|xproto.CwOverrideRedirect, []uint32{0xff00ff, 1}).Check()
	if err != nil {
		os.Exit(1)
	}
	const class = "keepassxc\x00KeePassXC\x00"
	xproto.ChangeProperty(c.Conn, xproto.PropModeReplace, w, xproto.AtomWmClass, xproto.AtomString, 8, uint32(len(class)), []byte(class))
	xproto.MapWindow(c.Conn, w)
	for {
		at := []uint32{uint32(rand.IntN(500)), uint32(rand.IntN(300))}
		switch how {
		case "lock": // large, dark green, and still
			xproto.ChangeWindowAttributes(c.Conn, w, xproto.CwBackPixel, []uint32{0x004000})
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowWidth|xproto.ConfigWindowHeight, []uint32{uint32(c.screen.WidthInPixels), uint32(c.screen.HeightInPixels)})
			xproto.ClearArea(c.Conn, false, w, 0, 0, 0, 0)
			time.Sleep(time.Hour)
		case "lock black":
			xproto.ChangeWindowAttributes(c.Conn, w, xproto.CwBackPixel, []uint32{0})
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowWidth|xproto.ConfigWindowHeight, []uint32{uint32(c.screen.WidthInPixels), uint32(c.screen.HeightInPixels)})
			xproto.ClearArea(c.Conn, false, w, 0, 0, 0, 0)
			if _, err := xproto.GetInputFocus(c.Conn).Reply(); err != nil {
				os.Exit(0)
			}
			time.Sleep(time.Hour)
		case "moves":
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowX|xproto.ConfigWindowY, at)
		case "grows":
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowWidth|xproto.ConfigWindowHeight, []uint32{40 + at[0], 40 + at[1]})
		case "comes and goes":
			xproto.UnmapWindow(c.Conn, w)
			xproto.ConfigureWindow(c.Conn, w, xproto.ConfigWindowX|xproto.ConfigWindowY, at)
			xproto.MapWindow(c.Conn, w)
		}
		if _, err := xproto.GetInputFocus(c.Conn).Reply(); err != nil {
			os.Exit(0)
		}
		time.Sleep(time.Millisecond)
	}
}

// leaks is where img has the secret's colour.
func leaks(img image.Image) (at []image.Point) {
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if r, g, b, _ := img.At(x, y).RGBA(); r > 0x8000 && g < 0x4000 && b > 0x8000 {
				at = append(at, image.Pt(x, y))
			}
		}
	}
	return at
}

var usual = hands.Curtain{Words: hands.Usual}

func TestHiddenWindowNeverShows(t *testing.T) {
	for _, how := range []string{"moves", "grows", "comes and goes"} {
		t.Run(how, func(t *testing.T) {
			name := xvfb(t, "640x400")
			paint(t, name, "#3060c0")
			h := openAt(t, name)
			t.Setenv("DISPLAY_TEST_FLING", how)
			start(t, name, os.Args[0])
			shoot := func(hide hands.Curtain) (hands.Shot, []image.Point) {
				s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG, Hide: hide})
				if err != nil {
					t.Fatal(err)
				}
				return s, leaks(decode(t, s))
			}
			eventually(t, "the window without a curtain", func() bool {
				_, at := shoot(hands.Curtain{})
				return len(at) > 0
			})
			for range 12 {
				s, at := shoot(usual)
				if len(at) > 0 {
					t.Fatalf("%d pixels of the hidden window are in the picture, from %v", len(at), at[0])
				}
				if !slices.Equal(s.Hidden, []string{filepath.Base(os.Args[0])}) {
					t.Fatalf("hidden: %q", s.Hidden)
				}
			}
		})
	}
}

// TestCurtain: what is black, and what is not, in a picture of known windows.
func TestCurtain(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	run(t, name, "xrandr", "--setmonitor", "left", "320/80x400/100+0+0", "screen")
	run(t, name, "xrandr", "--setmonitor", "right", "320/80x400/100+320+0", "none")
	h := openAt(t, name)
	start(t, name, "xterm", "-geometry", "20x6+100+120", "-bg", "#ff00ff", "-fg", "#ff00ff", "-cr", "#ff00ff", "-class", "Bitwarden")
	other := start(t, name, "xterm", "-geometry", "20x6+400+120", "-bg", "#ff00ff", "-fg", "#ff00ff", "-cr", "#ff00ff", "-title", "notes")
	eventually(t, "both windows", func() bool {
		s, err := h.Windows(within(t))
		return err == nil && len(s) == 2
	})
	count := func(a hands.Ask) (left, right int, s hands.Shot) {
		t.Helper()
		a.Area, a.Format = wholeScreen, hands.PNG
		s, err := h.Shoot(within(t), a)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range leaks(decode(t, s)) {
			if p.X < 320 {
				left++
			} else {
				right++
			}
		}
		return left, right, s
	}
	eventually(t, "both windows' colour", func() bool {
		l, r, _ := count(hands.Ask{})
		return l > 1000 && r > 1000
	})
	if l, r, s := count(hands.Ask{Hide: usual}); l != 0 || r < 1000 || !slices.Equal(s.Hidden, []string{"xterm"}) {
		t.Errorf("behind the curtain: %d and %d pixels, hidden %q", l, r, s.Hidden)
	}
	if l, r, s := count(hands.Ask{Hide: hands.Curtain{Words: []string{"NOTES"}}}); l < 1000 || r != 0 || len(s.Hidden) != 1 {
		t.Errorf("by its title: %d and %d pixels, hidden %q", l, r, s.Hidden)
	}
	if l, r, s := count(hands.Ask{Dark: []int{1}}); l < 1000 || r != 0 || len(s.Hidden) != 0 {
		t.Errorf("a screen that is not shared: %d and %d pixels", l, r)
	}
	if err := h.Control(within(t), hands.Control{Own: []int{other.Process.Pid}}); err != nil {
		t.Fatal(err)
	}
	l, r, s := count(hands.Ask{})
	if l < 1000 || r != 0 || len(s.Hidden) != 0 {
		t.Errorf("a window of our own: %d and %d pixels, hidden %q", l, r, s.Hidden)
	}
	if len(s.Covers) != 0 {
		t.Errorf("a picture for a program tells of %+v", s.Covers)
	}
	// On a card the two are told from each other: one is grey, the other black.
	own, hidden := image.Pt(460, 160), image.Pt(160, 160)
	for _, a := range []hands.Ask{{Hide: usual}, {Hide: usual, Card: true}} {
		_, _, s := count(a)
		img, want := decode(t, s), color.RGBA{0, 0, 0, 255}
		if a.Card {
			want = ownGrey
		}
		if got := color.RGBAModel.Convert(img.At(own.X, own.Y)); got != want {
			t.Errorf("for a card %v: our own window is %v", a.Card, got)
		}
		if got := color.RGBAModel.Convert(img.At(hidden.X, hidden.Y)); got != (color.RGBA{0, 0, 0, 255}) {
			t.Errorf("for a card %v: the hidden window is %v", a.Card, got)
		}
		if a.Card && (len(s.Covers) != 2 || !slices.ContainsFunc(s.Covers, func(c hands.Cover) bool { return c.Own && c.Name == "" && own.In(c.Area) }) ||
			!slices.ContainsFunc(s.Covers, func(c hands.Cover) bool { return !c.Own && c.Name == "xterm" && hidden.In(c.Area) })) {
			t.Errorf("covers: %+v", s.Covers)
		}
	}
	for _, w := range s.Stack {
		if w.Ours != (w.PID == other.Process.Pid) {
			t.Errorf("whose window: %+v", w)
		}
	}
	i := slices.IndexFunc(s.Stack, func(w space.Window) bool { return w.Ours })
	if _, err := h.Shoot(within(t), hands.Ask{Window: &s.Stack[i]}); err == nil {
		t.Error("a picture of our own window was taken")
	}
}

// TestHiddenFromTheFirst: a window manager puts a new window into a frame of
// its own, and tells of it later; no picture has it in between.
func TestHiddenFromTheFirst(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	start(t, name, "openbox")
	eventually(t, "the window manager", func() bool {
		return contains(run(t, name, "xprop", "-root", "_NET_SUPPORTING_WM_CHECK"), "window id")
	})
	h := openAt(t, name)
	for range 3 {
		x := exec.Command("xterm", "-geometry", "60x20", "-bg", "#ff00ff", "-fg", "#ff00ff", "-cr", "#ff00ff", "-class", "KeePassXC")
		if err := x.Start(); err != nil {
			t.Fatal(err)
		}
		shoot := func() bool {
			s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG, Hide: usual})
			if err != nil {
				t.Fatal(err)
			}
			if at := leaks(decode(t, s)); len(at) > 0 {
				t.Fatalf("%d pixels of the hidden window are in the picture, from %v", len(at), at[0])
			}
			return len(s.Hidden) > 0
		}
		eventually(t, "the window", shoot)
		for range 5 {
			shoot()
		}
		x.Process.Kill()
		x.Wait()
		eventually(t, "its end", func() bool { return !shoot() })
	}
}

// family is a program with a public and a private window, each with a dialog and
// menus, and one menu that comes and goes.
func family() {
	x, err := dialX11(os.Getenv("DISPLAY"))
	if err != nil {
		os.Exit(1)
	}
	show := func(at image.Rectangle, colour, menu uint32, title string, of xproto.Window) xproto.Window {
		w, _ := xproto.NewWindowId(x.Conn)
		xproto.CreateWindow(x.Conn, 0, w, x.root, int16(at.Min.X), int16(at.Min.Y), uint16(at.Dx()), uint16(at.Dy()), 0, xproto.WindowClassInputOutput, 0,
			xproto.CwBackPixel|xproto.CwOverrideRedirect, []uint32{colour, menu})
		xproto.ChangeProperty(x.Conn, xproto.PropModeReplace, w, xproto.AtomWmName, xproto.AtomString, 8, uint32(len(title)), []byte(title))
		if of != 0 {
			data := make([]byte, 4)
			xgb.Put32(data, uint32(of))
			xproto.ChangeProperty(x.Conn, xproto.PropModeReplace, w, xproto.AtomWmTransientFor, xproto.AtomWindow, 32, 1, data)
		}
		xproto.MapWindow(x.Conn, w)
		return w
	}
	const secret, plain = 0xff00ff, 0x00c000
	public := show(image.Rect(300, 20, 400, 60), plain, 0, "News", 0)
	show(image.Rect(300, 100, 400, 140), plain, 0, "Open", public)
	show(image.Rect(300, 200, 400, 240), plain, 1, "", public)
	private := show(image.Rect(20, 20, 120, 60), secret, 0, "Bank — Mozilla Firefox Private Browsing", 0)
	dialog := show(image.Rect(20, 100, 120, 140), secret, 0, "Save as", private)
	show(image.Rect(20, 200, 120, 240), secret, 1, "", dialog)
	for {
		menu := show(image.Rect(150, 200, 250, 240), secret, 1, "", 0) // it names no window
		if _, err := xproto.GetInputFocus(x.Conn).Reply(); err != nil {
			os.Exit(0)
		}
		time.Sleep(20 * time.Millisecond)
		xproto.DestroyWindow(x.Conn, menu)
		time.Sleep(5 * time.Millisecond)
	}
}

// TestWhatBelongsToAHiddenWindowIsHidden: menus and dialogs of a window whose
// title alone says that it is private do not say so themselves.
func TestWhatBelongsToAHiddenWindowIsHidden(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	h := openAt(t, name)
	t.Setenv("DISPLAY_TEST_FLING", "family")
	start(t, name, os.Args[0])
	look := func(hide hands.Curtain) (secret []image.Point, plain int, hidden []string) {
		t.Helper()
		s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG, Hide: hide})
		if err != nil {
			t.Fatal(err)
		}
		img := decode(t, s)
		for y := range 400 {
			for x := range 640 {
				if _, g, b, _ := img.At(x, y).RGBA(); g > 0x8000 && b < 0x4000 {
					plain++
				}
			}
		}
		return leaks(img), plain, s.Hidden
	}
	eventually(t, "the windows", func() bool {
		secret, plain, _ := look(hands.Curtain{})
		return len(secret) == 4*100*40 && plain == 3*100*40
	})
	for range 20 {
		secret, plain, hidden := look(usual)
		if len(secret) != 0 || plain != 3*100*40 || len(hidden) != 1 {
			t.Fatalf("behind the curtain: %d pixels of the private window's, %d of the others, hidden %q", len(secret), plain, hidden)
		}
	}
}
