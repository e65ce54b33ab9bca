package ui

import (
	"log/slog"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
)

// What is said where a program clicked or typed.
const (
	robotClicked = "A program tried to click here; use your own mouse."
	robotTyped   = "A program tried to type here; use your own keyboard."
)

// guard has a window hear the person's own hand only, unless they said that
// software moves the mouse for them; say tells them what happened.
func (u *UI) guard(w fyne.Window, say func(line string)) {
	if u.o.Screen == nil {
		return
	}
	u.o.Screen.Guard(w, func(key, mine bool) bool {
		switch {
		case mine || u.remote():
			return true
		case key:
			say(robotTyped)
		default:
			say(robotClicked)
		}
		slog.Info("A press that no hand made was not heard", "key", key)
		return false
	})
}

// remote says that programs may answer for the person.
func (u *UI) remote() bool {
	c := u.snap.Settings.Computer
	return c != nil && c.Remote
}

// refused says in a window that something in it was not heard.
func (u *UI) refused(w fyne.Window, line string) {
	for _, s := range u.windows() {
		if s.window() == w && u.open[w] {
			s.told(desklink.Told{Text: line})
		}
	}
}
