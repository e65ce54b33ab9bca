package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"
)

// Column stacks objects with gap between them; each gets the whole width.
func Column(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(column{gap}, objects...)
}

type column struct{ gap float32 }

func (c column) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	first := true
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		s.Width = max(s.Width, m.Width)
		s.Height += m.Height
		if !first {
			s.Height += c.gap
		}
		first = false
	}
	return s
}

func (c column) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	y := float32(0)
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		// The width first: what wraps knows its height only then.
		o.Resize(fyne.NewSize(size.Width, o.MinSize().Height))
		h := o.MinSize().Height
		o.Resize(fyne.NewSize(size.Width, h))
		o.Move(fyne.NewPos(0, y))
		y += h + c.gap
	}
}

// Row puts objects side by side, centred vertically. Space() takes what is
// left, and so does an object made by Grow.
func Row(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(row{gap}, objects...)
}

type row struct{ gap float32 }

// grower is an object that takes the width that is left over in a Row.
type grower interface{ grows() }

type space struct{ *canvas.Rectangle }

func (space) grows() {}

// Space takes the width that is left in a Row.
func Space() fyne.CanvasObject {
	r := canvas.NewRectangle(nil)
	r.FillColor = Color(None)
	return space{r}
}

type grow struct {
	widget.BaseWidget
	inner fyne.CanvasObject
}

func (*grow) grows() {}

// CreateRenderer is Fyne's.
func (g *grow) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      g,
		objects: []fyne.CanvasObject{g.inner},
		layout:  func(s fyne.Size) { g.inner.Resize(s) },
		min:     func() fyne.Size { return g.inner.MinSize() },
		refresh: func() {},
	}
}

// Grow makes o take the width that is left in a Row.
func Grow(o fyne.CanvasObject) fyne.CanvasObject {
	g := &grow{inner: o}
	g.ExtendBaseWidget(g)
	return g
}

func (r row) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	first := true
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		s.Width += m.Width
		s.Height = max(s.Height, m.Height)
		if !first {
			s.Width += r.gap
		}
		first = false
	}
	return s
}

func (r row) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	growers := 0
	for _, o := range objects {
		if _, ok := o.(grower); ok && o.Visible() {
			growers++
		}
	}
	left := size.Width - r.MinSize(objects).Width // below 0: they give way
	x := float32(0)
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		if _, ok := o.(grower); ok {
			m.Width = max(0, m.Width+left/float32(growers))
		}
		o.Resize(m)
		m.Height = max(m.Height, min(o.MinSize().Height, size.Height)) // it may have wrapped
		o.Resize(m)
		o.Move(fyne.NewPos(x, mid(size.Height, m.Height)))
		x += m.Width + r.gap
	}
}

// Pad puts space around o.
func Pad(top, right, bottom, left float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(pad{top, right, bottom, left}, o)
}

type pad struct{ t, r, b, l float32 }

func (p pad) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return objects[0].MinSize().AddWidthHeight(p.l+p.r, p.t+p.b)
}

func (p pad) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	objects[0].Move(fyne.NewPos(p.l, p.t))
	objects[0].Resize(size.SubtractWidthHeight(p.l+p.r, p.t+p.b))
}

// Width gives o at least w.
func Width(w float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(atLeast{w: w}, o)
}

// Height gives o at least h.
func Height(h float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(atLeast{h: h}, o)
}

type atLeast struct{ w, h float32 }

func (a atLeast) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return objects[0].MinSize().Max(fyne.NewSize(a.w, a.h))
}

func (a atLeast) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	objects[0].Move(fyne.Position{})
	objects[0].Resize(size)
}

// Wrap puts objects side by side and goes on in the next line where they do
// not fit.
func Wrap(width, gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(&wrap{width: width, gap: gap}, objects...)
}

type wrap struct {
	width, gap float32
	now        float32 // what it was given last; 0 before
}

// line is how wide its lines are: it gives way where there is less room.
func (w *wrap) line() float32 {
	if w.now > 0 {
		return min(w.now, w.width)
	}
	return w.width
}

