package display

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

func decode(t testing.TB, s hands.Shot) image.Image {
	t.Helper()
	read := jpeg.Decode
	if s.Format == hands.PNG {
		read = png.Decode
	}
	img, err := read(bytes.NewReader(s.Data))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Size() != s.View.Size {
		t.Fatalf("the file has %v, its view says %v", img.Bounds().Size(), s.View.Size)
	}
	return img
}

// near tells whether img has the colour at (x, y), as far as a JPEG keeps it.
func near(img image.Image, x, y int, want color.RGBA) bool {
	r, g, b, _ := img.At(x, y).RGBA()
	d := func(a uint32, b uint8) bool { return max(int(a>>8)-int(b), int(b)-int(a>>8)) <= 24 }
	return d(r, want.R) && d(g, want.G) && d(b, want.B)
}

func paint(t testing.TB, name, colour string) { run(t, name, "xsetroot", "-solid", colour) }

var wholeScreen = image.Rect(-1<<14, -1<<14, 1<<14, 1<<14)

func TestPicture(t *testing.T) {
	for _, way := range []struct {
		name string
		args []string
	}{{"shared memory", nil}, {"without shared memory", []string{"-extension", "MIT-SHM"}}} {
		t.Run(way.name, func(t *testing.T) {
			name := xvfb(t, "800x600", way.args...)
			paint(t, name, "#3060c0")
			h := openAt(t, name)
			start(t, name, "xterm", "-geometry", "40x10+100+120", "-bg", "#c03030", "-class", "Red")
			eventually(t, "the window", func() bool {
				s, err := h.Windows(within(t))
				return err == nil && len(s) == 1 && s[0].Class == "Red"
			})
			for _, format := range []string{hands.JPEG, hands.PNG} {
				eventually(t, "a right picture as "+format, func() bool {
					s, err := h.Shoot(within(t), hands.Ask{ID: "p", Area: wholeScreen, Format: format})
					if err != nil {
						t.Fatal(err)
					}
					img := decode(t, s)
					if s.View.Size != image.Pt(800, 600) || s.View.Area != image.Rect(0, 0, 800, 600) || s.View.ID != "p" || len(s.Stack) != 1 {
						t.Fatalf("%+v", s.View)
					}
					return near(img, 20, 20, color.RGBA{0x30, 0x60, 0xc0, 255}) && near(img, 300, 220, color.RGBA{0xc0, 0x30, 0x30, 255})
				})
			}
			if fast := h.(*desk).pictures.(*x11Pictures).memory != nil; fast != (way.args == nil) {
				t.Errorf("shared memory is used: %v", fast)
			}
		})
	}
}

// TestPictureOfOtherServers: one with fewer colours, and one that may not reach
// our memory, as on another computer.
func TestPictureOfOtherServers(t *testing.T) {
	check := func(t *testing.T, name string) {
		t.Helper()
		t.Setenv("DISPLAY", "") // no library that reads it
		paint(t, name, "#3060c0")
		s, err := openAt(t, name).Shoot(within(t), hands.Ask{Area: wholeScreen, Format: hands.PNG})
		if err != nil {
			t.Fatal(err)
		}
		if img := decode(t, s); s.View.Size != image.Pt(400, 300) || !near(img, 0, 0, color.RGBA{0x30, 0x60, 0xc0, 255}) || !near(img, 399, 299, color.RGBA{0x30, 0x60, 0xc0, 255}) {
			t.Errorf("%v: %v", s.View, img.At(0, 0))
		}
	}
	t.Run("65536 colours", func(t *testing.T) { check(t, startX(t, "Xvfb", "-screen", "0", "400x300x16")) })
	t.Run("of another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root can start a server of somebody else")
		}
		check(t, startX(t, "setpriv", "--reuid", "65534", "--clear-groups", "Xvfb", "-screen", "0", "400x300x24"))
	})
}

