package tray

import (
	"encoding/binary"
	"strings"

	"fyne.io/systray"

	"localpc/assets"
)

// setIcon wraps the picture in the container that Windows wants: one entry of
// 48 by 48 pixels and 32 bits, as PNG.
func setIcon(state string) {
	png := assets.Tray(state)
	head := []byte{0, 0, 1, 0, 1, 0, 48, 48, 0, 0, 1, 0, 32, 0}
	head = binary.LittleEndian.AppendUint32(head, uint32(len(png)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(head)+4))
	systray.SetIcon(append(head, png...))
}

// mnemonicFree keeps a label from having a letter underlined.
func mnemonicFree(label string) string { return strings.ReplaceAll(label, "&", "&&") }
