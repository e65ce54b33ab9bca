package ui

import (
	"log/slog"

	"fyne.io/fyne/v2"
	"github.com/go-gl/glfw/v3.3/glfw"
	"github.com/jezek/xgb/randr"
	"github.com/jezek/xgb/xproto"
)

// ShowBare makes the window without the toolkit's wish for the focus.
func (x *x11) ShowBare(w fyne.Window) {
	if id(w) == 0 {
		glfw.WindowHint(glfw.FocusOnShow, glfw.False)
		glfw.WindowHint(glfw.Floating, glfw.True)
		defer glfw.WindowHint(glfw.FocusOnShow, glfw.True)
		defer glfw.WindowHint(glfw.Floating, glfw.False)
	}
	x.Bare(w)
	w.Show()
}

// Bare keeps window managers away from the window before it is mapped: under
// openbox, GNOME and KDE that is what stays above full-screen windows and can
// never be given the keyboard. Those that draw shadows and effects read its type.
// Some Wayland desktops, sway among them, tell nobody of such a window: there it
// is an ordinary one that floats and does not want the keyboard.
func (x *x11) Bare(w fyne.Window) {
	win := id(w)
	if win == 0 {
		return
	}
	if x.wayland {
		x.Calm(w)
		x.set(win, "_NET_WM_WINDOW_TYPE", "ATOM", uint32(x.atom("_NET_WM_WINDOW_TYPE_UTILITY")))
		x.set(win, "WM_HINTS", "WM_HINTS", 3, 0, 1, 0, 0, 0, 0, 0, 0) // input and state: none, normal
		return
	}
	err := xproto.ChangeWindowAttributesChecked(x.conn, win, xproto.CwOverrideRedirect, []uint32{1}).Check()
	if err != nil {
		slog.Warn("The strip can't be kept from the window manager", "err", err)
	}
	x.set(win, "_NET_WM_WINDOW_TYPE", "ATOM", uint32(x.atom("_NET_WM_WINDOW_TYPE_DOCK")))
}

// PlaceTop is about the primary screen, or the first one where none is. On a
// Wayland desktop the person moves windows without the toolkit's doing: there it
// stays where it is.
func (x *x11) PlaceTop(w fyne.Window, size fyne.Size, again bool) {
	win := id(w)
	if win == 0 || again && x.wayland {
		return
	}
	px := func(v float32) int { return int(v*w.Canvas().Scale() + 0.5) }
	left, top, wide := x.primary()
	xproto.ConfigureWindow(x.conn, win, xproto.ConfigWindowX|xproto.ConfigWindowY,
		[]uint32{uint32(int32(left + max(0, (wide-px(size.Width))/2))), uint32(int32(top + px(6)))})
	x.conn.Sync()
}

// primary is where the primary screen begins, and how wide it is.
func (x *x11) primary() (left, top, wide int) {
	left, top, wide = 0, 0, int(x.root.WidthInPixels)
	if !x.randr {
		return
	}
	if m, err := randr.GetMonitors(x.conn, x.root.Root, true).Reply(); err == nil && len(m.Monitors) > 0 {
		at := m.Monitors[0]
		for _, o := range m.Monitors {
			if o.Primary {
				at = o
			}
		}
		return int(at.X), int(at.Y), int(at.Width)
	}
	return
}

// Raise puts it above the others.
func (x *x11) Raise(w fyne.Window) {
	if win := id(w); win != 0 {
		xproto.ConfigureWindow(x.conn, win, xproto.ConfigWindowStackMode, []uint32{xproto.StackModeAbove})
		x.conn.Sync()
	}
}

// OnScreen is about the middle of the window.
func (x *x11) OnScreen(w fyne.Window) bool {
	win := id(w)
	if win == 0 || !x.randr || x.wayland {
		return true
	}
	size, err := xproto.GetGeometry(x.conn, xproto.Drawable(win)).Reply()
	if err != nil {
		return true
	}
	at, err := xproto.TranslateCoordinates(x.conn, win, x.root.Root, int16(size.Width/2), int16(size.Height/2)).Reply()
	if err != nil {
		return true
	}
	all, err := randr.GetMonitors(x.conn, x.root.Root, true).Reply()
	if err != nil || len(all.Monitors) == 0 {
		return true
	}
	for _, m := range all.Monitors {
		dx, dy := int(at.DstX)-int(m.X), int(at.DstY)-int(m.Y)
		if dx >= 0 && dx < int(m.Width) && dy >= 0 && dy < int(m.Height) {
			return true
		}
	}
	return false
}

// Drag moves the window after the pointer.
func (x *x11) Drag(w fyne.Window, at fyne.Position) {
	win, scale := id(w), w.Canvas().Scale()
	dx, dy := int(at.X*scale+0.5), int(at.Y*scale+0.5)
	r, err := xproto.QueryPointer(x.conn, x.root.Root).Reply()
	if win == 0 || err != nil {
		return
	}
	xproto.ConfigureWindow(x.conn, win, xproto.ConfigWindowX|xproto.ConfigWindowY,
		[]uint32{uint32(int32(int(r.RootX) - dx)), uint32(int32(int(r.RootY) - dy))})
	x.conn.Sync()
}
