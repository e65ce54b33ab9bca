package display

import (
	"image"
	"image/color"

	"localpc/capabilities/computer/space"
)

// whole is r as it covers area: black where r has nothing.
func (r *raster) whole(area image.Rectangle) *raster {
	if r.rect == area {
		return r
	}
	out := &raster{pix: make([]byte, 4*area.Dx()*area.Dy()), stride: 4 * area.Dx(), rect: area, rgb: r.rgb, pointer: r.pointer}
	both := area.Intersect(r.rect)
	for y := both.Min.Y; y < both.Max.Y; y++ {
		copy(out.line(y, both.Min.X, both.Max.X), r.line(y, both.Min.X, both.Max.X))
	}
	r.done()
	return out
}

// apart is r with memory of its own, which the next grab does not overwrite.
func (r *raster) apart() *raster {
	if r.rect.Empty() {
		return r
	}
	out := &raster{pix: make([]byte, 4*r.rect.Dx()*r.rect.Dy()), stride: 4 * r.rect.Dx(), rect: r.rect, rgb: r.rgb, pointer: r.pointer}
	for y := r.rect.Min.Y; y < r.rect.Max.Y; y++ {
		copy(out.line(y, r.rect.Min.X, r.rect.Max.X), r.line(y, r.rect.Min.X, r.rect.Max.X))
	}
	r.done()
	return out
}

// line is the bytes of the device pixels x0 to x1 of the line y.
func (r *raster) line(y, x0, x1 int) []byte {
	start := (y-r.rect.Min.Y)*r.stride + 4*(x0-r.rect.Min.X)
	return r.pix[start : start+4*(x1-x0)]
}

// ownGrey is what this program's own windows are in the pictures on cards.
var ownGrey = color.RGBA{0x6b, 0x72, 0x80, 255}

// fill makes rects one colour.
func (r *raster) fill(rects []image.Rectangle, c color.RGBA) {
	for _, b := range rects {
		b = b.Intersect(r.rect)
		if b.Empty() {
			continue
		}
		first := r.line(b.Min.Y, b.Min.X, b.Max.X)
		for x := b.Min.X; x < b.Max.X; x++ {
			r.set(image.Pt(x, b.Min.Y), c)
		}
		for y := b.Min.Y + 1; y < b.Max.Y; y++ {
			copy(r.line(y, b.Min.X, b.Max.X), first)
		}
	}
}

// blackBut tells whether every pixel beside rects is black, where those leave
// enough to say so.
func (r *raster) blackBut(rects []image.Rectangle) bool {
	left := []image.Rectangle{r.rect}
	for _, b := range rects {
		left = space.Without(left, b)
	}
	count := 0
	for _, l := range left {
		for y := l.Min.Y; y < l.Max.Y; y++ {
			line := r.line(y, l.Min.X, l.Max.X)
			for i := 0; i+3 < len(line); i += 4 {
				if line[i]|line[i+1]|line[i+2] != 0 {
					return false
				}
			}
		}
		count += l.Dx() * l.Dy()
	}
	return count > 0 && 8*count >= r.rect.Dx()*r.rect.Dy()
}

// draw puts a mouse pointer on top.
func (r *raster) draw(s *sprite) {
	b := s.img.Rect.Sub(s.img.Rect.Min).Add(s.at).Intersect(r.rect)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		to := r.line(y, b.Min.X, b.Max.X)
		from := s.img.Pix[(y-s.at.Y)*s.img.Stride+4*(b.Min.X-s.at.X):]
		for i := 0; i < len(to); i += 4 {
			left := 255 - uint32(from[i+3])
			one, three := from[i], from[i+2]
			if !r.rgb {
				one, three = three, one
			}
			to[i] = one + byte((uint32(to[i])*left+127)/255)
			to[i+1] = from[i+1] + byte((uint32(to[i+1])*left+127)/255)
			to[i+2] = three + byte((uint32(to[i+2])*left+127)/255)
		}
	}
}

// ring draws a circle of red and white around the pixel at.
func (r *raster) ring(at image.Point) {
	for y := -19; y <= 19; y++ {
		for x := -19; x <= 19; x++ {
			p := at.Add(image.Pt(x, y))
			if !p.In(r.rect) {
				continue
			}
			switch d := x*x + y*y; {
			case d > 19*19 || d < 10*10 && d > 3*3:
			case d > 17*17 || d < 12*12 && d > 3*3:
				r.set(p, color.RGBA{255, 255, 255, 255})
			default:
				r.set(p, color.RGBA{224, 16, 32, 255})
			}
		}
	}
}

func (r *raster) set(p image.Point, c color.RGBA) {
	l := r.line(p.Y, p.X, p.X+1)
	if r.rgb {
		l[0], l[1], l[2] = c.R, c.G, c.B
	} else {
		l[0], l[1], l[2] = c.B, c.G, c.R
	}
}

// rgba is r as Go's image packages have it, opaque, with memory of its own.
func (r *raster) rgba() *image.RGBA {
	out := image.NewRGBA(image.Rectangle{Max: r.rect.Size()})
	for y := r.rect.Min.Y; y < r.rect.Max.Y; y++ {
		from := r.line(y, r.rect.Min.X, r.rect.Max.X)
		to := out.Pix[(y-r.rect.Min.Y)*out.Stride:]
		to = to[:len(from)]
		if r.rgb {
			copy(to, from)
			for i := 3; i < len(to); i += 4 {
				to[i] = 255
			}
			continue
		}
		for i := 0; i+3 < len(from); i += 4 {
			to[i], to[i+1], to[i+2], to[i+3] = from[i+2], from[i+1], from[i], 255
		}
	}
	return out
}

// fromRGBA takes over img, which lies at the device pixel at.
func fromRGBA(img *image.RGBA, at image.Point) *raster {
	return &raster{pix: img.Pix, stride: img.Stride, rect: image.Rectangle{Max: img.Rect.Size()}.Add(at), rgb: true}
}
