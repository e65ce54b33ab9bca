package ui

import (
	"log/slog"
	"os"
	"sync"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver"
	"github.com/go-gl/glfw/v3.3/glfw"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// x11 is the Screen under an X server, over a connection of its own.
type x11 struct {
	conn  *xgb.Conn
	root  *xproto.ScreenInfo
	atoms map[string]xproto.Atom
	// gate is nil where the server can't tell who presses.
	gate    *gate
	guarded map[fyne.Window]bool
	randr   bool           // the server knows of several screens
	wayland bool           // the server is one for a Wayland desktop's older programs
	reading sync.WaitGroup // what takes the server's events
}

// errorTable fills xgb's table of errors once, before there is a connection that
// reads it: an extension's own Init would write it, and that of events, while
// connections read.
var errorTable = sync.OnceFunc(func() {
	xgb.Logger.SetOutput(quiet{})
	for n := 128; n < 256; n++ {
		if xgb.NewErrorFuncs[n] == nil {
			xgb.NewErrorFuncs[n] = func(b []byte) xgb.Error { return extensionError(b) }
		}
	}
})

// extensionError is an error of an extension.
type extensionError []byte

func (e extensionError) SequenceId() uint16 { return xgb.Get16(e[2:]) }
func (e extensionError) BadId() uint32      { return xgb.Get32(e[4:]) }
func (e extensionError) Error() string      { return "the X server refused a request of an extension" }

// newScreen is nil where there is no X server.
func newScreen() Screen {
	errorTable()
	conn, err := xgb.NewConn()
	if err != nil {
		slog.Warn("The X server can't be asked for more than the toolkit asks", "err", err)
		return nil
	}
	x := &x11{conn: conn, root: xproto.Setup(conn).DefaultScreen(conn), atoms: map[string]xproto.Atom{}, guarded: map[fyne.Window]bool{},
		wayland: os.Getenv("WAYLAND_DISPLAY") != ""}
	x.reading.Go(x.drop)
	x.randr = x.extension("RANDR")
	if x.gate = newGate(conn, x.extension("SHAPE")); x.gate == nil {
		slog.Warn("The X server can't tell the person's hand from a program's: clicks of programs count on cards")
	}
	return x
}

// drop takes what the server tells everybody, and the errors of requests that
// nobody waits for, until the connection ends: xgb would stand still once enough
// of them wait.
func (x *x11) drop() {
	for {
		if e, err := x.conn.WaitForEvent(); e == nil && err == nil {
			return
		}
	}
}

// extension makes an extension usable.
func (x *x11) extension(name string) bool {
	r, err := xproto.QueryExtension(x.conn, uint16(len(name)), name).Reply()
	if err != nil || !r.Present {
		return false
	}
	x.conn.ExtLock.Lock()
	x.conn.Extensions[name] = r.MajorOpcode
	x.conn.ExtLock.Unlock()
	return true
}

type quiet struct{}

func (quiet) Write(b []byte) (int, error) { return len(b), nil }

func (x *x11) atom(name string) xproto.Atom {
	if a, ok := x.atoms[name]; ok {
		return a
	}
	r, err := xproto.InternAtom(x.conn, false, uint16(len(name)), name).Reply()
	if err != nil {
		return 0
	}
	x.atoms[name] = r.Atom
	return r.Atom
}

// id is the X window of w, 0 before it was made.
func id(w fyne.Window) xproto.Window {
	var out xproto.Window
	if n, ok := w.(driver.NativeWindow); ok {
		n.RunNative(func(c any) {
			if x, ok := c.(driver.X11WindowContext); ok {
				out = xproto.Window(x.WindowHandle)
			}
		})
	}
	return out
}

// ShowCalm makes the window with hints of its own when it is shown for the
// first time: the toolkit would ask for the focus otherwise.
func (x *x11) ShowCalm(w fyne.Window) {
	if id(w) == 0 {
		glfw.WindowHint(glfw.FocusOnShow, glfw.False)
		glfw.WindowHint(glfw.Floating, glfw.True)
		defer glfw.WindowHint(glfw.FocusOnShow, glfw.True)
		defer glfw.WindowHint(glfw.Floating, glfw.False)
	}
	x.Calm(w)
	w.Show()
}

// Calm sets what a window manager reads when the window is mapped: a user time
// of 0 (no focus), above the others, on every desktop. Managers drop the state
// when a window is unmapped, so it is set each time.
func (x *x11) Calm(w fyne.Window) {
	win := id(w)
	if win == 0 {
		return
	}
	x.set(win, "_NET_WM_USER_TIME", "CARDINAL", 0)
	x.set(win, "_NET_WM_STATE", "ATOM", uint32(x.atom("_NET_WM_STATE_ABOVE")), uint32(x.atom("_NET_WM_STATE_STICKY")))
}

// set gives a window a property.
func (x *x11) set(win xproto.Window, prop, kind string, values ...uint32) {
	data := make([]byte, 4*len(values))
	for i, v := range values {
		xgb.Put32(data[4*i:], v)
	}
	// Checked: the server has it before the toolkit maps the window.
	err := xproto.ChangePropertyChecked(x.conn, xproto.PropModeReplace, win, x.atom(prop), x.atom(kind), 32, uint32(len(values)), data).Check()
	if err != nil {
		slog.Warn("A property of a window could not be set", "property", prop, "err", err)
	}
}

// Visible asks the server whether the window and all it is in are mapped.
func (x *x11) Visible(w fyne.Window) bool {
	win := id(w)
	if win == 0 {
		return false
	}
	a, err := xproto.GetWindowAttributes(x.conn, win).Reply()
	return err == nil && a.MapState == xproto.MapStateViewable
}

// Room leaves some of the screen for a panel and a title bar.
func (x *x11) Room(w fyne.Window) fyne.Size {
	scale := w.Canvas().Scale()
	if scale <= 0 {
		scale = 1
	}
	return fyne.NewSize(float32(x.root.WidthInPixels)/scale-16, float32(x.root.HeightInPixels)/scale-72)
}
