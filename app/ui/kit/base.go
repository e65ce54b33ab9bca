package kit

import (
	"image/color"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
)

// drawn is the renderer of every widget here: objects and three functions.
type drawn struct {
	of      fyne.CanvasObject // the widget
	objects []fyne.CanvasObject
	layout  func(fyne.Size)
	min     func() fyne.Size
	refresh func()
}

func (d *drawn) Layout(s fyne.Size) { d.layout(s) }
func (d *drawn) MinSize() fyne.Size { return d.min() }
func (d *drawn) Refresh() {
	d.refresh()
	// The widget too: an object that was made just now belongs to no canvas
	// yet, and refreshing it alone paints nothing.
	canvas.Refresh(d.of)
	for _, o := range d.objects {
		canvas.Refresh(o)
	}
}
func (d *drawn) Objects() []fyne.CanvasObject { return d.objects }
func (d *drawn) Destroy()                     {}

// Keys is what every control of one window shares about the keyboard: a card
// sees all that is typed, whatever has the focus.
type Keys struct {
	// Rune gets every character that a control does not use itself, Key every
	// other key.
	Rune func(rune)
	Key  func(*fyne.KeyEvent)
	// Live says whether keys may do anything now; nil: always.
	Live func() bool
}

func (k *Keys) rune(r rune) {
	if k != nil && k.Rune != nil {
		k.Rune(r)
	}
}

func (k *Keys) key(e *fyne.KeyEvent) {
	if k != nil && k.Key != nil {
		k.Key(e)
	}
}

func (k *Keys) live() bool { return k == nil || k.Live == nil || k.Live() }

func isEnter(n fyne.KeyName) bool {
	return n == fyne.KeyReturn || n == fyne.KeyEnter || n == fyne.KeySpace
}

// focus gives the keyboard to w when its canvas is known.
func focus(w fyne.Focusable) {
	if o, ok := w.(fyne.CanvasObject); ok {
		if c := fyne.CurrentApp().Driver().CanvasForObject(o); c != nil {
			c.Focus(w)
		}
	}
}

// box is a rounded rectangle that remembers its colours by name.
type box struct {
	*canvas.Rectangle
	fill, edge fyne.ThemeColorName
}

func newBox(fill, edge fyne.ThemeColorName, radius float32) *box {
	r := canvas.NewRectangle(nil)
	r.CornerRadius = radius
	b := &box{r, fill, edge}
	if edge != None {
		r.StrokeWidth = 1
	}
	b.paint()
	return b
}

func (b *box) paint() {
	b.FillColor, b.StrokeColor = Color(b.fill), Color(b.edge)
	if b.fill == None && b.edge != None {
		// The edge is blended into the fill: of its own colour, it stays clean.
		c := color.NRGBAModel.Convert(b.StrokeColor).(color.NRGBA)
		c.A = 0
		b.FillColor = c
	}
}

// ring is the mark of the keyboard's focus: 2 wide, 2 away.
func newRing(radius float32) *box {
	b := newBox(None, Accent, radius+4)
	b.StrokeWidth = 2
	b.Hide()
	return b
}

// around puts a ring around a rectangle of size s at p.
func (b *box) around(p fyne.Position, s fyne.Size) {
	b.Move(p.SubtractXY(4, 4))
	b.Resize(s.AddWidthHeight(8, 8))
}

// label is one line of text of our own that remembers its colour by name. It
// is a canvas.Text for each font that it takes.
type label struct {
	*fyne.Container
	text string
	size float32
	ink  fyne.ThemeColorName
	bold bool
	made string // what the container holds
}

func newLabel(s string, size float32, ink fyne.ThemeColorName, bold bool) *label {
	l := &label{Container: &fyne.Container{}, text: s, size: size, ink: ink, bold: bold}
	l.paint()
	return l
}

// paint brings it up to date with its fields.
func (l *label) paint() {
	key := l.text
	if l.bold {
		key += "\x00"
	}
	if key != l.made || l.Objects == nil {
		l.made, l.Objects = key, nil
		for _, s := range drawable(Span{Text: l.text, Bold: l.bold}) {
			t := canvas.NewText(s.Text, nil)
			t.TextSize, t.TextStyle = l.size, style(s)
			l.Objects = append(l.Objects, t)
		}
	}
	for _, o := range l.Objects {
		o.(*canvas.Text).Color = Color(l.ink)
	}
}

// MinSize is that of its texts side by side.
func (l *label) MinSize() (s fyne.Size) {
	l.paint()
	for _, o := range l.Objects {
		m := o.MinSize()
		s.Width, s.Height = s.Width+m.Width, max(s.Height, m.Height)
	}
	return s
}

// centre puts the label in the middle of a rectangle.
func (l *label) centre(p fyne.Position, s fyne.Size) {
	m := l.MinSize()
	l.Resize(m)
	l.Move(p.AddXY(mid(s.Width, m.Width), mid(s.Height, m.Height)))
	x := float32(0)
	for _, o := range l.Objects {
		w := o.MinSize()
		o.Resize(w)
		o.Move(fyne.NewPos(x, mid(m.Height, w.Height)))
		x += w.Width
	}
}

// mid is where something has to begin to stand in the middle of a length, in
// whole units: the toolkit squeezes text that stands between two pixels.
func mid(outer, inner float32) float32 { return float32(math.Floor(float64(outer-inner) / 2)) }
