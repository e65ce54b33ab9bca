package kit

import (
	"slices"
	"strings"
	"unicode"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
	"golang.org/x/text/width"
)

// cell is a stretch of one kind in a line of exact text.
type cell struct {
	text string
	ink  fyne.ThemeColorName
	col  int // where it begins, in columns
}

// Exact shows text exactly: monospaced, every character reachable, what cannot
// be seen as an escape in the risk colour. A line that was too long goes on
// behind a dim ↳, a tab is a dim ⇥.
type Exact struct {
	widget.BaseWidget
	rows   *Rows
	ground *box
	text   string
	items  []string // instead of text: a line each, whatever is in them
	lines  [][]cell
	cols   int
	// Follow keeps the end in sight while text is added and it was there.
	Follow bool
	// most is how many lines are shown before it scrolls.
	most int
	cell fyne.Size
}

const exactPad = 12

// NewExact makes a box that is w wide and at most most lines high.
func NewExact(w float32, most int, keys *Keys, text string) *Exact {
	e := &Exact{most: most, text: text}
	e.cell = fyne.NewSize(fyne.MeasureText("0000000000", Small, fyne.TextStyle{Monospace: true}).Width/10, 19)
	e.rows = NewRows(e.cell.Height)
	e.rows.Keys = keys
	e.rows.Count = func() int { return len(e.lines) }
	e.rows.New = func() fyne.CanvasObject { return newExactLine(e) }
	e.rows.Update = func(i int, _ bool, o fyne.CanvasObject) { o.(*exactLine).set(e.lines[i]) }
	e.ground = newBox(Code, Line, Radius)
	e.ExtendBaseWidget(e)
	e.wrap(w)
	return e
}

// NewExactList makes a box with a line for each item: a newline in one is
// shown as an escape and does not make a line.
func NewExactList(w float32, most int, keys *Keys, items []string) *Exact {
	e := NewExact(w, most, keys, "")
	e.SetList(items)
	return e
}

// SetList replaces the items.
func (e *Exact) SetList(items []string) {
	if slices.Equal(items, e.items) {
		return
	}
	e.items = items
	cols := e.cols
	e.cols = 0
	e.wrapCols(cols)
	e.rows.Reload()
	e.Refresh()
}

// Rows is what has the keyboard's focus, for tests.
func (e *Exact) Rows() *Rows { return e.rows }

// Lines is the text of each line as it is drawn, for tests.
func (e *Exact) Lines() []string {
	var out []string
	for _, l := range e.lines {
		var b strings.Builder
		for _, c := range l {
			b.WriteString(c.text)
		}
		out = append(out, b.String())
	}
	return out
}

// Set replaces the text. Text that only got longer keeps the place.
func (e *Exact) Set(text string) {
	if text == e.text {
		return
	}
	atEnd := e.rows.Offset()+e.rows.Size().Height >= e.rows.body.MinSize().Height-1
	grew := strings.HasPrefix(text, e.text)
	e.text = text
	cols := e.cols
	e.cols = 0
	e.wrapCols(cols)
	e.rows.Reload()
	if !grew {
		e.rows.scrollTo(0)
	} else if atEnd && e.Follow {
		e.rows.scrollTo(float32(len(e.lines)) * e.cell.Height)
	}
	e.Refresh()
}

// End scrolls to the last line.
func (e *Exact) End() { e.rows.scrollTo(float32(len(e.lines)) * e.cell.Height) }

// Scrolls says that there are more lines than it shows at once.
func (e *Exact) Scrolls() bool { return len(e.lines) > e.most }

// AtEnd says that the last line is in sight, as far as the box is.
func (e *Exact) AtEnd() bool {
	room := e.rows.Size().Height
	return !e.Scrolls() || room > 0 && e.rows.Offset()+room >= float32(len(e.lines))*e.cell.Height-1
}

// OnScroll has f called when other lines come in sight.
func (e *Exact) OnScroll(f func()) { e.rows.OnScroll = f }

// Page scrolls on by as much as it shows, less a line.
func (e *Exact) Page() {
	e.rows.scrollTo(e.rows.Offset() + max(e.cell.Height, e.rows.Size().Height-e.cell.Height))
}

func (e *Exact) wrap(w float32) { e.wrapCols(max(8, int((w-2*exactPad-6)/e.cell.Width))) }