func (w *wrap) place(objects []fyne.CanvasObject, width float32, put func(fyne.CanvasObject, fyne.Position, fyne.Size)) float32 {
	x, y, h := float32(0), float32(0), float32(0)
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		if x > 0 && x+m.Width > width {
			x, y, h = 0, y+h+w.gap, 0
		}
		put(o, fyne.NewPos(x, y), m)
		x += m.Width + w.gap
		h = max(h, m.Height)
	}
	return y + h
}

func (w *wrap) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(w.width, w.place(objects, w.line(), func(fyne.CanvasObject, fyne.Position, fyne.Size) {}))
}

func (w *wrap) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	w.now = size.Width
	w.place(objects, size.Width, func(o fyne.CanvasObject, p fyne.Position, s fyne.Size) {
		o.Move(p)
		o.Resize(s)
	})
}

// Frame gives main what head and foot leave of the height; either may be nil.
func Frame(head, main, foot fyne.CanvasObject) *fyne.Container {
	f := frame{head, main, foot}
	c := container.New(f)
	for _, o := range []fyne.CanvasObject{head, main, foot} { // the order of Tab
		if o != nil {
			c.Add(o)
		}
	}
	return c
}

type frame struct{ head, main, foot fyne.CanvasObject }

func (f frame) MinSize([]fyne.CanvasObject) fyne.Size {
	s := f.main.MinSize()
	for _, o := range []fyne.CanvasObject{f.head, f.foot} {
		if o != nil && o.Visible() {
			m := o.MinSize()
			s = fyne.NewSize(max(s.Width, m.Width), s.Height+m.Height)
		}
	}
	return s
}

func (f frame) Layout(_ []fyne.CanvasObject, size fyne.Size) {
	top, bottom := float32(0), size.Height
	if o := f.head; o != nil && o.Visible() {
		o.Resize(fyne.NewSize(size.Width, o.MinSize().Height))
		top = o.MinSize().Height
		o.Resize(fyne.NewSize(size.Width, top))
	}
	if o := f.foot; o != nil && o.Visible() {
		o.Resize(fyne.NewSize(size.Width, o.MinSize().Height))
		h := o.MinSize().Height
		bottom -= h
		o.Resize(fyne.NewSize(size.Width, h))
		o.Move(fyne.NewPos(0, bottom))
	}
	f.main.Move(fyne.NewPos(0, top))
	f.main.Resize(fyne.NewSize(size.Width, max(0, bottom-top)))
}

// AtLeast makes s all that o asks for, whatever it wants.
func AtLeast(s fyne.Size, o fyne.CanvasObject) *fyne.Container {
	return container.New(noMore{s}, o)
}

type noMore struct{ size fyne.Size }

func (n noMore) MinSize([]fyne.CanvasObject) fyne.Size { return n.size }

func (noMore) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.Position{})
		o.Resize(size)
	}
}

// Beside puts side, which is w wide, to the right of main, or below it where
// the whole is narrower than narrow.
func Beside(w, narrow float32, main, side fyne.CanvasObject) *fyne.Container {
	return container.New(beside{w, narrow}, main, side)
}

type beside struct{ w, narrow float32 }

func (b beside) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(200, 160) }

func (b beside) Layout(o []fyne.CanvasObject, size fyne.Size) {
	main, side := o[0], o[1]
	main.Move(fyne.Position{})
	switch {
	case !side.Visible():
		main.Resize(size)
	case size.Width >= b.narrow:
		main.Resize(fyne.NewSize(size.Width-b.w, size.Height))
		side.Move(fyne.NewPos(size.Width-b.w, 0))
		side.Resize(fyne.NewSize(b.w, size.Height))
	default:
		h := size.Height * 0.5
		main.Resize(fyne.NewSize(size.Width, size.Height-h))
		side.Move(fyne.NewPos(0, size.Height-h))
		side.Resize(fyne.NewSize(size.Width, h))
	}
}

// Middle puts o in the middle, at most w wide.
func Middle(w float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(middle{w}, o)
}

type middle struct{ w float32 }

func (m middle) MinSize(o []fyne.CanvasObject) fyne.Size { return o[0].MinSize() }

