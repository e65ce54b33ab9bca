// Package assets carries the project's own pictures and pages inside the
// programs: for step 7, where the tray and the windows draw them, and for step
// 1, the hub's pages. The drawings are the SVG files in icons; the PNG files
// beside them are rendered from those.
package assets

import (
	"embed"
	"io/fs"
)

//go:generate sh icons/render.sh

//go:embed icons/*.png
var icons embed.FS

// Tray is the tray icon for a state of the machine, named as snapshot.State
// is: "offline", "online", "working", "needs-you", "paused", "sign-in". It is
// a PNG of 48 by 48 pixels that reads on dark and on light panels; an unknown
// state has the icon of "offline".
func Tray(state string) []byte {
	if b, err := icons.ReadFile("icons/tray-" + state + ".png"); err == nil {
		return b
	}
	b, _ := icons.ReadFile("icons/tray-offline.png")
	return b
}

// App is the program's icon, a PNG of 512 by 512 pixels.
func App() []byte {
	b, _ := icons.ReadFile("icons/app.png")
	return b
}

//go:embed web
var web embed.FS

// Web is what the hub's pages are made of: templates (*.html), style.css and
// app.js.
func Web() fs.FS {
	sub, err := fs.Sub(web, "web")
	if err != nil {
		panic("assets: " + err.Error())
	}
	return sub
}
