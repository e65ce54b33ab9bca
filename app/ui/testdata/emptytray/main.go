// Command emptytray is a Fyne program with a tray icon and nothing else: what
// "make bench" holds the idle program against.
package main

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/driver/desktop"

	"localpc/assets"
)

func main() {
	a := app.NewWithID("localpc.emptytray")
	d := a.(desktop.App)
	d.SetSystemTrayIcon(fyne.NewStaticResource("tray.png", assets.Tray("online")))
	d.SetSystemTrayMenu(fyne.NewMenu("Empty", fyne.NewMenuItem("Nothing", func() {})))
	a.Run()
}