// TestFallbackLibrary: where there is no shared memory, it is kbinani's
// screenshot that takes the picture, of any part of two screens.
func TestFallbackLibrary(t *testing.T) {
	name := xvfb(t, "640x400", "-extension", "MIT-SHM")
	paint(t, name, "#3060c0")
	p, err := newX11Pictures(name)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	// The first screen does not begin at (0, 0), which the library counts from.
	run(t, name, "xrandr", "--setmonitor", "right", "320/80x400/100+320+0", "screen")
	run(t, name, "xrandr", "--setmonitor", "left", "320/80x400/100+0+0", "none")
	start(t, name, "xterm", "-geometry", "10x3+330+20", "-bg", "#c03030", "-b", "0")
	area := image.Rect(300, 0, 400, 100)
	eventually(t, "the window at its place", func() bool {
		if _, err := p.layout(within(t)); err != nil {
			t.Fatal(err)
		}
		r, err := p.fromLibrary(area)
		if err != nil {
			t.Fatal(err)
		}
		if r.rect != area || !r.rgb {
			t.Fatalf("%v", r.rect)
		}
		img := r.rgba()
		return near(img, 5, 5, color.RGBA{0x30, 0x60, 0xc0, 255}) && near(img, 80, 35, color.RGBA{0xc0, 0x30, 0x30, 255})
	})
}

// TestTablesStay: a server that has MIT-SHM, but can't reach our memory, has its
// pictures taken without the library, which would write xgb's tables.
func TestTablesStay(t *testing.T) {
	name := xvfb(t, "400x300")
	t.Setenv("DISPLAY", name)
	p, err := newX11Pictures(name)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if _, err := p.layout(within(t)); err != nil {
		t.Fatal(err)
	}
	p.shared = false
	if _, err := p.grab(within(t), image.Rect(0, 0, 400, 300), false); err != nil {
		t.Fatal(err)
	}
	for n := 128; n < 256; n++ {
		if e, ok := xgb.NewErrorFuncs[n](make([]byte, 32)).(rawError); !ok {
			t.Fatalf("error %d is %T now", n, e)
		}
	}
}

func TestThreeScreens(t *testing.T) {
	name := xvfb(t, "1200x500")
	run(t, name, "xrandr", "--setmonitor", "left", "400/100x300/100+0+0", "screen")
	run(t, name, "xrandr", "--setmonitor", "*middle", "400/100x500/100+400+0", "none")
	run(t, name, "xrandr", "--setmonitor", "right", "400/100x400/100+800+100", "none")
	resources(t, name, "Xft.dpi: 144\n")
	h := openAt(t, name)
	l, err := h.Layout(within(t))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]image.Rectangle{"left": image.Rect(0, 0, 400, 300), "middle": image.Rect(400, 0, 800, 500), "right": image.Rect(800, 100, 1200, 500)}
	if len(l.Screens) != 3 {
		t.Fatalf("%+v", l)
	}
	for i, s := range l.Screens {
		if s.Index != i || s.Device != want[s.Name] || s.Scale != 1.5 || s.Primary != (s.Name == "middle") || s.Points.Dx() != 267 {
			t.Errorf("%+v", s)
		}
	}
	// What is on no screen is black, although the root window has it.
	paint(t, name, "#3060c0")
	blue := color.RGBA{0x30, 0x60, 0xc0, 255}
	s, err := h.Shoot(within(t), hands.Ask{Area: image.Rect(300, 200, 5000, 5000), Format: hands.PNG})
	if err != nil {
		t.Fatal(err)
	}
	img := decode(t, s)
	if s.View.Area != image.Rect(300, 200, 1200, 500) || !near(img, 10, 10, blue) || !near(img, 10, 150, color.RGBA{}) || !near(img, 110, 290, blue) {
		t.Errorf("%v: %v %v %v", s.View.Area, img.At(10, 10), img.At(10, 150), img.At(110, 290))
	}
	for _, area := range []image.Rectangle{{}, image.Rect(-50, -50, 0, 0), image.Rect(1200, 0, 1300, 100)} {
		if _, err := h.Shoot(within(t), hands.Ask{Area: area}); wire.CodeOf(err) != wire.CodeBounds {
			t.Errorf("%v: %v", area, err)
		}
	}
	if s, err = h.Shoot(within(t), hands.Ask{Area: image.Rect(399, 0, 400, 1)}); err != nil || s.View.Size != image.Pt(1, 1) {
		t.Errorf("one pixel: %+v, %v", s.View, err)
	}
	// The screens change: it is told, once they have.
	events := make(chan hands.Event, 16)
	h.Listen(func(e hands.Event) { events <- e })
	run(t, name, "xrandr", "--delmonitor", "right")
	select {
	case e := <-events:
		if !e.Screens || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
	case <-time.After(patience):
		t.Fatal("nobody told of the change")
	}
	if now, err := h.Layout(within(t)); err != nil || len(now.Screens) != 2 || now.Fingerprint() == l.Fingerprint() {
		t.Errorf("%+v, %v", now, err)
	}
}

