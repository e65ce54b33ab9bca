package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// reveal scrolls what is around o, which has just got the keyboard, until o is
// in sight: someone who goes on by Tab sees where they are.
func reveal(o fyne.CanvasObject) {
	driver := fyne.CurrentApp().Driver()
	c := driver.CanvasForObject(o)
	if c == nil || c.Content() == nil {
		return
	}
	const margin = 8 // the ring, and some air
	for _, s := range scrollsTo(c.Content(), o, nil) {
		room := s.Size().Height
		top := driver.AbsolutePositionForObject(o).Y - driver.AbsolutePositionForObject(s).Y - margin
		bottom := top + o.Size().Height + 2*margin
		limit := max(0, s.Content.MinSize().Height-room)
		y := s.Offset.Y
		switch {
		case room <= 0:
			continue // not laid out yet
		case top < 0 || bottom-top > room:
			y += top
		case bottom > room:
			y += bottom - room
		}
		if y = min(max(0, y), limit); y != s.Offset.Y {
			s.ScrollToOffset(fyne.NewPos(0, y))
		}
	}
}

// scrollsTo are the scrolling areas around target below o, the outermost first;
// nil where target is not below o, or in none.
func scrollsTo(o, target fyne.CanvasObject, around []*container.Scroll) []*container.Scroll {
	if o == target {
		return around
	}
	var below []fyne.CanvasObject
	switch v := o.(type) {
	case *fyne.Container:
		below = v.Objects
	case *container.Scroll:
		below, around = []fyne.CanvasObject{v.Content}, append(around, v)
	case *Ground:
		below = []fyne.CanvasObject{v.inner}
	case *grow:
		below = []fyne.CanvasObject{v.inner}
	case *Options:
		for _, r := range v.rows {
			below = append(below, r)
		}
	case *Exact:
		below = []fyne.CanvasObject{v.rows}
	}
	for _, b := range below {
		if found := scrollsTo(b, target, around); found != nil {
			return found
		}
	}
	return nil
}
