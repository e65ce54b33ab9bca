package ui

import (
	"fyne.io/fyne/v2"

	"localpc/app/desklink"
)

type mainWindow struct {
	ui  *UI
	win fyne.Window
}

func newMainWindow(u *UI) *mainWindow {
	return &mainWindow{ui: u, win: u.window(Name, fyne.NewSize(360, 300))}
}
func (p *mainWindow) draw()                {}
func (p *mainWindow) told(t desklink.Told) {}