func resources(t *testing.T, name, text string) {
	t.Helper()
	cmd := exec.Command("xrdb", "-display", name, "-merge", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// noise fills the screen with what no encoder makes small.
func noise(t *testing.T, name, size string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "noise.png")
	run(t, name, "convert", "-size", size, "xc:gray", "+noise", "Random", "-seed", "1", from)
	start(t, name, "display", "-window", "root", from)
}

func TestSizes(t *testing.T) {
	name := xvfb(t, "1920x1080")
	h := openAt(t, name)
	noise(t, name, "1920x1080")
	eventually(t, "the noise", func() bool {
		s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen})
		return err == nil && len(s.Data) > 500_000
	})
	s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Limit: space.Usual})
	if err != nil || s.View.Size != image.Pt(1456, 819) {
		t.Fatalf("%v, %v", s.View.Size, err)
	}
	decode(t, s)
	if s, err = h.Shoot(within(t), hands.Ask{Area: wholeScreen, Limit: space.Limit{Edge: 640}, Format: hands.PNG}); err != nil || s.View.Size != image.Pt(640, 360) {
		t.Fatalf("%v, %v", s.View.Size, err)
	}
	decode(t, s)
	for _, format := range []string{hands.JPEG, hands.PNG} {
		ask := hands.Ask{Area: image.Rect(0, 0, 640, 360), Format: format, MaxBytes: 50_000}
		if s, err = h.Shoot(within(t), ask); err != nil || len(s.Data) > ask.MaxBytes {
			t.Fatalf("%s: %d bytes, %v", format, len(s.Data), err)
		}
		decode(t, s)
		ask.Exact = true
		if _, err = h.Shoot(within(t), ask); wire.CodeOf(err) != wire.CodeTooLarge {
			t.Errorf("%s: %v", format, err)
		}
		ask.Exact, ask.MaxBytes = false, 10
		if _, err = h.Shoot(within(t), ask); wire.CodeOf(err) != wire.CodeTooLarge {
			t.Errorf("%s in ten bytes: %v", format, err)
		}
	}
	low, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Quality: 10})
	if err != nil {
		t.Fatal(err)
	}
	high, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Quality: 95})
	if err != nil || len(low.Data) >= len(high.Data) {
		t.Errorf("quality 10 has %d bytes, 95 has %d, %v", len(low.Data), len(high.Data), err)
	}
	if _, err = h.Shoot(within(t), hands.Ask{Area: wholeScreen, Format: "gif"}); wire.CodeOf(err) != wire.CodeNotSupported {
		t.Errorf("a gif: %v", err)
	}
}