func (m middle) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := min(m.w, size.Width)
	o[0].Resize(fyne.NewSize(w, o[0].MinSize().Height))
	h := o[0].MinSize().Height
	o[0].Resize(fyne.NewSize(w, h))
	o[0].Move(fyne.NewPos(mid(size.Width, w), max(0, mid(size.Height, h))))
}

// Columns puts objects side by side, all of one width.
func Columns(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(columnsOf{gap}, objects...)
}

type columnsOf struct{ gap float32 }

func (c columnsOf) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	for _, o := range objects {
		s = s.Max(o.MinSize())
	}
	n := float32(len(objects))
	return fyne.NewSize(n*s.Width+(n-1)*c.gap, s.Height)
}

func (c columnsOf) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	n := float32(len(objects))
	w := (size.Width - (n-1)*c.gap) / n
	for i, o := range objects {
		o.Move(fyne.NewPos(float32(i)*(w+c.gap), 0))
		o.Resize(fyne.NewSize(w, size.Height))
	}
}

// Layers puts objects one over the other, each as large as the whole.
func Layers(objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(noMore{fyne.NewSize(80, 80)}, objects...)
}

// Ends puts left and right at the two ends of a line, or right below left
// where they do not fit.
func Ends(left, right fyne.CanvasObject) *fyne.Container {
	return container.New(&ends{}, left, right)
}

type ends struct{ width float32 }

func (e *ends) split(o []fyne.CanvasObject) bool {
	return e.width > 0 && o[0].MinSize().Width+16+o[1].MinSize().Width > e.width
}

func (e *ends) MinSize(o []fyne.CanvasObject) fyne.Size {
	l, r := o[0].MinSize(), o[1].MinSize()
	if e.split(o) {
		return fyne.NewSize(max(l.Width, r.Width), l.Height+8+r.Height)
	}
	return fyne.NewSize(max(l.Width, r.Width), max(l.Height, r.Height))
}

func (e *ends) Layout(o []fyne.CanvasObject, size fyne.Size) {
	e.width = size.Width
	l, r := o[0].MinSize(), o[1].MinSize()
	if l.Width > size.Width { // it may wrap
		o[0].Resize(fyne.NewSize(size.Width, l.Height))
		l.Height = o[0].MinSize().Height
		l.Width = size.Width
	}
	o[0].Resize(l)
	o[1].Resize(r)
	if e.split(o) {
		o[0].Move(fyne.Position{})
		o[1].Move(fyne.NewPos(0, l.Height+8))
		return
	}
	o[0].Move(fyne.NewPos(0, mid(size.Height, l.Height)))
	o[1].Move(fyne.NewPos(size.Width-r.Width, mid(size.Height, r.Height)))
}

// Facing puts left and right at the two ends of a line, or right below left,
// still at its end, where they do not fit.
func Facing(left, right fyne.CanvasObject) *fyne.Container {
	return container.New(&facing{}, left, right)
}

type facing struct{ width float32 }

func (f *facing) split(o []fyne.CanvasObject) bool {
	return f.width > 0 && o[0].MinSize().Width+Unit+o[1].MinSize().Width > f.width
}

func (f *facing) MinSize(o []fyne.CanvasObject) fyne.Size {
	l, r := o[0].MinSize(), o[1].MinSize()
	if f.split(o) {
		return fyne.NewSize(max(l.Width, r.Width), l.Height+Unit+r.Height)
	}
	return fyne.NewSize(max(l.Width, r.Width), max(l.Height, r.Height))
}

func (f *facing) Layout(o []fyne.CanvasObject, size fyne.Size) {
	f.width = size.Width
	l, r := o[0].MinSize(), o[1].MinSize()
	o[0].Resize(l)
	o[1].Resize(r)
	o[0].Move(fyne.NewPos(0, 0))
	if f.split(o) {
		o[1].Move(fyne.NewPos(size.Width-r.Width, l.Height+Unit))
		return
	}
	o[0].Move(fyne.NewPos(0, mid(size.Height, l.Height)))
	o[1].Move(fyne.NewPos(size.Width-r.Width, mid(size.Height, r.Height)))
}
