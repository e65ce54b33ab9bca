package assets

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"
)

var states = []string{"offline", "online", "working", "needs-you", "paused", "sign-in"}

func decode(t *testing.T, b []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// small is how a panel draws the icon at 16 pixels, each the mean of nine.
func small(img image.Image) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, 16, 16))
	for y := range 16 {
		for x := range 16 {
			var r, g, b, a uint32
			for i := range 9 {
				pr, pg, pb, pa := img.At(x*3+i%3, y*3+i/3).RGBA()
				r, g, b, a = r+pr, g+pg, b+pb, a+pa
			}
			out.Set(x, y, color.RGBA64{uint16(r / 9), uint16(g / 9), uint16(b / 9), uint16(a / 9)})
		}
	}
	return out
}

// luminance as WCAG 2 defines it.
func luminance(c color.NRGBA) float64 {
	f := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*f(c.R) + 0.7152*f(c.G) + 0.0722*f(c.B)
}

func contrast(a, b color.NRGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestTrayIconsReadOnEveryPanel(t *testing.T) {
	panels := map[string]color.NRGBA{
		"white": {255, 255, 255, 255}, "light": {246, 245, 244, 255},
		"dark": {43, 43, 43, 255}, "black": {0, 0, 0, 255},
	}
	for _, state := range states {
		img := decode(t, Tray(state))
		if got := img.Bounds().Size(); got != (image.Point{48, 48}) {
			t.Fatalf("%s is %v", state, got)
		}
		s, full := small(img), 0
		for i := 0; i < len(s.Pix); i += 4 {
			c := color.NRGBA{s.Pix[i], s.Pix[i+1], s.Pix[i+2], 255}
			if s.Pix[i+3] < 250 {
				continue
			}
			full++
			for name, panel := range panels {
				if k := contrast(c, panel); k < 3 {
					t.Fatalf("%s on a %s panel has a contrast of %.2f", state, name, k)
				}
			}
		}
		if full < 40 {
			t.Errorf("%s has only %d solid pixels of 256 at 16 pixels", state, full)
		}
	}
}

// A person who sees no colour must be able to tell the states apart.
func TestTrayIconsDifferInShape(t *testing.T) {
	for i, a := range states {
		for _, b := range states[i+1:] {
			x, y, differ := small(decode(t, Tray(a))), small(decode(t, Tray(b))), 0
			for p := 3; p < len(x.Pix); p += 4 {
				if d := int(x.Pix[p]) - int(y.Pix[p]); d > 100 || d < -100 {
					differ++
				}
			}
			if differ < 6 {
				t.Errorf("%s and %s differ in %d pixels of 256 only", a, b, differ)
			}
		}
	}
}

func TestUnknownStateLooksOffline(t *testing.T) {
	if !bytes.Equal(Tray("no such state"), Tray("offline")) {
		t.Error("an unknown state has another icon")
	}
}

func TestAppIcon(t *testing.T) {
	if got := decode(t, App()).Bounds().Size(); got != (image.Point{512, 512}) {
		t.Errorf("the program's icon is %v", got)
	}
}
