package display

import (
	"image"
	"slices"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// Limits of one action.
const (
	maxRepeat = 100
	maxHold   = wire.MaxHoldMS * time.Millisecond
	maxPath   = 100  // points of a drag that are gone to
	maxScroll = 1000 // steps
	// checkEvery is how often a long action checks again what it reaches.
	checkEvery = 100 * time.Millisecond
)

// points are where a goes, in its order.
func points(a hands.Action) []image.Point {
	if a.Kind == hands.Drag {
		return a.Path
	}
	if a.At != nil {
		return []image.Point{*a.At}
	}
	return nil
}

// keyboard tells whether a goes to the window that has the keyboard.
func keyboard(a hands.Action) bool {
	return a.Kind == hands.Type || a.Kind == hands.Key || a.Kind == hands.HoldKey
}

// check says what is wrong with an action by itself; it fills in what may be
// left out.
func check(a *hands.Action) error {
	bad := func(format string, args ...any) error { return wire.Errorf(wire.CodeInvalid, format, args...) }
	if a.Button == "" {
		a.Button = "left"
	}
	if _, ok := buttons[a.Button]; !ok {
		return bad("There is no mouse button %q; there are left, middle and right.", a.Button)
	}
	for _, m := range a.Modifiers {
		if _, ok := modifiers[m]; !ok {
			return bad("%q is no modifier key; there are shift, ctrl, alt and super.", m)
		}
	}
	switch a.Kind {
	case hands.Click:
		if a.Count == 0 {
			a.Count = 1
		}
		if a.Count < 1 || a.Count > 3 {
			return bad("A click is done 1 to 3 times, not %d.", a.Count)
		}
	case hands.Move:
		if a.At == nil {
			return bad("Moving the mouse needs a point.")
		}
	case hands.Press, hands.Unpress:
	case hands.Drag:
		if len(a.Path) < 2 {
			return bad("A drag needs two points or more.")
		}
	case hands.Type:
		if len(a.Text) > wire.MaxTyped {
			return bad("%d bytes of text are too many at once; %d are the most.", len(a.Text), wire.MaxTyped)
		}
	case hands.Key:
		if a.Repeat == 0 {
			a.Repeat = 1
		}
		if a.Repeat < 1 || a.Repeat > maxRepeat {
			return bad("A key is repeated 1 to %d times, not %d.", maxRepeat, a.Repeat)
		}
	case hands.HoldKey:
		if a.Hold < 0 || a.Hold > maxHold {
			return bad("A key is held for %d seconds at most.", int(maxHold.Seconds()))
		}
	case hands.Scroll:
		if _, ok := wheel[a.Direction]; !ok {
			return bad("Scrolling goes up, down, left or right.")
		}
		if a.Amount < 0 || a.Amount > maxScroll {
			return bad("Scrolling goes 0 to %d steps, not %d.", maxScroll, a.Amount)
		}
	default:
		return bad("Mouse and keyboard can't do %q.", a.Kind)
	}
	return nil
}

// The numbers of X11, which other systems translate.
var (
	buttons = map[string]int{"left": 1, "middle": 2, "right": 3}
	wheel   = map[string]int{"up": 4, "down": 5, "left": 6, "right": 7}
)

// bounds says that one of a's points is on no screen.
func bounds(a hands.Action, l space.Layout) error {
	for _, p := range points(a) {
		if _, ok := l.At(p); ok {
			continue
		}
		displays := []map[string]any{}
		for _, s := range l.Screens {
			displays = append(displays, map[string]any{"index": s.Index, "origin": []int{s.Device.Min.X, s.Device.Min.Y}, "size": []int{s.Device.Dx(), s.Device.Dy()}})
		}
		e := wire.Errorf(wire.CodeBounds, "(%d, %d) is on no screen of this computer. Nothing was done.", p.X, p.Y)
		return e.With(map[string]any{"requested_coordinate": []int{p.X, p.Y}, "displays": displays})
	}
	return nil
}

// aimed says that what is under a's points is not what was aimed at, or that it
// is a window of this program. targets are its windows that the screen test may
// click.
func aimed(a hands.Action, at []image.Point, s space.Stack, targets map[uint64]bool) error {
	own := func(p image.Point) bool {
		return slices.ContainsFunc(s.Reached(p), func(w space.Window) bool { return w.Ours && !(a.Test && targets[w.ID]) })
	}
	for _, aim := range a.Aim {
		if own(aim.Point) {
			return errOwn()
		}
		now, ok := s.Under(aim.Point)
		if aim.Window == nil && ok || aim.Window != nil && !(ok && now.Same(*aim.Window)) {
			return wire.Errorf(wire.CodePictureStale, "Another window is at (%d, %d) now than in the picture. Take a fresh picture.", aim.Point.X, aim.Point.Y)
		}
	}
	for _, p := range at {
		if own(p) {
			return errOwn()
		}
	}
	return nil
}

// keysTo says that a's keys would go to a window of this program, or to another
// than they have to.
func keysTo(a hands.Action, s space.Stack) error {
	i := slices.IndexFunc(s, func(w space.Window) bool { return w.Focused })
	switch {
	case i >= 0 && s[i].Ours:
		return errOwn()
	case a.Keyboard != nil && (i < 0 || !s[i].Same(*a.Keyboard)):
		return errElsewhere()
	}
	return nil
}

func errElsewhere() error {
	return wire.Errorf(wire.CodePictureStale, "Another window has the keyboard now than the one that the person allowed it for, so it goes no further. Take a fresh picture, and ask again.")
}

func errOwn() error {
	return wire.Errorf(wire.CodeOwnWindow, "That would have reached a window of Local PC Executor itself, which only the person at this computer can use.")
}

func errPerson() error {
	return wire.Errorf(wire.CodePerson, "The person at this computer is using the mouse or the keyboard. Take a fresh picture before you go on.")
}

func errLayout() error {
	return wire.Errorf(wire.CodePictureStale, "The screens of this computer have changed since the picture. Take a fresh picture.")
}

// thin leaves out points of a long path evenly, never the first or the last,
// and puts some into one that goes far in one step: many programs take a drag
// for one only when the mouse comes along the way.
func thin(path []image.Point) []image.Point {
	if len(path) > maxPath {
		out := make([]image.Point, 0, maxPath)
		for i := range maxPath {
			out = append(out, path[i*(len(path)-1)/(maxPath-1)])
		}
		return out
	}
	if len(path) > 10 {
		return path
	}
	out := []image.Point{path[0]}
	for _, to := range path[1:] {
		from := out[len(out)-1]
		for i := 1; i < 8; i++ {
			p := from.Add(to.Sub(from).Mul(i).Div(8))
			if p != out[len(out)-1] && p != to {
				out = append(out, p)
			}
		}
		out = append(out, to)
	}
	return out
}