func TestPointerAndMarks(t *testing.T) {
	name := xvfb(t, "400x300")
	paint(t, name, "#3060c0")
	run(t, name, "xsetroot", "-cursor_name", "crosshair")
	h := openAt(t, name)
	changed := func(a, b image.Image) (r image.Rectangle) {
		for y := range 300 {
			for x := range 400 {
				if a.At(x, y) != b.At(x, y) {
					r = r.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
		return r
	}
	shoot := func(a hands.Ask) image.Image {
		t.Helper()
		a.Area, a.Format = wholeScreen, hands.PNG
		s, err := h.Shoot(within(t), a)
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, s)
	}
	plain := shoot(hands.Ask{})
	for _, p := range []image.Point{{150, 120}, {0, 0}, {399, 299}} {
		run(t, name, "xdotool", "mousemove", strconv.Itoa(p.X), strconv.Itoa(p.Y))
		if r := changed(plain, shoot(hands.Ask{})); !r.Empty() {
			t.Errorf("the pointer is in a picture without it: %v", r)
		}
		r := changed(plain, shoot(hands.Ask{Cursor: true}))
		if r.Empty() || !p.In(r.Inset(-1)) {
			t.Errorf("the pointer at %v is drawn in %v", p, r)
		}
		// A cross is even around its middle.
		if mid := r.Min.Add(r.Max).Div(2); p == (image.Pt(150, 120)) && (max(mid.X-p.X, p.X-mid.X) > 1 || max(mid.Y-p.Y, p.Y-mid.Y) > 1) {
			t.Errorf("the middle of the pointer at %v is %v", p, mid)
		}
	}
	r := changed(plain, shoot(hands.Ask{Mark: []image.Point{{200, 100}, {-500, 3}}}))
	if r != image.Rect(181, 81, 220, 120) {
		t.Errorf("the mark is in %v", r)
	}
}

func TestBlank(t *testing.T) {
	name := xvfb(t, "400x300")
	paint(t, name, "black")
	h := openAt(t, name)
	for _, area := range []image.Rectangle{wholeScreen, image.Rect(10, 10, 50, 50)} {
		if _, err := h.Shoot(within(t), hands.Ask{Area: area}); wire.CodeOf(err) != wire.CodeBlank || !contains(err.Error(), "black") {
			t.Errorf("a black screen: %v", err)
		}
	}
	// The frame is ours, and is no reason to call it a picture.
	if err := h.Control(within(t), hands.Control{On: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen}); wire.CodeOf(err) != wire.CodeBlank {
		t.Errorf("a black screen with our frame: %v", err)
	}
	film := start(t, name, "xterm", "-geometry", "100x40+0+0", "-bw", "0", "-b", "0", "-bg", "black", "-fg", "black", "-cr", "black")
	eventually(t, "the error names a black window over the whole screen", func() bool {
		_, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen})
		return wire.CodeOf(err) == wire.CodeBlank && contains(err.Error(), "a window covers all of it")
	})
	// So it is below our own strip, and not below what locks the screen.
	strip := start(t, name, "xterm", "-geometry", "10x1+100+0", "-bg", "#30c030")
	if err := h.Control(within(t), hands.Control{On: true, Own: []int{strip.Process.Pid}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the strip", func() bool {
		s, err := h.Windows(within(t))
		return err == nil && len(s) == 2 && s[0].Ours
	})
	if _, err := h.Shoot(within(t), hands.Ask{Area: image.Rect(10, 10, 50, 50)}); wire.CodeOf(err) != wire.CodeBlank || !contains(err.Error(), "a window covers all of it") {
		t.Errorf("below our own strip: %v", err)
	}
	t.Setenv("DISPLAY_TEST_FLING", "lock black")
	lock := start(t, name, os.Args[0])
	eventually(t, "the error says that the screen may be locked", func() bool {
		_, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen})
		return wire.CodeOf(err) == wire.CodeBlank && contains(err.Error(), "locked")
	})
	for _, p := range []*exec.Cmd{lock, strip} {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	_ = film.Process.Kill()
	_ = film.Wait()
	eventually(t, "the window gone", func() bool {
		_, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen})
		return wire.CodeOf(err) == wire.CodeBlank && contains(err.Error(), "locked")
	})
	run(t, name, "xset", "s", "activate")
	if _, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen}); wire.CodeOf(err) != wire.CodeBlank || !contains(err.Error(), "screen saver") {
		t.Errorf("with the screen saver: %v", err)
	}
	run(t, name, "xset", "s", "reset")
	// A window, black in one corner, is a picture, of that corner too.
	start(t, name, "xterm", "-geometry", "20x5+200+100", "-bg", "#c03030", "-class", "Secret")
	eventually(t, "a picture", func() bool {
		_, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen})
		return err == nil
	})
	if _, err := h.Shoot(within(t), hands.Ask{Area: image.Rect(10, 10, 50, 50)}); err != nil {
		t.Errorf("a black corner: %v", err)
	}
	// Black since it is hidden is no error.
	if s, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Hide: hands.Curtain{Words: []string{"=secret"}}}); err != nil || len(s.Hidden) != 1 {
		t.Errorf("what the curtain makes black: %v, %q", err, s.Hidden)
	}
	if _, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen, Dark: []int{0}}); err != nil {
		t.Errorf("what is not shared: %v", err)
	}
}

