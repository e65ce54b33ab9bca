package tray

import (
	"fyne.io/systray"

	"localpc/app/snapshot"
	"localpc/assets"
)

// setIcon lets the menu bar choose the colour, except where the colour calls
// the person.
func setIcon(state string) {
	icon := assets.Tray(state)
	if state == string(snapshot.NeedsYou) || state == string(snapshot.SignIn) {
		systray.SetIcon(icon)
		return
	}
	systray.SetTemplateIcon(icon, icon)
}

// mnemonicFree changes nothing: menus there have no underlined letters.
func mnemonicFree(label string) string { return label }
