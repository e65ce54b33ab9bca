package space

import (
	"image"
	"slices"
	"strings"
)

// Window is one window as the system lists it.
type Window struct {
	// ID is the system's, which may be used again for another window later:
	// Same compares what else is known.
	ID        uint64          `json:"id"`
	PID       int             `json:"pid"`
	Class     string          `json:"class"` // WM_CLASS, window class, bundle id
	App       string          `json:"app"`   // the program's name
	Title     string          `json:"title"`
	Frame     image.Rectangle `json:"frame"` // with its decorations, device pixels
	Focused   bool            `json:"focused,omitempty"`
	Minimized bool            `json:"minimized,omitempty"`
	Full      bool            `json:"full,omitempty"`
	// Seethrough: what is below may show through it (not opaque, or not a whole
	// rectangle), so that it covers nothing for certain.
	Seethrough bool `json:"seethrough,omitempty"`
	// Clicks is where in the frame a click certainly reaches it and not what is
	// below; nil: everywhere. Only the process that lists the windows knows.
	Clicks []image.Rectangle `json:"-"`
	// Popup: a menu, a tooltip, or the like, that no window manager manages.
	Popup bool `json:"popup,omitempty"`
	// Loose: it may be a dialog of any window of its process; the system does not
	// tell. Only the process that lists the windows knows.
	Loose bool `json:"-"`
	// Owner is the ID of the window that it says it belongs to, as dialogs and
	// menus do; 0: it says none.
	Owner uint64 `json:"owner,omitempty"`
	// Of are the windows that it belongs to, of each nothing but Class, App and
	// Title, and none twice; Belong finds them. What is said about one of them
	// counts for this one too.
	Of []Window `json:"of,omitempty"`
	// Ours: a window of this program.
	Ours bool `json:"ours,omitempty"`
	// Started tells processes of one PID apart: when its process began, in the
	// system's own unit; 0 where unknown.
	Started int64 `json:"started,omitempty"`
}

// Same tells whether two windows, seen at two moments, are one.
func (w Window) Same(o Window) bool {
	return w.ID == o.ID && w.PID == o.PID && w.Class == o.Class && w.Started == o.Started
}

// Stack is every window that is on the screens, the topmost first.
type Stack []Window

// Belong finds for each window of s which of among it belongs to: those that it
// and they name, and where that leads to none, as with most menus and tooltips,
// every window of its process.
func (s Stack) Belong(among Stack) {
	for i := range s {
		last, of, seen := s[i], []Window(nil), []uint64{s[i].ID}
		belongs := func(w Window) {
			known := Window{Class: w.Class, App: w.App, Title: ends(w.Title)}
			if !slices.ContainsFunc(of, func(o Window) bool { return o.Class == known.Class && o.App == known.App && o.Title == known.Title }) {
				of = append(of, known)
			}
		}
		for last.Owner != 0 {
			j := slices.IndexFunc(among, func(w Window) bool { return w.ID == last.Owner })
			if j < 0 || slices.Contains(seen, last.Owner) {
				break
			}
			last = among[j]
			seen = append(seen, last.ID)
			belongs(last)
		}
		if last.PID != 0 && (last.Popup || last.Loose || last.Owner != 0) {
			for _, w := range among {
				if w.PID == last.PID && !w.Popup && !w.Minimized && w.ID != s[i].ID {
					belongs(w)
				}
			}
		}
		s[i].Of = of
	}
}

// ends is a title's beginning, and its end, where browsers say that they are
// private: each of many menus has those of all windows of its program.
func ends(title string) string {
	const most = 512
	if len(title) <= most {
		return title
	}
	return strings.ToValidUTF8(title[:most/2]+"…"+title[len(title)-most/2:], "\uFFFD")
}

// Under is the topmost window that has the device pixel p.
func (s Stack) Under(p image.Point) (Window, bool) {
	for _, w := range s {
		if !w.Minimized && p.In(w.Frame) {
			return w, true
		}
	}
	return Window{}, false
}

// Reached is every window that a click at p may reach, the topmost first: those
// below one that lets clicks through too.
func (s Stack) Reached(p image.Point) Stack {
	var out Stack
	for _, w := range s {
		if w.Minimized || !p.In(w.Frame) {
			continue
		}
		out = append(out, w)
		if w.Clicks == nil || slices.ContainsFunc(w.Clicks, p.In) {
			break
		}
	}
	return out
}

// Visible is what may show of the windows that hide picks, within area: its
// rectangles do not overlap. What an opaque window certainly covers is left out.
func (s Stack) Visible(area image.Rectangle, hide func(Window) bool) []image.Rectangle {
	var out []image.Rectangle
	for i, w := range s {
		if w.Minimized || !hide(w) {
			continue
		}
		shown := []image.Rectangle{w.Frame.Intersect(area)}
		for _, above := range s[:i] {
			if !above.Minimized && (!above.Seethrough || hide(above)) {
				shown = Without(shown, above.Frame)
			}
		}
		for _, r := range shown {
			if !r.Empty() {
				out = append(out, r)
			}
		}
	}
	return slices.Clip(out)
}

// Without cuts r out of rects, which do not overlap; nor do what it returns.
func Without(rects []image.Rectangle, r image.Rectangle) []image.Rectangle {
	var out []image.Rectangle
	for _, a := range rects {
		c := a.Intersect(r)
		if c.Empty() {
			if !a.Empty() {
				out = append(out, a)
			}
			continue
		}
		for _, part := range []image.Rectangle{
			image.Rect(a.Min.X, a.Min.Y, a.Max.X, c.Min.Y),
			image.Rect(a.Min.X, c.Max.Y, a.Max.X, a.Max.Y),
			image.Rect(a.Min.X, c.Min.Y, c.Min.X, c.Max.Y),
			image.Rect(c.Max.X, c.Min.Y, a.Max.X, c.Max.Y),
		} {
			if !part.Empty() {
				out = append(out, part)
			}
		}
	}
	return out
}
