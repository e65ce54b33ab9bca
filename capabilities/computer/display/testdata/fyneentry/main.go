// Command fyneentry is an independent program that takes text: what its field
// has is written to the file named first, whole, at every change.
package main

import (
	"os"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/widget"
)

func main() {
	a := app.NewWithID("localpc.test.entry")
	w := a.NewWindow("fyne entry")
	e := widget.NewMultiLineEntry()
	e.OnChanged = func(s string) {
		if os.WriteFile(os.Args[1]+".new", []byte(s), 0o600) == nil {
			os.Rename(os.Args[1]+".new", os.Args[1])
		}
	}
	w.SetContent(e)
	w.Resize(fyne.NewSize(500, 300))
	w.Canvas().Focus(e)
	w.ShowAndRun()
}