func TestNoDisplay(t *testing.T) {
	for _, env := range []string{"", ":4711"} {
		h := openAt(t, env)
		a, err := h.Abilities(within(t))
		if err != nil || a.System != "none" || a.Pictures || a.Input || a.Frame || len(a.Why) != 6 {
			t.Errorf("%q: %+v, %v", env, a, err)
		}
		_, err = h.Shoot(within(t), hands.Ask{Area: wholeScreen})
		if wire.CodeOf(err) != wire.CodeNotSupported {
			t.Errorf("%q: %v", env, err)
		}
		if err := h.Release(within(t)); err != nil {
			t.Error(err)
		}
	}
}

// TestServerEnds: the display goes away, and so does nothing else.
func TestServerEnds(t *testing.T) {
	r := exec.Command("Xvfb", "-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp")
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Fscan(out, &n); err != nil {
		t.Fatal(err)
	}
	h := openAt(t, fmt.Sprintf(":%d", n))
	if err := h.Control(within(t), hands.Control{On: true}); err != nil {
		t.Fatal(err)
	}
	r.Process.Kill()
	r.Wait()
	if _, err := h.Shoot(within(t), hands.Ask{Area: wholeScreen}); err == nil {
		t.Error("a picture of a screen that is gone")
	}
	if _, err := h.Windows(within(t)); err == nil {
		t.Error("windows on a screen that is gone")
	}
	if _, err := h.ReadClipboard(within(t), 10); err == nil {
		t.Error("a clipboard on a screen that is gone")
	}
	if err := h.Control(within(t), hands.Control{On: true}); err == nil {
		t.Error("a frame on a screen that is gone")
	}
}

func TestScaling(t *testing.T) {
	for _, c := range []struct{ from, to int }{{1920, 1456}, {7, 7}, {7, 3}, {100, 1}, {1080, 819}} {
		for i, s := range shares(c.from, c.to) {
			sum := uint64(0)
			for _, p := range s.of {
				sum += p
			}
			if sum != whole || s.first+len(s.of) > c.from {
				t.Errorf("%v: pixel %d gets %d of %d", c, i, sum, whole)
			}
		}
	}
	// Four pixels become their mean; one colour stays what it is.
	r := &raster{pix: []byte{0, 10, 20, 0, 255, 30, 20, 0, 255, 10, 20, 0, 0, 30, 20, 0}, stride: 8, rect: image.Rect(5, 5, 7, 7)}
	if out := r.scaled(image.Pt(1, 1)); !bytes.Equal(out.pix[:3], []byte{128, 20, 20}) {
		t.Errorf("the mean is %v", out.pix)
	}
	r = &raster{pix: bytes.Repeat([]byte{1, 127, 255, 0}, 64*48), stride: 256, rect: image.Rect(0, 0, 64, 48)}
	for i, v := range r.scaled(image.Pt(37, 29)).pix {
		if i%4 < 3 && v != []byte{1, 127, 255}[i%4] {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
}
