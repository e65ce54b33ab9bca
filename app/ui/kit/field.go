package kit

import (
	"image/color"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
)

// Field is a line to type in.
type Field struct {
	widget.Entry
	// OnEscape and OnDown hear of keys that a line of text has no use for.
	OnEscape, OnDown func()
	// OnLeave hears that the keyboard has gone elsewhere.
	OnLeave func()
	ring    *box
}

// NewField makes an empty line; hint stands in it while it is empty.
func NewField(hint string) *Field {
	f := &Field{ring: newRing(Radius)}
	f.ExtendBaseWidget(f)
	f.SetPlaceHolder(hint)
	return f
}

// Offer puts a text in that may stay, all of it selected: what is typed takes its
// place.
func (f *Field) Offer(text string) {
	f.SetText(text)
	f.TypedShortcut(&fyne.ShortcutSelectAll{})
}

// Resume puts a text in that was being typed, to be typed on at its end.
func (f *Field) Resume(text string) {
	f.SetText(text)
	f.CursorColumn = len([]rune(text))
}

// FocusGained is Fyne's.
func (f *Field) FocusGained() {
	f.ring.Show()
	f.Entry.FocusGained()
	reveal(f)
}

// FocusLost is Fyne's.
func (f *Field) FocusLost() {
	f.ring.Hide()
	f.Entry.FocusLost()
	if f.OnLeave != nil {
		f.OnLeave()
	}
}

// CreateRenderer is Fyne's.
func (f *Field) CreateRenderer() fyne.WidgetRenderer {
	return &ringed{f.Entry.CreateRenderer(), f.ring, newWheel(f)}
}

// ringed draws a ring around a widget of the toolkit.
type ringed struct {
	fyne.WidgetRenderer
	ring  *box
	wheel *wheel // nil: the widget does not keep the wheel
}

func (r *ringed) Layout(s fyne.Size) {
	r.WidgetRenderer.Layout(s)
	r.ring.around(fyne.Position{}, s)
	if r.wheel != nil {
		r.wheel.Resize(s)
	}
}

func (r *ringed) Refresh() {
	r.ring.paint()
	r.WidgetRenderer.Refresh()
}

func (r *ringed) Objects() []fyne.CanvasObject {
	out := append(slices.Clip(r.WidgetRenderer.Objects()), r.ring.Rectangle)
	if r.wheel != nil {
		out = append(out, r.wheel)
	}
	return out
}

// TypedKey is Fyne's.
func (f *Field) TypedKey(e *fyne.KeyEvent) {
	switch {
	case e.Name == fyne.KeyEscape && f.OnEscape != nil:
		f.OnEscape()
	case e.Name == fyne.KeyDown && f.OnDown != nil:
		f.OnDown()
	default:
		f.Entry.TypedKey(e)
	}
}

// Ask lays a question over what c shows, at most w wide, until hide is called.
func Ask(c fyne.Canvas, w float32, o fyne.CanvasObject) (hide func()) {
	scrim := canvas.NewRectangle(color.NRGBA{A: 0x70})
	over := Layers(scrim, Middle(w, Panel(Win, Line, 24, o)))
	before := c.Focused()
	over.Resize(c.Size())
	c.Overlays().Add(over)
	return func() {
		c.Overlays().Remove(over)
		if before != nil {
			c.Focus(before)
		}
	}
}
