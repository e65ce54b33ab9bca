package display

import (
	"image"
	"math"

	"localpc/capabilities/computer/display/wl"
	"localpc/capabilities/computer/space"
)

// plane lays the screens of a Wayland desktop into one plane of device pixels.
// The compositor places screens in points, and each has a scale of its own, so
// there is no such plane by itself: it is the points, times the largest scale.
// A screen of that scale keeps its pixels as they are; the pictures of others
// are made larger.
func plane(outs []wl.Output) space.Layout {
	most := 0.0
	for _, o := range outs {
		most = max(most, scaleOf(o))
	}
	var l space.Layout
	for i, o := range outs {
		s := space.Screen{Index: i, Name: o.Name, Points: o.Points, Scale: most, Turned: o.Turned, Primary: i == 0}
		s.Device.Min = scaled(o.Points.Min, most)
		if scaleOf(o) == most {
			s.Device.Max = s.Device.Min.Add(o.Pixels)
		} else {
			s.Device.Max = s.Device.Min.Add(scaled(o.Points.Size(), most))
		}
		l.Screens = append(l.Screens, s)
	}
	return l
}

func scaled(p image.Point, s float64) image.Point {
	return image.Pt(int(math.Round(float64(p.X)*s)), int(math.Round(float64(p.Y)*s)))
}

// scaleOf is how many pixels a point of the screen has. Compositors tell whole
// points only, so the exact scale is the nearest of the 120ths in which they
// count it, where that explains the points.
func scaleOf(o wl.Output) float64 {
	if o.Points.Dx() < 1 || o.Points.Dy() < 1 {
		return 1
	}
	x, y := float64(o.Pixels.X)/float64(o.Points.Dx()), float64(o.Pixels.Y)/float64(o.Points.Dy())
	near := math.Round((x+y)/2*120) / 120
	if near > 0 && math.Abs(float64(o.Pixels.X)/near-float64(o.Points.Dx())) <= 1 && math.Abs(float64(o.Pixels.Y)/near-float64(o.Points.Dy())) <= 1 {
		return near
	}
	return x
}
