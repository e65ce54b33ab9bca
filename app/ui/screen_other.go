//go:build !linux

package ui

import (
	"fyne.io/fyne/v2"
	"github.com/go-gl/glfw/v3.3/glfw"
)

// glfwScreen is the Screen where there is no X server: as far as the toolkit's
// own window library goes.
type glfwScreen struct{}

func newScreen() Screen { return glfwScreen{} }

// made runs f with the window that the toolkit has made, if it has.
func made(w fyne.Window, f func(*glfw.Window)) {
	if c, ok := w.(interface{ RunWithContext(func()) }); ok {
		c.RunWithContext(func() {
			if win := glfw.GetCurrentContext(); win != nil {
				f(win)
			}
		})
	}
}

// ShowCalm makes the window, the first time, above the others and without the
// wish for the keyboard.
func (s glfwScreen) ShowCalm(w fyne.Window) {
	glfw.WindowHint(glfw.FocusOnShow, glfw.False)
	glfw.WindowHint(glfw.Floating, glfw.True)
	w.Show()
	glfw.WindowHint(glfw.FocusOnShow, glfw.True)
	glfw.WindowHint(glfw.Floating, glfw.False)
}

// Calm has nothing to do: ShowCalm's hints stay with the window.
func (glfwScreen) Calm(fyne.Window) {}

// Visible is what the toolkit believes.
func (glfwScreen) Visible(w fyne.Window) (on bool) {
	made(w, func(win *glfw.Window) { on = win.GetAttrib(glfw.Visible) == glfw.True })
	return on
}

// Room is the first screen without its panels and a title bar.
func (glfwScreen) Room(w fyne.Window) fyne.Size {
	scale := w.Canvas().Scale()
	if scale <= 0 {
		scale = 1
	}
	m := glfw.GetPrimaryMonitor()
	if m == nil {
		return fyne.NewSize(1024, 700)
	}
	_, _, width, height := m.GetWorkarea()
	return fyne.NewSize(float32(width)/scale-16, float32(height)/scale-48)
}

// ShowBare is ShowCalm: the strip has no frame as it is.
func (s glfwScreen) ShowBare(w fyne.Window) { s.ShowCalm(w) }

// Bare has nothing to do.
func (glfwScreen) Bare(fyne.Window) {}

// PlaceTop is about the first screen.
func (glfwScreen) PlaceTop(w fyne.Window, size fyne.Size, _ bool) {
	m := glfw.GetPrimaryMonitor()
	if m == nil {
		return
	}
	x, y, width, _ := m.GetWorkarea()
	scale := w.Canvas().Scale()
	made(w, func(win *glfw.Window) {
		win.SetPos(x+max(0, (width-int(size.Width*scale))/2), y+int(6*scale))
	})
}

// Raise has nothing to do: the window floats.
func (glfwScreen) Raise(fyne.Window) {}

// OnScreen is left to the system.
func (glfwScreen) OnScreen(fyne.Window) bool { return true }

// Guard has nothing to do: the system does not tell who presses.
func (glfwScreen) Guard(fyne.Window, func(Press) bool) {}

// Drag moves the window after the pointer.
func (glfwScreen) Drag(w fyne.Window, at fyne.Position) {
	scale := w.Canvas().Scale()
	made(w, func(win *glfw.Window) {
		x, y := win.GetPos()
		px, py := win.GetCursorPos()
		win.SetPos(x+int(px)-int(at.X*scale), y+int(py)-int(at.Y*scale))
	})
}
