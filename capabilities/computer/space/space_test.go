package space_test

import (
	"image"
	"math/rand/v2"
	"testing"

	"localpc/capabilities/computer/space"
)

// The sizes that the published scaling algorithm gives (Claude's computer use).
func TestPublishedSizes(t *testing.T) {
	for size, want := range map[image.Point]image.Point{
		{X: 1920, Y: 1080}: {X: 1456, Y: 819}, {X: 2560, Y: 1440}: {X: 1456, Y: 819}, {X: 3840, Y: 2160}: {X: 1456, Y: 819},
		{X: 2560, Y: 1600}: {X: 1389, Y: 868}, {X: 3456, Y: 2234}: {X: 1372, Y: 887},
		{X: 3440, Y: 1440}: {X: 1568, Y: 656}, {X: 5120, Y: 1440}: {X: 1568, Y: 441},
		{X: 1024, Y: 768}: {X: 1024, Y: 768}, {X: 1280, Y: 720}: {X: 1280, Y: 720}, // small enough as they are
	} {
		if got := space.Usual.Fit(size); got != want {
			t.Errorf("%v becomes %v, want %v", size, got, want)
		}
		turned, want := image.Pt(size.Y, size.X), image.Pt(want.Y, want.X)
		if got := space.Usual.Fit(turned); got != want {
			t.Errorf("%v becomes %v, want %v", turned, got, want)
		}
	}
	if got := space.Large.Fit(image.Pt(3840, 2160)); got != image.Pt(2576, 1449) {
		t.Errorf("the larger limit gives %v", got)
	}
}

func random() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

func TestFitHolds(t *testing.T) {
	r := random()
	for range 20_000 {
		size := image.Pt(1+r.IntN(9000), 1+r.IntN(9000))
		l := space.Limit{}
		if r.IntN(4) > 0 {
			l.Edge = 1 + r.IntN(4000)
		}
		if r.IntN(2) > 0 {
			l.Tiles = 1 + r.IntN(4000)
		}
		got := l.Fit(size)
		fits := func(p image.Point) bool {
			tiles := ((p.X + space.TileSide - 1) / space.TileSide) * ((p.Y + space.TileSide - 1) / space.TileSide)
			return (l.Edge == 0 || max(p.X, p.Y) <= l.Edge) && (l.Tiles == 0 || tiles <= l.Tiles)
		}
		if got.X < 1 || got.Y < 1 || got.X > size.X || got.Y > size.Y || !fits(got) {
			t.Fatalf("%+v of %v gives %v", l, size, got)
		}
		if fits(size) && got != size {
			t.Fatalf("%+v makes %v smaller, to %v, without need", l, size, got)
		}
	}
}

// layouts that people have: mixed scales, negative origins, turned screens,
// fractional scales of Wayland.
func layouts() map[string]space.Layout {
	screen := func(i, x, y, w, h int, scale float64, turned int) space.Screen {
		return space.Screen{Index: i, Name: string(rune('A' + i)), Device: image.Rect(x, y, x+w, y+h), Scale: scale, Turned: turned,
			Points: image.Rect(int(float64(x)/scale), int(float64(y)/scale), int(float64(x+w)/scale), int(float64(y+h)/scale))}
	}
	return map[string]space.Layout{
		"one":             {Screens: []space.Screen{screen(0, 0, 0, 1920, 1080, 1, 0)}},
		"one of 125 %":    {Screens: []space.Screen{screen(0, 0, 0, 2560, 1440, 1.25, 0)}},
		"one of 150 %":    {Screens: []space.Screen{screen(0, 0, 0, 2880, 1620, 1.5, 0)}},
		"one of 200 %":    {Screens: []space.Screen{screen(0, 0, 0, 3840, 2160, 2, 0)}},
		"one of 225 %":    {Screens: []space.Screen{screen(0, 0, 0, 2736, 1824, 2.25, 0)}},
		"one at negative": {Screens: []space.Screen{screen(0, 0, 0, 1920, 1080, 1, 0), screen(1, -1280, -200, 1280, 1024, 1, 0)}},
		"mixed and turned": {Screens: []space.Screen{screen(0, 0, 0, 3840, 2160, 2, 0), screen(1, 3840, -480, 1080, 1920, 1.25, 90),
			screen(2, -2560, 300, 2560, 1440, 1.5, 180)}},
		"fractional": {Screens: []space.Screen{screen(0, 0, 0, 2559, 1441, 1.3333, 0), screen(1, 2559, 7, 1367, 769, 1.0667, 270)}},
	}
}

// What is aimed at a pixel of a picture comes to the middle of what that pixel
// shows, within one device pixel, and is shown there again.
func TestRoundTrips(t *testing.T) {
	r := random()
	for name, l := range layouts() {
		areas := []image.Rectangle{l.Bounds()}
		for _, s := range l.Screens {
			areas = append(areas, s.Device, s.Device.Inset(37), image.Rect(s.Device.Min.X+3, s.Device.Min.Y+5, s.Device.Min.X+4, s.Device.Min.Y+6))
		}
		for _, area := range areas {
			for _, limit := range []space.Limit{{}, space.Usual, space.Large, {Edge: 480}, {Edge: 1}, {Edge: 1024, Tiles: 700}} {
				v := space.View{ID: "p", Layout: l.Fingerprint(), Area: area, Size: limit.Fit(area.Size())}
				for range 300 {
					checkRoundTrip(t, name, v, image.Pt(r.IntN(v.Size.X), r.IntN(v.Size.Y)))
					d := image.Pt(area.Min.X+r.IntN(area.Dx()), area.Min.Y+r.IntN(area.Dy()))
					p, ok := v.Picture(d)
					if !ok {
						t.Fatalf("%s: %+v does not show %v", name, v, d)
					}
					back, err := v.Device(p)
					// A picture's pixel has as many device pixels as it is smaller.
					most := image.Pt(area.Dx()/v.Size.X/2+1, area.Dy()/v.Size.Y/2+1)
					if diff := back.Sub(d); err != nil || abs(diff.X) > most.X || abs(diff.Y) > most.Y {
						t.Fatalf("%s: %v is shown at %v, which is %v (%v): more than %v off", name, d, p, back, err, most)
					}
				}
				for _, corner := range []image.Point{{}, {X: v.Size.X - 1}, {Y: v.Size.Y - 1}, v.Size.Sub(image.Pt(1, 1))} {
					checkRoundTrip(t, name, v, corner)
				}
			}
		}
	}
}

