package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"
)

// Rows is a list of rows of one height that scrolls; only those in sight are
// drawn. With OnSelect a row can be chosen by mouse and by arrow keys.
type Rows struct {
	widget.BaseWidget
	// Keys may be nil.
	Keys *Keys
	// Count, New and Update say what is in it. Update fills an object that
	// New made for row i; chosen marks the selected one.
	Count  func() int
	New    func() fyne.CanvasObject
	Update func(i int, chosen bool, o fyne.CanvasObject)
	// OnSelect, if set, hears of the row that a person chose; OnOpen of the
	// row on which Enter was pressed.
	OnSelect func(i int)
	OnOpen   func(i int)
	// OnTap, if set, hears of a click on a row, after OnSelect.
	OnTap func(i int)
	// OnScroll, if set, hears that other rows are in sight.
	OnScroll func()

	height   float32
	selected int
	focused  bool
	mouse    bool // the focus came by a click: no ring until a key is used
	scroll   *scroller
	body     *rowsBody
	edge     *box
	around   fyne.Size // by how much the edge stands outside, each way
}

// NewRows makes a list; set its functions, then call Reload.
func NewRows(rowHeight float32) *Rows {
	r := &Rows{height: rowHeight, selected: -1}
	r.body = &rowsBody{rows: r}
	r.body.ExtendBaseWidget(r.body)
	r.scroll = newScroller(r.body)
	r.scroll.OnScrolled = func(fyne.Position) {
		r.body.show()
		if r.OnScroll != nil {
			r.OnScroll()
		}
	}
	r.edge = newBox(None, Accent, Radius)
	r.edge.StrokeWidth = 2
	r.edge.Hide()
	r.ExtendBaseWidget(r)
	return r
}

// Reload draws the rows again after their number or contents changed.
func (r *Rows) Reload() {
	if limit := max(0, r.body.MinSize().Height-r.scroll.Size().Height); r.scroll.Offset.Y > limit {
		r.scroll.Offset.Y = limit
	}
	r.scroll.Refresh()
	r.body.show()
}

// Selected is the chosen row, -1 for none.
func (r *Rows) Selected() int { return r.selected }

// Mark moves the selection without telling OnSelect or scrolling.
func (r *Rows) Mark(i int) { r.selected = i; r.body.show() }

// Shift moves what is in sight by n rows, so that it stays in place when n
// rows were put in above. At the very top it stays there.
func (r *Rows) Shift(n int) {
	if r.scroll.Offset.Y > 0 {
		r.scroll.Offset.Y = max(0, r.scroll.Offset.Y+float32(n)*r.height)
	}
}

// Offset is how far it is scrolled.
func (r *Rows) Offset() float32 { return r.scroll.Offset.Y }

// Top scrolls to the first row and forgets the selection.
func (r *Rows) Top() {
	r.selected = -1
	r.scroll.Offset.Y = 0
	r.Reload()
}

func (r *Rows) choose(i int) {
	if r.OnSelect == nil || i < 0 || i >= r.Count() {
		return
	}
	r.selected = i
	r.reveal(i)
	r.body.show()
	r.OnSelect(i)
}

func (r *Rows) reveal(i int) {
	y, h := float32(i)*r.height, r.scroll.Size().Height
	switch {
	case y < r.scroll.Offset.Y:
		r.scrollTo(y)
	case y+r.height > r.scroll.Offset.Y+h:
		r.scrollTo(y + r.height - h)
	}
}

func (r *Rows) scrollTo(y float32) {
	limit := max(0, r.body.MinSize().Height-r.scroll.Size().Height)
	r.scroll.ScrollToOffset(fyne.NewPos(0, min(max(0, y), limit)))
	r.body.show()
	if r.OnScroll != nil {
		r.OnScroll()
	}
}

// FocusGained is Fyne's.
func (r *Rows) FocusGained() { r.focused = true; r.Refresh(); reveal(r) }

