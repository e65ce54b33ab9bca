// Package space is the one space that a picture of the screen, and what is
// aimed at it, share; steps 3 and 5 use it, in localpc and in localpc-desktop.
// Device pixels are the pixels of the screens, in one plane that all of them
// lie in (X11's root window, the virtual screen of Windows): a screen may begin
// at negative coordinates. Points are what the system scales its windows by.
// Picture pixels are those of one picture that was sent, which may show a part
// of the plane, smaller than it is. Everything here is pure arithmetic: nothing
// is looked at, nothing is kept.
package space

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
)

// Screen is one monitor.
type Screen struct {
	Index int    `json:"index"` // place in Layout.Screens
	Name  string `json:"name"`  // as the system calls it: "DP-1"
	// Device is where it lies, in device pixels, half open.
	Device image.Rectangle `json:"device"`
	// Points is where it lies in points; equal to Device where the system knows
	// no points of its own.
	Points  image.Rectangle `json:"points"`
	Scale   float64         `json:"scale"`  // device pixels to a point: 1, 1.25, 2
	Turned  int             `json:"turned"` // 0, 90, 180 or 270 degrees clockwise; Device is as turned already
	Primary bool            `json:"primary,omitempty"`
}

// Layout is all screens at one moment, in the system's order.
type Layout struct {
	Screens []Screen `json:"screens"`
}

// Fingerprint is the same for layouts in which every pixel is at the same
// place, and only for those: 16 hex digits.
func (l Layout) Fingerprint() string {
	h := sha256.New()
	for _, s := range l.Screens {
		fmt.Fprintf(h, "%d %q %v %v %g %d\n", s.Index, s.Name, s.Device, s.Points, s.Scale, s.Turned)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Bounds is the smallest rectangle with all screens, in device pixels.
func (l Layout) Bounds() image.Rectangle {
	var all image.Rectangle
	for _, s := range l.Screens {
		all = all.Union(s.Device)
	}
	return all
}

// At is the screen that has the device pixel p.
func (l Layout) At(p image.Point) (Screen, bool) {
	for _, s := range l.Screens {
		if p.In(s.Device) {
			return s, true
		}
	}
	return Screen{}, false
}

// View is how one picture lies on the screens: its pixel (0,0) begins at
// Area.Min, and Size pixels of it cover Area.
type View struct {
	ID     string          `json:"id"`     // of the picture
	Layout string          `json:"layout"` // Layout.Fingerprint at that moment
	Area   image.Rectangle `json:"area"`   // device pixels
	Size   image.Point     `json:"size"`   // of the picture
}

// Device is the device pixel in the middle of the picture's pixel p. The error
// says that p is not in the picture.
func (v View) Device(p image.Point) (image.Point, error) {
	if !p.In(image.Rectangle{Max: v.Size}) {
		return image.Point{}, fmt.Errorf("(%d, %d) is not in the picture, which is %d × %d", p.X, p.Y, v.Size.X, v.Size.Y)
	}
	return v.Area.Min.Add(image.Pt(middle(p.X, v.Area.Dx(), v.Size.X), middle(p.Y, v.Area.Dy(), v.Size.Y))), nil
}

// middle is the whole device pixel at the middle of the n-th of size picture
// pixels that cover device ones.
func middle(n, device, size int) int { return (2*n + 1) * device / (2 * size) }

// Picture is the picture's pixel that shows the device pixel d; ok is false
// where it shows none.
func (v View) Picture(d image.Point) (p image.Point, ok bool) {
	if !d.In(v.Area) || v.Size.X < 1 || v.Size.Y < 1 {
		return image.Point{}, false
	}
	d = d.Sub(v.Area.Min)
	return image.Pt((2*d.X+1)*v.Size.X/(2*v.Area.Dx()), (2*d.Y+1)*v.Size.Y/(2*v.Area.Dy())), true
}

// DeviceArea is the device pixels that the picture's pixels r show, cut to the
// picture; every device pixel that one of them touches is in it.
func (v View) DeviceArea(r image.Rectangle) image.Rectangle {
	r = r.Intersect(image.Rectangle{Max: v.Size})
	if r.Empty() {
		return image.Rectangle{}
	}
	up := func(n, device, size int) int { return (n*device + size - 1) / size }
	return image.Rect(
		v.Area.Min.X+r.Min.X*v.Area.Dx()/v.Size.X, v.Area.Min.Y+r.Min.Y*v.Area.Dy()/v.Size.Y,
		v.Area.Min.X+up(r.Max.X, v.Area.Dx(), v.Size.X), v.Area.Min.Y+up(r.Max.Y, v.Area.Dy(), v.Size.Y))
}

// Limit bounds a picture; zero fields don't.
type Limit struct {
	Edge int `json:"edge,omitempty"` // of the longer side, pixels
	// Tiles of TileSide × TileSide pixels that are needed to cover it.
	Tiles int `json:"tiles,omitempty"`
}

// TileSide is the side of what Limit.Tiles counts (the published scaling of
// Claude's computer use counts pictures so).
const TileSide = 28

// The limits of Claude's models: the usual one, and that of Opus 4.7 and later.
var (
	Usual = Limit{Edge: 1568, Tiles: 1568}
	Large = Limit{Edge: 2576}
)

// Fit is the largest size with the proportions of size that is within l, and
// never larger than size. Each side is 1 at least.
func (l Limit) Fit(size image.Point) image.Point {
	if size.X < 1 || size.Y < 1 {
		return image.Pt(max(size.X, 0), max(size.Y, 0))
	}
	long, short := max(size.X, size.Y), min(size.X, size.Y)
	other := func(n int) int { return max(1, (2*n*short+long)/(2*long)) } // rounded
	good := func(n int) bool {
		return (l.Edge == 0 || n <= l.Edge) && (l.Tiles == 0 || tiles(n)*tiles(other(n)) <= l.Tiles)
	}
	lo, hi := 1, long
	for lo < hi {
		if mid := (lo + hi + 1) / 2; good(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo == long {
		return size
	}
	if size.X >= size.Y {
		return image.Pt(lo, other(lo))
	}
	return image.Pt(other(lo), lo)
}

func tiles(n int) int { return (n + TileSide - 1) / TileSide }
