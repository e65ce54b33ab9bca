package kit

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
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
	switch v := o.(type) {
	case *container.Scroll:
		around = append(around, v)
	case *scroller:
		around = append(around, &v.Scroll)
	}
	for _, b := range below(o) {
		if found := scrollsTo(b, target, around); found != nil {
			return found
		}
	}
	return nil
}

// below are the objects that o holds and a control may be among.
func below(o fyne.CanvasObject) []fyne.CanvasObject {
	switch v := o.(type) {
	case *fyne.Container:
		return v.Objects
	case *container.Scroll:
		return []fyne.CanvasObject{v.Content}
	case *scroller:
		return []fyne.CanvasObject{v.Content}
	case *numbered:
		return []fyne.CanvasObject{v.inner}
	case *Ground:
		return []fyne.CanvasObject{v.inner}
	case *grow:
		return []fyne.CanvasObject{v.inner}
	case *Options:
		var rows []fyne.CanvasObject
		for _, r := range v.rows {
			rows = append(rows, r)
		}
		return rows
	case *Exact:
		return []fyne.CanvasObject{v.rows}
	case *Rows:
		return []fyne.CanvasObject{v.scroll}
	}
	return nil
}

// Holds says whether target is in sight somewhere below o.
func Holds(o, target fyne.CanvasObject) bool {
	if !o.Visible() {
		return false
	}
	if o == target {
		return true
	}
	for _, b := range below(o) {
		if b != nil && Holds(b, target) {
			return true
		}
	}
	return false
}

// Unpoint takes the mark of the mouse off the controls below o. The toolkit
// does not tell them that the mouse has gone when their window is hidden, or
// another one opens between.
func Unpoint(o fyne.CanvasObject) {
	if h, ok := o.(desktop.Hoverable); ok {
		h.MouseOut()
	}
	for _, b := range below(o) {
		if b != nil {
			Unpoint(b)
		}
	}
}
