package ui

import (
	"log/slog"

	"fyne.io/fyne/v2"
	"github.com/go-gl/glfw/v3.3/glfw"
)

// Guard has pass asked about every press of a mouse button or a key in a window
// before anything in it hears of that: whether the person's own hand made it, so
// far as can be told. A press that does not pass is not heard of, nor is its
// end. It has to be called when the window is there.
func (x *x11) Guard(w fyne.Window, pass func(Press) bool) {
	if x.gate == nil || x.guarded[w] {
		return
	}
	made, ok := w.(interface{ RunWithContext(func()) })
	if !ok {
		slog.Warn("A window can't be guarded against clicks of programs")
		return
	}
	own := id(w)
	made.RunWithContext(func() {
		win := glfw.GetCurrentContext()
		if win == nil {
			return
		}
		x.guarded[w] = true
		x.guardButtons(win, func() bool { return pass(x.gate.press(0, own)) })
		x.guardKeys(win, func(code int) bool { return pass(x.gate.press(code, own)) })
	})
}

func (x *x11) guardButtons(win *glfw.Window, pass func() bool) {
	kept := map[glfw.MouseButton]bool{} // whose press did not pass
	var next glfw.MouseButtonCallback
	next = win.SetMouseButtonCallback(func(w *glfw.Window, b glfw.MouseButton, a glfw.Action, m glfw.ModifierKey) {
		if a == glfw.Press {
			kept[b] = !pass()
		}
		if !kept[b] {
			next(w, b, a, m)
		}
	})
}

func (x *x11) guardKeys(win *glfw.Window, pass func(code int) bool) {
	kept := map[int]bool{} // whose press did not pass
	last := 0              // the key that what is typed comes from
	var next glfw.KeyCallback
	next = win.SetKeyCallback(func(w *glfw.Window, k glfw.Key, code int, a glfw.Action, m glfw.ModifierKey) {
		if a == glfw.Press {
			kept[code], last = !pass(code), code
		}
		if !kept[code] {
			next(w, k, code, a, m)
		}
	})
	var typed glfw.CharCallback
	typed = win.SetCharCallback(func(w *glfw.Window, r rune) {
		if !kept[last] {
			typed(w, r)
		}
	})
}

// Close ends what watches the display.
func (x *x11) Close() error {
	if x.gate != nil {
		x.gate.close()
	}
	x.conn.Close()
	x.reading.Wait()
	return nil
}