// columns is how wide a character is drawn.
func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	if r >= 0x1f000 {
		return 2
	}
	return 1
}

func (e *Exact) wrapCols(cols int) {
	if cols == e.cols {
		return
	}
	e.cols, e.lines = cols, nil
	var line []cell
	col := 0
	brk := func() {
		e.lines = append(e.lines, line)
		line, col = nil, 0
	}
	put := func(s string, w int, ink fyne.ThemeColorName) {
		if col+w > cols {
			brk()
			line, col = []cell{{"↳ ", Dim, 0}}, 2
		}
		// A wide or combining character starts a stretch of its own behind
		// it, so that one odd glyph never shifts the rest of a line.
		if n := len(line); n > 0 && line[n-1].ink == ink && w == len(s) {
			line[n-1].text += s
		} else if n > 0 && w == 0 {
			line[n-1].text += s
		} else {
			line = append(line, cell{s, ink, col})
		}
		col += w
	}
	write := func(text string, multiline bool) {
		for _, r := range runs(text, multiline) {
			for _, c := range r.text {
				switch {
				case r.escape: // an escape may go on in the next line
					put(string(c), 1, Risk)
				case c == '\n':
					brk()
				case c == '\t':
					put("⇥", 1, Dim)
					if n := (8 - col%8) % 8; n > 0 && col+n <= cols {
						put(strings.Repeat(" ", n), n, Dim)
					}
				default:
					put(string(c), columns(c), Ink)
				}
			}
		}
	}
	write(e.text, true)
	for i, item := range e.items {
		if i > 0 {
			brk()
		}
		write(item, false)
	}
	if len(line) > 0 || len(e.lines) == 0 || len(e.items) > 0 {
		brk()
	}
}

// Resize wraps again where the width has changed.
func (e *Exact) Resize(s fyne.Size) {
	if s.Width > 0 {
		e.wrap(s.Width)
		e.rows.Reload()
	}
	e.BaseWidget.Resize(s)
}

// CreateRenderer is Fyne's.
func (e *Exact) CreateRenderer() fyne.WidgetRenderer {
	return &drawn{
		of:      e,
		objects: []fyne.CanvasObject{e.ground.Rectangle, e.rows},
		layout: func(s fyne.Size) {
			e.ground.Resize(s)
			e.rows.around = fyne.NewSize(2, exactPad-4) // the focus is marked on the box, clear of the letters
			e.rows.Move(fyne.NewPos(2, exactPad-4))
			e.rows.Resize(s.SubtractWidthHeight(4, 2*(exactPad-4)))
		},
		min: func() fyne.Size {
			n := min(len(e.lines), e.most)
			return fyne.NewSize(80, float32(n)*e.cell.Height+2*(exactPad-4))
		},
		refresh: func() {
			e.ground.paint()
			e.rows.Refresh()
		},
	}
}

// exactLine draws one line.
type exactLine struct {
	widget.BaseWidget
	of    *Exact
	cells []cell
	texts []*canvas.Text
}

func newExactLine(of *Exact) *exactLine {
	l := &exactLine{of: of}
	l.ExtendBaseWidget(l)
	return l
}

func (l *exactLine) set(cells []cell) {
	l.cells = cells
	l.fill()
	l.Refresh()
}

func (l *exactLine) fill() {
	l.texts = l.texts[:0:0]
	for _, c := range l.cells {
		t := canvas.NewText(c.text, Color(c.ink))
		t.TextSize, t.TextStyle = Small, fyne.TextStyle{Monospace: true}
		m := t.MinSize()
		t.Resize(m)
		t.Move(fyne.NewPos(exactPad-2+float32(c.col)*l.of.cell.Width, mid(l.of.cell.Height, m.Height)))
		l.texts = append(l.texts, t)
	}
}

// CreateRenderer is Fyne's.
func (l *exactLine) CreateRenderer() fyne.WidgetRenderer {
	d := &drawn{of: l}
	d.layout = func(fyne.Size) {}
	d.min = func() fyne.Size { return l.of.cell }
	d.refresh = func() {
		d.objects = d.objects[:0:0]
		for i, t := range l.texts {
			t.Color = Color(l.cells[i].ink)
			d.objects = append(d.objects, t)
		}
	}
	d.refresh()
	return d
}
