package tray

import (
	"strings"

	"fyne.io/systray"

	"localpc/assets"
)

func setIcon(state string) { systray.SetIcon(assets.Tray(state)) }

// mnemonicFree keeps a label from having a letter underlined.
func mnemonicFree(label string) string { return strings.ReplaceAll(label, "_", "__") }
