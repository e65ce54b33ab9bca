// Package assets carries the project's own pictures inside the programs, for
// step 7: the tray and the windows draw them. The drawings are the SVG files
// in icons; the PNG files beside them are rendered from those.
package assets

import "embed"

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
