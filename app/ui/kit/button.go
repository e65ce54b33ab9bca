package kit

import (
	"image"
	"image/color"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// Kind is how a button looks.
type Kind int

// Kinds of buttons.
const (
	Normal  Kind = iota
	Primary      // filled with the accent
	Danger       // its word in the risk colour
	Link         // a word in the accent colour
	Quiet        // a word on no ground, for the way to another window
)

// Button is pressed by mouse, Enter or Space.
type Button struct {
	widget.BaseWidget
	OnTap func()
	// Keys may be nil; while they are not live, Enter and Space do nothing.
	Keys *Keys

	kind           Kind
	slim           bool
	off            bool
	focused, hover bool
	ground, ring   *box
	word           *label
}

// NewButton makes a button.
func NewButton(text string, kind Kind, tap func()) *Button {
	b := &Button{OnTap: tap, kind: kind}
	b.ground = newBox(Pane, Edge, Radius)
	b.ring = newRing(Radius)
	size := Body
	if kind == Link {
		size = Small
	}
	b.word = newLabel(text, size, Ink, true)
	b.ExtendBaseWidget(b)
	return b
}

// Slim makes it as low as a field in a bar.
func (b *Button) Slim() *Button { b.slim = true; return b }

// WithKeys sets Keys.
func (b *Button) WithKeys(k *Keys) *Button { b.Keys = k; return b }

// Text is its word.
func (b *Button) Text() string { return b.word.text }

// SetText changes its word.
func (b *Button) SetText(s string) {
	if s != b.word.text {
		b.word.text = s
		b.Refresh()
	}
}

// Enable makes it work, or not.
func (b *Button) Enable(on bool) {
	if b.off == on {
		b.off = !on
		b.Refresh()
	}
}

// Disabled says that it does not work now.
func (b *Button) Disabled() bool { return b.off }

// Tapped presses it.
func (b *Button) Tapped(*fyne.PointEvent) {
	if !b.off && b.OnTap != nil {
		b.OnTap()
	}
}

// TypedRune hands characters on.
func (b *Button) TypedRune(r rune) { b.Keys.rune(r) }

// TypedKey presses it on Enter and Space.
func (b *Button) TypedKey(e *fyne.KeyEvent) {
	switch {
	case !isEnter(e.Name):
		b.Keys.key(e)
	case b.Keys.live():
		b.Tapped(nil)
	}
}

// FocusGained is Fyne's.
func (b *Button) FocusGained() { b.focused = true; b.Refresh(); reveal(b) }

// FocusLost is Fyne's.
func (b *Button) FocusLost() { b.focused = false; b.Refresh() }

// MouseIn is Fyne's.
func (b *Button) MouseIn(*desktop.MouseEvent) { b.hover = true; b.Refresh() }

// MouseMoved is Fyne's.
func (b *Button) MouseMoved(e *desktop.MouseEvent) {
	if !b.hover { // Unpoint came in between
		b.MouseIn(e)
	}
}

// MouseOut is Fyne's.
func (b *Button) MouseOut() { b.hover = false; b.Refresh() }

func (b *Button) paint() {
	b.ground.fill, b.ground.edge, b.word.ink = Pane, Edge, Ink
	switch {
	case b.kind == Link:
		b.ground.fill, b.ground.edge, b.word.ink = None, None, Accent
	case b.kind == Quiet:
		b.ground.fill, b.ground.edge, b.word.ink = None, None, Dim
	case b.kind == Primary:
		b.ground.fill, b.ground.edge, b.word.ink = Accent, Accent, On
	case b.kind == Danger:
		b.word.ink = Risk
	}
	if b.off {
		b.word.ink = Dim
		if b.kind == Primary {
			b.ground.fill, b.ground.edge = Pane, Edge
		}
	}
	b.ground.paint()
	b.word.paint()
	b.ring.paint()
	switch {
	case !b.hover || b.off || b.kind == Link:
	case b.kind == Quiet:
		b.ground.FillColor = Color(Code)
	default:
		b.ground.FillColor = mix(b.ground.FillColor, Color(Ink), 0.08)
	}
	b.ring.Hidden = !b.focused
}

func mix(a, b color.Color, k float64) color.Color {
	x, y := color.NRGBAModel.Convert(a).(color.NRGBA), color.NRGBAModel.Convert(b).(color.NRGBA)
	m := func(p, q uint8) uint8 { return uint8(float64(p)*(1-k) + float64(q)*k + 0.5) }
	return color.NRGBA{m(x.R, y.R), m(x.G, y.G), m(x.B, y.B), x.A}
}

// CreateRenderer is Fyne's.
func (b *Button) CreateRenderer() fyne.WidgetRenderer {
	b.paint()
	return &drawn{
		of:      b,
		objects: []fyne.CanvasObject{b.ground.Rectangle, b.ring.Rectangle, b.word.Container},
		layout: func(s fyne.Size) {
			b.ground.Resize(s)
			b.ring.around(fyne.Position{}, s)
			b.word.centre(fyne.Position{}, s)
		},
		min: func() fyne.Size {
			m := b.word.MinSize()
			switch {
			case b.kind == Link:
				return fyne.NewSize(m.Width+4, m.Height+4)
			case b.slim:
				return fyne.NewSize(m.Width+24, 31)
			}
			return fyne.NewSize(max(m.Width+32, 64), 35)
		},
		refresh: func() {
			b.paint()
			b.word.centre(fyne.Position{}, b.Size())
		},
	}
}

// Allow is the button that allows. It takes no focus and no key at all: only
// the mouse presses it, and only while it is armed. Unarmed, its border is
// dashed.
type Allow struct {
	widget.BaseWidget
	onTap  func()
	armed  bool
	down   bool // the mouse went down on it while it was armed
	hover  bool
	ground *box
	word   *label
	dashes *canvas.Raster
}

// NewAllow makes an unarmed button.
func NewAllow(text string, tap func()) *Allow {
	a := &Allow{onTap: tap}
	a.ground = newBox(Pane, None, Radius)
	a.word = newLabel(text, Body, Dim, true)
	a.dashes = canvas.NewRaster(a.draw)
	a.ExtendBaseWidget(a)
	return a
}

// Arm makes it work, or not.
func (a *Allow) Arm(on bool) {
	if a.armed != on {
		a.armed = on
		a.Refresh()
	}
}

// SetText changes its word.
func (a *Allow) SetText(s string) {
	if s != a.word.text {
		a.word.text = s
		a.Refresh()
	}
}

// Armed says whether a click allows.
func (a *Allow) Armed() bool { return a.armed }

// Text is its word.
func (a *Allow) Text() string { return a.word.text }

// MouseDown is Fyne's: a click counts from where it began.
func (a *Allow) MouseDown(*desktop.MouseEvent) { a.down = a.armed }

// MouseUp is Fyne's.
func (a *Allow) MouseUp(*desktop.MouseEvent) {}

// Tapped allows, when it was armed from the click's beginning to its end.
func (a *Allow) Tapped(*fyne.PointEvent) {
	whole := a.down && a.armed
	a.down = false
	if whole {
		a.onTap()
	}
}

// MouseIn is Fyne's.
func (a *Allow) MouseIn(*desktop.MouseEvent) { a.hover = true; a.Refresh() }

// MouseMoved is Fyne's.
func (a *Allow) MouseMoved(e *desktop.MouseEvent) {
	if !a.hover { // Unpoint came in between
		a.MouseIn(e)
	}
}

// MouseOut is Fyne's.
func (a *Allow) MouseOut() { a.hover = false; a.Refresh() }

func (a *Allow) paint() {
	a.ground.fill, a.word.ink = Pane, Dim
	if a.armed {
		a.ground.fill, a.word.ink = Accent, On
	}
	a.ground.paint()
	a.word.paint()
	if a.armed && a.hover {
		a.ground.FillColor = mix(a.ground.FillColor, Color(Ink), 0.08)
	}
	a.dashes.Hidden = a.armed
}

// draw makes the dashed border, w × h pixels: a ring of a pixel along a
// rounded rectangle, on and off every few pixels of its length.
func (a *Allow) draw(w, h int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	if w == 0 || h == 0 || a.Size().Width == 0 {
		return img
	}
	px := float64(w) / float64(a.Size().Width) // pixels a unit
	ink := color.NRGBAModel.Convert(Color(Edge)).(color.NRGBA)
	r, thick := float64(Radius)*px, max(1, px)
	hw, hh := float64(w)/2, float64(h)/2
	for y := 0; y < h; y++ {
		for x := 0; x < w; x++ {
			fx, fy := float64(x)+0.5-hw, float64(y)+0.5-hh
			qx, qy := math.Abs(fx)-(hw-r), math.Abs(fy)-(hh-r)
			d := math.Hypot(max(qx, 0), max(qy, 0)) + min(max(qx, qy), 0) - r
			cover := min(1, max(0, thick/2+0.5-math.Abs(d+thick/2)))
			if cover == 0 {
				continue
			}
			along := fx
			if math.Abs(fx)-(hw-r) > math.Abs(fy)-(hh-r) {
				along = fy
			}
			if math.Mod(math.Abs(along)/px, 7) > 4 {
				continue
			}
			c := ink
			c.A = uint8(float64(c.A) * cover)
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

// CreateRenderer is Fyne's.
func (a *Allow) CreateRenderer() fyne.WidgetRenderer {
	a.paint()
	return &drawn{
		of:      a,
		objects: []fyne.CanvasObject{a.ground.Rectangle, a.dashes, a.word.Container},
		layout: func(s fyne.Size) {
			a.ground.Resize(s)
			a.dashes.Resize(s)
			a.word.centre(fyne.Position{}, s)
		},
		min: func() fyne.Size { return fyne.NewSize(max(a.word.MinSize().Width+32, 64), 35) },
		refresh: func() {
			a.paint()
			a.word.centre(fyne.Position{}, a.Size())
		},
	}
}
