package kit

import (
	"image/color"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/test"
)

// Every character of exact text is seen: at some sizes the bundled font's
// underscore used to be cut off, and E2B_API_KEY read "E2B API KEY".
func TestUnderscoresAreSeen(t *testing.T) {
	app := test.NewApp()
	defer app.Quit()
	app.Settings().SetTheme(&Theme{})
	for _, scale := range []float32{1, 1.25, 1.5, 2} {
		for _, size := range []float32{Small, Body, Lead} {
			ground := canvas.NewRectangle(color.White)
			ground.Resize(fyne.NewSize(100, 60))
			text := canvas.NewText("____", color.Black)
			text.TextSize, text.TextStyle.Monospace = size, true
			text.Resize(text.MinSize())
			text.Move(fyne.NewPos(20, 20))
			w := test.NewWindow(container.NewWithoutLayout(ground, text))
			w.SetPadded(false)
			w.Resize(fyne.NewSize(100, 60))
			w.Canvas().(test.WindowlessCanvas).SetScale(scale)
			img := w.Canvas().Capture()
			dark := 0
			for y := int(20 * scale); y < int(58*scale); y++ {
				for x := int(20 * scale); x < int(60*scale); x++ {
					if r, _, _, _ := img.At(x, y).RGBA(); r < 0xa000 {
						dark++
					}
				}
			}
			if dark < int(20*scale) {
				t.Errorf("at size %v and scale %v four underscores have %d dark pixels", size, scale, dark)
			}
			w.Close()
		}
	}
}