// FocusLost is Fyne's.
func (r *Rows) FocusLost() { r.focused, r.mouse = false, false; r.Refresh() }

// TypedRune hands characters on.
func (r *Rows) TypedRune(c rune) { r.Keys.rune(c) }

// TypedKey scrolls, or chooses where rows can be chosen.
func (r *Rows) TypedKey(e *fyne.KeyEvent) {
	if r.mouse {
		r.mouse = false
		r.Refresh()
	}
	page := max(1, int(r.scroll.Size().Height/r.height)-1)
	last := r.Count() - 1
	step := map[fyne.KeyName]int{fyne.KeyUp: -1, fyne.KeyDown: 1, fyne.KeyPageUp: -page, fyne.KeyPageDown: page, fyne.KeyHome: -last - 1, fyne.KeyEnd: last + 1}[e.Name]
	switch {
	case step != 0 && r.OnSelect != nil:
		r.choose(min(max(0, r.selected+step), last))
	case step != 0:
		r.scrollTo(r.scroll.Offset.Y + float32(step)*r.height)
	case isEnter(e.Name) && r.OnOpen != nil && r.selected >= 0:
		r.OnOpen(r.selected)
	default:
		r.Keys.key(e)
	}
}

// CreateRenderer is Fyne's.
func (r *Rows) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      r,
		objects: []fyne.CanvasObject{r.scroll, r.edge.Rectangle},
		layout: func(s fyne.Size) {
			r.scroll.Resize(s)
			r.edge.Move(fyne.NewPos(-r.around.Width, -r.around.Height))
			r.edge.Resize(s.AddWidthHeight(2*r.around.Width, 2*r.around.Height))
			r.body.show()
		},
		min: func() fyne.Size { return fyne.NewSize(40, r.height) },
		refresh: func() {
			r.edge.paint()
			r.edge.Hidden = !r.focused || r.mouse
			r.body.show()
		},
	}
}

// rowsBody is what scrolls: as high as all rows, with objects for those in
// sight.
type rowsBody struct {
	widget.BaseWidget
	rows *Rows
	pool []fyne.CanvasObject
}

// show places an object for each row in sight.
func (b *rowsBody) show() {
	r := b.rows
	if r.Count == nil || r.New == nil || b.Size().Width == 0 {
		return
	}
	n := r.Count()
	first := max(0, int(r.scroll.Offset.Y/r.height))
	want := min(n-first, int(r.scroll.Size().Height/r.height)+2)
	grown := false
	for len(b.pool) < want {
		b.pool = append(b.pool, r.New())
		grown = true
	}
	for i, o := range b.pool {
		if i >= want {
			o.Hide()
			continue
		}
		r.Update(first+i, first+i == r.selected, o)
		o.Resize(fyne.NewSize(b.Size().Width, r.height))
		o.Move(fyne.NewPos(0, float32(first+i)*r.height))
		o.Show()
	}
	if grown {
		b.BaseWidget.Refresh()
	}
}

// Tapped chooses the row that was clicked.
func (b *rowsBody) Tapped(e *fyne.PointEvent) {
	b.rows.mouse = !b.rows.focused || b.rows.mouse
	focus(b.rows)
	i := int(e.Position.Y / b.rows.height)
	b.rows.choose(i)
	if b.rows.OnTap != nil && i >= 0 && i < b.rows.Count() {
		b.rows.OnTap(i)
	}
}

// CreateRenderer is Fyne's.
func (b *rowsBody) CreateRenderer() fyne.WidgetRenderer {
	d := &drawn{of: b, objects: b.pool}
	d.layout = func(fyne.Size) { b.show() }
	d.min = func() fyne.Size {
		n := 0
		if b.rows.Count != nil {
			n = b.rows.Count()
		}
		return fyne.NewSize(20, float32(n)*b.rows.height)
	}
	d.refresh = func() {
		d.objects = b.pool
		b.show()
	}
	return d
}
