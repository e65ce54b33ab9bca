package main

import (
	"context"
	"fmt"
	"strings"

	"localpc/app/snapshot"
	"localpc/capabilities/computer/hands"
)

// atDisplay are the lines about screen, mouse and keyboard: what works on this
// display, and why what does not, doesn't.
func (t selfTest) atDisplay(ctx context.Context) []snapshot.Check {
	if t.hands == nil {
		return nil
	}
	a, err := t.hands.Abilities(ctx)
	if err != nil {
		return []snapshot.Check{bad("pictures", err.Error(), "")}
	}
	line := func(name, ability string, works bool, text string) snapshot.Check {
		if works {
			return good(name, text)
		}
		if why := a.Why[ability]; why != "" {
			return bad(name, why, "")
		}
		return bad(name, "does not work on this display", "")
	}
	list := []snapshot.Check{
		line("pictures", hands.AbilityPictures, a.Pictures, "the screen can be seen"+t.screens(ctx, a)),
		line("input", hands.AbilityInput, a.Input, "mouse and keyboard can be used"),
		line("windows", hands.AbilityWindows, a.Windows, "windows are told apart, so those on the hide list are blacked out"),
		line("clipboard", hands.AbilityClipboard, a.Clipboard, "what was copied can be read and written"),
		line("your hands", hands.AbilityPerson, a.Person, "your own mouse and keyboard pause a program at once"),
		line("frame", hands.AbilityFrame, a.Frame, "a coloured frame on each screen shows that a program is in control"),
	}
	return append(list, t.stopKey(a))
}

// screens are the screens in a few words.
func (t selfTest) screens(ctx context.Context, a hands.Abilities) string {
	if !a.Pictures {
		return ""
	}
	l, err := t.hands.Layout(ctx)
	if err != nil {
		return ""
	}
	var words []string
	for _, s := range l.Screens {
		words = append(words, fmt.Sprintf("%d × %d", s.Device.Dx(), s.Device.Dy()))
	}
	return ": " + strings.Join(words, ", ")
}

// stopKey is what the program that runs has bound, or tried to.
func (t selfTest) stopKey(a hands.Abilities) snapshot.Check {
	key, problem := a.StopKey, a.StopKeyProblem
	if t.status != nil {
		if s, err := t.status(); err == nil && s.Settings.Computer != nil {
			if c := s.Settings.Computer; c.StopKey != "" || c.StopKeyProblem != "" {
				key, problem = c.StopKey, c.StopKeyProblem
			}
		}
	}
	switch {
	case key != "":
		return good("stop key", key+" stops everything")
	case problem != "":
		return bad("stop key", problem, "Stop is in the tray's menu, and on the strip while a program is in control")
	}
	return good("stop key", "is bound while a program sees the screen or uses the mouse")
}
