package kit

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"
)

// scroller scrolls up and down. What the wheel has left over at either end goes
// to the scrolling area around it, so that a box in a long card does not hold
// the card still.
type scroller struct{ container.Scroll }

func newScroller(content fyne.CanvasObject) *scroller {
	s := &scroller{}
	s.Direction, s.Content = container.ScrollVerticalOnly, content
	s.ExtendBaseWidget(s)
	return s
}

// Scrolled is Fyne's.
func (s *scroller) Scrolled(e *fyne.ScrollEvent) {
	before := s.Offset
	s.Scroll.Scrolled(e)
	if s.Offset != before {
		return
	}
	passOn(s, e)
}

// passOn gives the wheel's move to the scrolling area around o.
func passOn(o fyne.CanvasObject, e *fyne.ScrollEvent) {
	c := fyne.CurrentApp().Driver().CanvasForObject(o)
	if c == nil || c.Content() == nil {
		return
	}
	if around := scrollsTo(c.Content(), o, nil); len(around) > 0 {
		around[len(around)-1].Scrolled(e)
	}
}

// wheel lies over an object that would keep the wheel to itself, and gives it to
// what is around. It hears of nothing else.
type wheel struct {
	widget.BaseWidget
	over fyne.CanvasObject
}

func newWheel(over fyne.CanvasObject) *wheel {
	w := &wheel{over: over}
	w.ExtendBaseWidget(w)
	return w
}

// CreateRenderer is Fyne's.
func (w *wheel) CreateRenderer() fyne.WidgetRenderer {
	return widget.NewSimpleRenderer(canvas.NewRectangle(color.Transparent))
}

// Scrolled is Fyne's.
func (w *wheel) Scrolled(e *fyne.ScrollEvent) { passOn(w.over, e) }

// Reveal scrolls what is around o until o is in sight, or its beginning where
// it is too high.
func Reveal(o fyne.CanvasObject) { reveal(o) }
