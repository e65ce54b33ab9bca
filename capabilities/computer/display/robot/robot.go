//go:build cgo

package robot

import (
	"fmt"

	"github.com/go-vgo/robotgo"
)

func init() {
	// The display has its own pace.
	robotgo.MouseSleep, robotgo.KeySleep = 0, 0
}

// Use names the X11 display that it acts on; on other systems there is one.
func Use(display string) error { return robotgo.SetXDisplayName(display) }

// Close ends the connection to the X11 display; without it, the end of the
// display is that of this process.
func Close() { robotgo.CloseMainDisplay() }

// Move puts the mouse pointer at x, y.
func Move(x, y int) { robotgo.Move(x, y) }

// At is where the mouse pointer is.
func At() (x, y int) { return robotgo.Location() }

// Button presses or lets go of "left", "middle" or "right".
func Button(name string, down bool) error {
	if name == "middle" {
		name = "center"
	}
	return robotgo.Toggle(name, upOrDown(down))
}

// Scroll turns the wheel by steps, to the right and up where positive.
func Scroll(right, up int) { robotgo.Scroll(right, up, 0) }

// Key presses or lets go of the key with an X keysym.
func Key(sym uint32, down bool) error {
	name, ok := Name(sym)
	if !ok {
		return fmt.Errorf("there is no key for the keysym %#x", sym)
	}
	return robotgo.KeyToggle(name, upOrDown(down))
}

func upOrDown(down bool) string {
	if down {
		return "down"
	}
	return "up"
}
