package display

import (
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"localpc/capabilities/computer/hands"
)

// dump is the screen as another program sees it.
func dump(t testing.TB, name string) image.Image {
	t.Helper()
	to := filepath.Join(t.TempDir(), "screen.png")
	run(t, name, "import", "-window", "root", to)
	f, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestFrame(t *testing.T) {
	name := xvfb(t, "640x400")
	paint(t, name, "#3060c0")
	run(t, name, "xrandr", "--setmonitor", "left", "320/80x400/100+0+0", "screen")
	run(t, name, "xrandr", "--setmonitor", "right", "320/80x400/100+320+0", "none")
	h := openAt(t, name)
	if err := h.Control(within(t), hands.Control{On: true, Colour: "#ff8000"}); err != nil {
		t.Fatal(err)
	}
	orange, blue := color.RGBA{0xff, 0x80, 0, 255}, color.RGBA{0x30, 0x60, 0xc0, 255}
	img := dump(t, name)
	for _, p := range []image.Point{{0, 0}, {3, 200}, {319, 200}, {320, 200}, {639, 399}, {100, 396}, {500, 3}} {
		if !near(img, p.X, p.Y, orange) {
			t.Errorf("%v has no frame: %v", p, img.At(p.X, p.Y))
		}
	}
	for _, p := range []image.Point{{4, 4}, {315, 200}, {324, 200}, {160, 395}} {
		if !near(img, p.X, p.Y, blue) {
			t.Errorf("%v has a frame: %v", p, img.At(p.X, p.Y))
		}
	}
	s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG})
	if err != nil {
		t.Fatal(err)
	}
	picture := decode(t, s)
	if !near(picture, 1, 1, color.RGBA{}) || !near(picture, 320, 200, color.RGBA{}) || !near(picture, 4, 4, blue) {
		t.Errorf("the frame is in the picture: %v %v", picture.At(1, 1), picture.At(4, 4))
	}
	if len(s.Stack) != 0 || len(s.Hidden) != 0 {
		t.Errorf("the frame is a window that clicks reach, or is named: %v %v", s.Stack, s.Hidden)
	}
	// A click goes through: the program that gets it says so.
	run(t, name, "xdotool", "mousemove", "1", "100")
	if out := run(t, name, "xdotool", "getmouselocation", "--shell"); !contains(out, "WINDOW="+decimal(rootOf(t, name))) {
		t.Errorf("the pointer is over %s", out)
	}
	run(t, name, "xrandr", "--delmonitor", "right")
	eventually(t, "the frame of one screen", func() bool {
		img := dump(t, name)
		return near(img, 319, 200, orange) && !near(img, 639, 399, orange)
	})
	if err := h.Control(within(t), hands.Control{}); err != nil {
		t.Fatal(err)
	}
	if img := dump(t, name); !near(img, 1, 1, blue) {
		t.Errorf("the frame is still there: %v", img.At(1, 1))
	}
}

// TestFrameComesBack: a window that is put over the frame does not keep it away.
func TestFrameComesBack(t *testing.T) {
	name := xvfb(t, "640x400")
	h := openAt(t, name)
	if err := h.Control(within(t), hands.Control{On: true, Colour: "#ff8000"}); err != nil {
		t.Fatal(err)
	}
	start(t, name, "xterm", "-geometry", "40x10+0+0", "-b", "0", "-bg", "#3060c0")
	eventually(t, "the window below its frame", func() bool {
		s, err := h.Windows(within(t))
		if err != nil || len(s) != 1 {
			return false
		}
		img := dump(t, name)
		return near(img, 150, 60, color.RGBA{0x30, 0x60, 0xc0, 255}) && near(img, 150, 1, color.RGBA{0xff, 0x80, 0, 255})
	})
	// A screen lock covers all, and is not drawn upon.
	t.Setenv("DISPLAY_TEST_FLING", "lock")
	start(t, name, os.Args[0])
	eventually(t, "the lock", func() bool { return near(dump(t, name), 320, 399, color.RGBA{0, 0x40, 0, 255}) })
	time.Sleep(2 * frameRaises)
	if img := dump(t, name); !near(img, 320, 399, color.RGBA{0, 0x40, 0, 255}) || !near(img, 1, 1, color.RGBA{0, 0x40, 0, 255}) {
		t.Errorf("the frame is on top of the lock: %v", img.At(1, 1))
	}
}
