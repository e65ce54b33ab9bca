package computer

import (
	"fmt"
	"image"
	"strings"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// words say what an action does.
type words struct {
	title string // "Click at 120, 300"
	does  string // "click at 120, 300": after "wants to"
	exact string // whole
	done  string // "clicked"
}

func wordsOf(l space.Layout, p *wire.InputAction, a hands.Action) words {
	at := " where the pointer is"
	if a.At != nil {
		at = " at " + place(l, *a.At)
	}
	keys := ""
	if len(p.Modifiers) > 0 {
		keys = " with " + strings.Join(p.Modifiers, "+") + " held"
	}
	var does string
	switch a.Kind {
	case hands.Click:
		verb := map[int]string{1: "click", 2: "double-click", 3: "triple-click"}[a.Count]
		if a.Button != "left" {
			verb += " with the " + a.Button + " button"
		}
		does = verb + at + keys
	case hands.Move:
		does = "move the mouse"
		if a.At != nil {
			does += " to " + place(l, *a.At)
		}
	case hands.Press:
		does = "hold the " + a.Button + " button down" + at
	case hands.Unpress:
		does = "release the " + a.Button + " button" + at
	case hands.Drag:
		does = "drag from " + place(l, a.Path[0]) + " to " + place(l, a.Path[len(a.Path)-1]) + keys
		if n := len(a.Path); n > 2 {
			does += fmt.Sprintf(" over %d points", n)
		}
	case hands.Type:
		does = "type " + consent.Visible(fmt.Sprintf("%q", short(p.Text)), false)
	case hands.Key:
		does = "press " + p.Key
		if a.Repeat > 1 {
			does += fmt.Sprintf(" %d times", a.Repeat)
		}
	case hands.HoldKey:
		does = "hold " + p.Key + " for " + a.Hold.String()
	case hands.Scroll:
		does = fmt.Sprintf("scroll %s by %d", a.Direction, a.Amount) + at + keys
	}
	w := words{title: strings.ToUpper(does[:1]) + does[1:], does: does, exact: does, done: "done"}
	if a.Kind == hands.Type {
		w.exact = "type: " + p.Text
		w.done = counted(len([]rune(p.Text)), "character") + " typed"
	}
	return w
}

// place is a device pixel for a person.
func place(l space.Layout, p image.Point) string {
	s := fmt.Sprintf("%d, %d", p.X, p.Y)
	if sc, ok := l.At(p); ok && len(l.Screens) > 1 {
		s = fmt.Sprintf("%d, %d on screen %s", p.X-sc.Device.Min.X, p.Y-sc.Device.Min.Y, number(sc.Index))
	}
	return s
}

func short(s string) string {
	if cut := clipped(s, 40); cut != s {
		return cut + "…"
	}
	return s
}
