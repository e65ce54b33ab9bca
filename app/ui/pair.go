package ui

import (
	"fyne.io/fyne/v2"

	"localpc/app/desklink"
)

type pairWindow struct {
	ui  *UI
	win fyne.Window
}

func newPairWindow(u *UI) *pairWindow {
	return &pairWindow{ui: u, win: u.window("Pair this computer", fyne.NewSize(520, 420))}
}
func (p *pairWindow) opened()              {}
func (p *pairWindow) draw()                {}
func (p *pairWindow) told(t desklink.Told) {}