func abs(n int) int { return max(n, -n) }

// checkRoundTrip aims at one pixel of a picture.
func checkRoundTrip(t *testing.T, name string, v space.View, p image.Point) {
	t.Helper()
	d, err := v.Device(p)
	if err != nil || !d.In(v.Area) {
		t.Fatalf("%s: %v of %+v is %v, %v", name, p, v, d, err)
	}
	// The exact middle, as a fraction: within one device pixel of it.
	mid := func(n, device, size int) float64 { return (float64(n) + 0.5) * float64(device) / float64(size) }
	x := float64(d.X-v.Area.Min.X) + 0.5 - mid(p.X, v.Area.Dx(), v.Size.X)
	y := float64(d.Y-v.Area.Min.Y) + 0.5 - mid(p.Y, v.Area.Dy(), v.Size.Y)
	if x > 1 || x < -1 || y > 1 || y < -1 {
		t.Fatalf("%s: %v of %+v comes to %v, %.2f and %.2f off the middle", name, p, v, d, x, y)
	}
	if back, ok := v.Picture(d); !ok || back != p {
		t.Fatalf("%s: %v of %+v is %v, which is shown at %v, %v", name, p, v, d, back, ok)
	}
	if area := v.DeviceArea(image.Rectangle{Min: p, Max: p.Add(image.Pt(1, 1))}); !d.In(area) || !area.In(v.Area) {
		t.Fatalf("%s: %v is not in the area %v of its own pixel %v", name, d, area, p)
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(-1280, -200, 1280, 1024, 960, 3, 5)
	f.Add(0, 0, 3840, 2160, 1456, 1455, 818)
	f.Add(7, -9, 1367, 769, 1, 0, 0)
	f.Fuzz(func(t *testing.T, x, y, w, h, edge, px, py int) {
		bound := func(n, most int) int { return abs(n%most) + 1 }
		w, h = bound(w, 20_000), bound(h, 20_000)
		at := image.Pt(x%100_000, y%100_000)
		v := space.View{Area: image.Rectangle{Min: at, Max: at.Add(image.Pt(w, h))}, Size: space.Limit{Edge: bound(edge, 8000)}.Fit(image.Pt(w, h))}
		checkRoundTrip(t, "fuzz", v, image.Pt(abs(px%v.Size.X), abs(py%v.Size.Y)))
	})
}

func TestOutsideOfAPicture(t *testing.T) {
	v := space.View{Area: image.Rect(-100, 0, 100, 100), Size: image.Pt(100, 50)}
	for _, p := range []image.Point{{X: -1}, {Y: -1}, {X: 100}, {Y: 50}, {X: 1 << 40}} {
		if d, err := v.Device(p); err == nil {
			t.Errorf("%v is %v", p, d)
		}
	}
	for _, d := range []image.Point{{X: -101}, {X: 100}, {Y: -1}, {Y: 100}} {
		if p, ok := v.Picture(d); ok {
			t.Errorf("%v is shown at %v", d, p)
		}
	}
	if area := v.DeviceArea(image.Rect(60, 10, 500, 500)); area != image.Rect(20, 20, 100, 100) {
		t.Errorf("a region is cut to %v", area)
	}
	if area := v.DeviceArea(image.Rect(200, 0, 300, 10)); !area.Empty() {
		t.Errorf("a region beside the picture is %v", area)
	}
}

func TestFingerprints(t *testing.T) {
	seen := map[string]string{}
	for name, l := range layouts() {
		if other := seen[l.Fingerprint()]; other != "" {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[l.Fingerprint()] = name
	}
	l := layouts()["mixed and turned"]
	for name, change := range map[string]func(*space.Screen){
		"moved": func(s *space.Screen) { s.Device = s.Device.Add(image.Pt(1, 0)) }, "scaled": func(s *space.Screen) { s.Scale = 2 },
		"turned": func(s *space.Screen) { s.Turned = 0 }, "renamed": func(s *space.Screen) { s.Name = "other" }, "points": func(s *space.Screen) { s.Points.Max.X++ },
	} {
		other := space.Layout{Screens: append([]space.Screen(nil), l.Screens...)}
		change(&other.Screens[1])
		if other.Fingerprint() == l.Fingerprint() {
			t.Errorf("%s, and the fingerprint is the same", name)
		}
	}
	if s, ok := l.At(image.Pt(-1, 300)); !ok || s.Index != 2 {
		t.Errorf("at negative x: %+v, %v", s, ok)
	}
	if _, ok := l.At(image.Pt(-1, 299)); ok {
		t.Error("a gap belongs to a screen")
	}
}
