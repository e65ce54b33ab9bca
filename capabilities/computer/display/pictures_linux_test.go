package display

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"localpc/capabilities/computer/hands"
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
	name := xvfb(t, "800x600")
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
}
