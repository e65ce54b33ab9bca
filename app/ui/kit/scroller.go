package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
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
	c := fyne.CurrentApp().Driver().CanvasForObject(s)
	if c == nil || c.Content() == nil {
		return
	}
	if around := scrollsTo(c.Content(), s, nil); len(around) > 0 {
		around[len(around)-1].Scrolled(e)
	}
}

// Reveal scrolls what is around o until o is in sight, or its beginning where
// it is too high.
func Reveal(o fyne.CanvasObject) { reveal(o) }
