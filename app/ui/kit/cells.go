package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// Cells is a row of a list: texts of one line each side by side. A width of 0
// takes what is left.
type Cells struct {
	widget.BaseWidget
	widths []float32
	chosen bool
	ground *box
	line   *box
	texts  []*Flow
	// Over, if set, stands in cell OverAt in place of text.
	over   fyne.CanvasObject
	overAt int
}

// NewCells makes an empty row.
func NewCells(size float32, widths ...float32) *Cells {
	c := &Cells{widths: widths, ground: newBox(None, None, Radius-2)}
	for _, w := range widths {
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

// Place gives each cell its place in a row that is w wide, pad away from the
// sides, gap apart; a table's head uses it too.
func Place(widths []float32, w, pad, gap float32) (xs, ws []float32) {
	left := w - 2*pad - gap*float32(len(widths)-1)
	grow := 0
	for _, v := range widths {
		left -= v
		if v == 0 {
			grow++
		}
	}
	x := pad
	for _, v := range widths {
		if v == 0 {
			v = max(40, left/float32(grow))
		}
		xs, ws = append(xs, x), append(ws, v)
		x += v + gap
	}
	return xs, ws
}

// CellPad and CellGap part the cells of a row.
const CellPad, CellGap = 12, 12

// CreateRenderer is Fyne's.
func (c *Cells) CreateRenderer() fyne.WidgetRenderer {
	d := &drawn{objects: []fyne.CanvasObject{c.ground.Rectangle}}
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
		xs, ws := Place(c.widths, s.Width, CellPad, CellGap)
		for i, t := range c.texts {
			h := t.lineHeight()
			t.Move(fyne.NewPos(xs[i], (s.Height-h)/2))
			t.within(ws[i])
		}
		if c.over != nil {
			m := c.over.MinSize()
			c.over.Resize(m)
			c.over.Move(fyne.NewPos(xs[c.overAt], (s.Height-m.Height)/2))
		}
	}
	d.min = func() fyne.Size { return fyne.NewSize(40, 20) }
	d.refresh = paint
	return d
}
