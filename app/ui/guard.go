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
	clickThrough = "Another window lies over this one there, so your click was not heard; move it away first, or answer with the keyboard."
)

// guard has a window hear the person's own hand only, unless they said that
// software moves the mouse for them; say tells them what happened.
func (u *UI) guard(w fyne.Window, say func(line string)) {
	if u.o.Screen == nil {
		return
	}
	u.o.Screen.Guard(w, func(p Press) bool {
		switch {
		case p.Mine && !p.Through || u.remote():
			return true
		case p.Mine:
			say(clickThrough)
		case p.Key:
			say(robotTyped)
		default:
			say(robotClicked)
		}
		slog.Info("A press that no hand made, or that nobody could see where it goes, was not heard", "key", p.Key, "through", p.Through)
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
