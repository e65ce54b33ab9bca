package kit

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/test"
)

// The wheel scrolls a page wherever the pointer is, over a line to type in
// too.
func TestTheWheelOverAField(t *testing.T) {
	test.NewApp().Settings().SetTheme(&Theme{Force: "light"})
	f := NewField("type here")
	tall := canvas.NewRectangle(nil)
	tall.SetMinSize(fyne.NewSize(100, 2000))
	page := container.NewVScroll(container.NewVBox(f, tall))
	w := test.NewTempWindow(t, page)
	w.Resize(fyne.NewSize(300, 200))
	over := fyne.CurrentApp().Driver().AbsolutePositionForObject(f).AddXY(20, 10)
	test.Scroll(w.Canvas(), over, 0, -50)
	if page.Offset.Y != 50 {
		t.Errorf("the page is at %v, want 50", page.Offset.Y)
	}
}
