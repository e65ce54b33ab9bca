package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// Option is one of a few ways, with a sign or an icon, a name and a line that
// explains.
type Option struct {
	Sign string
	// Icon, if set, is one of the theme's, in place of a sign.
	Icon       fyne.ThemeIconName
	Name, Line string
}

// Options is a choice of one out of a few, one below the other: mouse, or the
// arrow keys.
type Options struct {
	widget.BaseWidget
	OnChange func(i int)
	// OnTap, if set, hears of a click on one, after OnChange.
	OnTap func(i int)
	Keys  *Keys

	rows     []*optionRow
	selected int
	focused  bool
}

// NewOptions makes a choice with item on chosen; -1 for none.
func NewOptions(width float32, items []Option, on int, keys *Keys, change func(i int)) *Options {
	o := &Options{Keys: keys, OnChange: change, selected: on}
	for i, it := range items {
		o.rows = append(o.rows, newOptionRow(o, i, width, it))
	}
	o.ExtendBaseWidget(o)
	return o
}

// Selected is the chosen one, -1 for none.
func (o *Options) Selected() int { return o.selected }

// Chosen is what is drawn of the chosen one, nil for none.
func (o *Options) Chosen() fyne.CanvasObject {
	if o.selected < 0 {
		return nil
	}
	return o.rows[o.selected]
}

// Select chooses i, as a person would.
func (o *Options) Select(i int) {
	if i < 0 || i >= len(o.rows) || i == o.selected {
		return
	}
	o.selected = i
	o.Refresh()
	if o.focused {
		o.reveal()
	}
	if o.OnChange != nil {
		o.OnChange(i)
	}
}

// TypedRune hands characters on.
func (o *Options) TypedRune(r rune) { o.Keys.rune(r) }

// TypedKey moves the choice.
func (o *Options) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeyUp, fyne.KeyLeft:
		if o.Keys.live() {
			o.Select(max(0, o.selected-1))
		}
	case fyne.KeyDown, fyne.KeyRight:
		if o.Keys.live() {
			o.Select(o.selected + 1)
		}
	default:
		o.Keys.key(e)
	}
}

// FocusGained is Fyne's.
func (o *Options) FocusGained() { o.focused = true; o.Refresh(); o.reveal() }

// reveal brings the chosen one in sight.
func (o *Options) reveal() {
	if o.selected >= 0 && o.selected < len(o.rows) {
		reveal(o.rows[o.selected])
	}
}

// FocusLost is Fyne's.
func (o *Options) FocusLost() { o.focused = false; o.Refresh() }

// CreateRenderer is Fyne's.
func (o *Options) CreateRenderer() fyne.WidgetRenderer {
	d := &drawn{of: o}
	for _, r := range o.rows {
		d.objects = append(d.objects, r)
	}
	c := column{Unit}
	d.layout = func(s fyne.Size) { c.Layout(d.objects, s) }
	d.min = func() fyne.Size { return c.MinSize(d.objects) }
	d.refresh = func() {
		for _, r := range o.rows {
			r.Refresh()
		}
	}
	return d
}

type optionRow struct {
	widget.BaseWidget
	of     *Options
	index  int
	hover  bool
	ground *box
	ring   *box
	inner  fyne.CanvasObject
}

func newOptionRow(of *Options, i int, width float32, it Option) *optionRow {
	r := &optionRow{of: of, index: i, ground: newBox(Win, Edge, Round), ring: newRing(Round)}
	text := Column(1, NewFlow(width-32-36-16, Body, Bold(it.Name, Ink)))
	if it.Line != "" {
		text.Add(NewFlow(width-32-36-16, Small, Plain(it.Line, Dim)))
	}
	r.inner = Row(16, Tile(it.Sign, it.Icon, None), Grow(text))
	r.ExtendBaseWidget(r)
	return r
}

// Tapped chooses it.
func (r *optionRow) Tapped(*fyne.PointEvent) {
	focus(r.of)
	r.of.Select(r.index)
	if r.of.OnTap != nil {
		r.of.OnTap(r.index)
	}
}

// MouseIn is Fyne's.
func (r *optionRow) MouseIn(*desktop.MouseEvent) { r.hover = true; r.Refresh() }

// MouseMoved is Fyne's.
func (r *optionRow) MouseMoved(e *desktop.MouseEvent) {
	if !r.hover { // Unpoint came in between
		r.MouseIn(e)
	}
}

// MouseOut is Fyne's.
func (r *optionRow) MouseOut() { r.hover = false; r.Refresh() }

// CreateRenderer is Fyne's.
func (r *optionRow) CreateRenderer() fyne.WidgetRenderer {
	const padX, padY = 16, 9
	paint := func() {
		on := r.of.selected == r.index
		r.ground.edge, r.ground.StrokeWidth = Edge, 1
		if on {
			r.ground.edge, r.ground.StrokeWidth = Accent, 2
		}
		r.ground.paint()
		if r.hover && !on {
			r.ground.FillColor = mix(Color(Win), Color(Ink), 0.04)
		}
		r.ring.paint()
		r.ring.Hidden = !on || !r.of.focused
	}
	paint()
	return &drawn{
		of:      r,
		objects: []fyne.CanvasObject{r.ground.Rectangle, r.ring.Rectangle, r.inner},
		layout: func(s fyne.Size) {
			r.ground.Resize(s)
			r.ring.around(fyne.Position{}, s)
			r.inner.Move(fyne.NewPos(padX, padY))
			r.inner.Resize(s.SubtractWidthHeight(2*padX, 2*padY))
		},
		min:     func() fyne.Size { return r.inner.MinSize().AddWidthHeight(2*padX, 2*padY) },
		refresh: paint,
	}
}
