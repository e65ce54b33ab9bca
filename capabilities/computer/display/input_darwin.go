package display

import (
	"image"
	"unicode/utf16"
)

// quartzOwn is what robotgo does not do right on a Mac: double clicks are one
// event with a count there, scrolling is in lines, and text is events with
// characters.
type quartzOwn struct {
	*quartz
	down string // the button that is held: moving is dragging then
}

const (
	hidTap     = 0
	lineUnits  = 1
	clickState = 1 // kCGMouseEventClickState
)

// The kinds of mouse events: down, up and dragged, and the button's number.
var quartzButtons = map[string]struct{ down, up, drag, number uint32 }{
	"left": {1, 2, 6, 0}, "right": {3, 4, 7, 1}, "middle": {25, 26, 27, 2},
}

const mouseMoved = 5

func (q *quartzOwn) send(event uintptr) {
	if event != 0 {
		q.post(hidTap, event)
		q.release(event)
	}
}

func (q *quartzOwn) place(p image.Point) error {
	kind, number := uint32(mouseMoved), uint32(0)
	if b, ok := quartzButtons[q.down]; ok {
		kind, number = b.drag, b.number
	}
	q.send(q.makeMouse(0, kind, cgPoint{float64(p.X), float64(p.Y)}, number))
	return nil
}

func (q *quartzOwn) at() (image.Point, error) {
	event := q.makeEvent(0)
	defer q.release(event)
	p := q.eventPlace(event)
	return image.Pt(int(p.X), int(p.Y)), nil
}

func (q *quartzOwn) wheel(direction string, steps int) error {
	up, left := int32(0), int32(0)
	switch direction {
	case "up":
		up = int32(steps)
	case "down":
		up = -int32(steps)
	case "left":
		left = int32(steps)
	case "right":
		left = -int32(steps)
	}
	q.send(q.makeScroll(0, lineUnits, 2, up, left, 0))
	return nil
}

func (q *quartzOwn) char(r rune) error {
	units := utf16.AppendRune(nil, r)
	for _, down := range []bool{true, false} {
		event := q.makeKey(0, 0, down)
		if event == 0 {
			continue
		}
		q.setText(event, len(units), &units[0])
		q.send(event)
	}
	return nil
}

func (q *quartzOwn) clicked(name string, down bool, nth int) (bool, error) {
	p, err := q.at()
	if err != nil {
		return true, err
	}
	b := quartzButtons[name]
	kind := b.up
	q.down = ""
	if down {
		kind, q.down = b.down, name
	}
	event := q.makeMouse(0, kind, cgPoint{float64(p.X), float64(p.Y)}, b.number)
	if event != 0 {
		q.setField(event, clickState, int64(nth))
		q.send(event)
	}
	return true, nil
}
