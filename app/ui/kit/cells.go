package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// Cells is a row of a list: texts of one line each side by side. A width of 0
// takes what is left.
type Cells struct {
	widget.BaseWidget
	widths func(w float32) []float32
	chosen bool
	ground *box
	line   *box
	texts  []*Flow
	// over, if set, stands in cell overAt in place of text.
	over   fyne.CanvasObject
	overAt int
}

// NewCells makes an empty row whose cells have the same widths at any width of
// the row.
func NewCells(size float32, widths ...float32) *Cells {
	return NewCellsOf(size, func(float32) []float32 { return widths })
}

// NewCellsOf makes an empty row; widths says what its cells take of a width.
func NewCellsOf(size float32, widths func(w float32) []float32) *Cells {
	c := &Cells{widths: widths, ground: newBox(None, None, Radius-2)}
	for _, w := range widths(1000) {
		c.texts = append(c.texts, NewLine(max(w, 40), size, 1))
	}
	c.ExtendBaseWidget(c)
	return c
}

// Lined makes rows that are parted by lines and not rounded.
func (c *Cells) Lined() *Cells {
	c.ground.CornerRadius = 0
	c.line = newBox(Line, None, 0)
	return c
}

// With puts o into cell i in place of text.
func (c *Cells) With(i int, o fyne.CanvasObject) *Cells { c.over, c.overAt = o, i; return c }

// Over is what With put in.
func (c *Cells) Over() fyne.CanvasObject { return c.over }

// Set fills the row.
func (c *Cells) Set(chosen bool, cells ...[]Span) {
	for i, s := range cells {
		c.texts[i].Set(s...)
	}
	if c.chosen != chosen {
		c.chosen = chosen
		c.Refresh()
	}
}

// place gives each cell its place in a row that is w wide. A cell of width 0
// takes what is left, one below 0 is left out.
func place(widths []float32, w float32) (xs, ws []float32) {
	left, grow := w-2*CellPad+CellGap, 0
	for _, v := range widths {
		if v >= 0 {
			left -= v + CellGap
		}
		if v == 0 {
			grow++
		}
	}
	x := float32(CellPad)
	for _, v := range widths {
		if v == 0 {
			v = max(40, left/float32(grow))
		}
		xs, ws = append(xs, x), append(ws, v)
		if v > 0 {
			x += v + CellGap
		}
	}
	return xs, ws
}

// CellPad and CellGap part the cells of a row.
const CellPad, CellGap = 12, 12

// CreateRenderer is Fyne's.
func (c *Cells) CreateRenderer() fyne.WidgetRenderer {
	d := &drawn{of: c, objects: []fyne.CanvasObject{c.ground.Rectangle}}
	if c.line != nil {
		d.objects = append(d.objects, c.line.Rectangle)
	}
	for _, t := range c.texts {
		d.objects = append(d.objects, t)
	}
	if c.over != nil {
		d.objects = append(d.objects, c.over)
	}
	paint := func() {
		c.ground.fill = None
		if c.chosen {
			c.ground.fill = Sel
		}
		c.ground.paint()
		if c.line != nil {
			c.line.paint()
		}
	}
	paint()
	d.layout = func(s fyne.Size) {
		c.ground.Resize(s)
		if c.line != nil {
			c.line.Move(fyne.NewPos(0, s.Height-1))
			c.line.Resize(fyne.NewSize(s.Width, 1))
		}
		xs, ws := place(c.widths(s.Width), s.Width)
		for i, t := range c.texts {
			t.Hidden = ws[i] < 0
			if t.Hidden {
				continue
			}
			h := t.lineHeight()
			t.Move(fyne.NewPos(xs[i], mid(s.Height, h)))
			t.within(ws[i])
		}
		if c.over != nil {
			m := c.over.MinSize()
			c.over.Resize(m)
			c.over.Move(fyne.NewPos(xs[c.overAt], mid(s.Height, m.Height)))
		}
	}
	d.min = func() fyne.Size { return fyne.NewSize(40, 20) }
	d.refresh = paint
	return d
}
