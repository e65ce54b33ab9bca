package ui

import (
	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
)

type activityWindow struct {
	ui  *UI
	win fyne.Window
}

func newActivityWindow(u *UI) *activityWindow {
	return &activityWindow{ui: u, win: u.window("Activity", fyne.NewSize(1080, 620))}
}
func (p *activityWindow) draw()                    {}
func (p *activityWindow) told(t desklink.Told)     {}
func (p *activityWindow) detail(d snapshot.Detail) {}
func (p *activityWindow) found(f desklink.Found)   {}
