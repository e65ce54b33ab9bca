package display

import (
	"context"
	"image"
	"time"

	"localpc/capabilities/computer/hands"
	"localpc/capabilities/computer/space"
	"localpc/tunnel/wire"
)

// What a person reads where macOS does not let this program see or act.
const (
	needsScreen = "macOS does not let Local PC Executor see the screen. Open System Settings, Privacy & Security, Screen & System Audio Recording, switch Local PC Executor on, and start it again."
	needsAccess = "macOS does not let Local PC Executor use mouse and keyboard. Open System Settings, Privacy & Security, Accessibility, switch Local PC Executor on, and start it again."
)

// open makes the parts of macOS. Device pixels here are its points: pictures
// are taken so, whatever the screen has.
func open(context.Context, Options) (*parts, error) {
	q, err := newQuartz()
	if err != nil {
		return nil, wire.Wrap(err, wire.CodeNotSupported, "Local PC Executor can't reach the screen of this Mac.")
	}
	p := &parts{system: "darwin", why: map[string]string{
		hands.AbilityClipboard: "The clipboard of a Mac can't be used by programs here.",
	}}
	if _, err := q.screens(); err != nil {
		return nil, err
	}
	// The switch may be on and pictures still be black, after an update of this
	// program: then macOS wants it off and on again.
	p.pictures = newCapture(q.screens, func() string {
		if !q.maySee() {
			return needsScreen
		}
		return ""
	})
	p.windows = quartzWindows{q}
	p.newInput = func(a around) (input, error) {
		if !q.mayAct() {
			return nil, lacks(needsAccess)
		}
		return newQuartzInput(a, q)
	}
	return p, nil
}

// noWatch is where the person's hands are not told from the agent's.
type noWatch struct{}

func (noWatch) listen(func(hands.Event)) {}

func (noWatch) after(time.Time) bool { return false }

func (noWatch) stopKey(_ context.Context, on bool) (string, string) {
	if on {
		return "", "On a Mac there is no key for Stop everything. Use the menu bar icon instead."
	}
	return "", ""
}

func (noWatch) person() (bool, string) {
	return false, "On a Mac the mouse and keyboard of the person are not told from the agent's, so using them does not pause it. Use Pause, or Stop everything."
}

func (noWatch) close() error { return nil }

func pointsOf(r cgRect) image.Rectangle {
	return image.Rect(int(r.X), int(r.Y), int(r.X+r.Width), int(r.Y+r.Height))
}

func (q *quartz) screens() (space.Layout, error) {
	var l space.Layout
	for _, id := range q.displays() {
		r := pointsOf(q.bounds(id))
		l.Screens = append(l.Screens, space.Screen{Index: len(l.Screens), Name: q.name(id), Device: r, Points: r, Scale: 1, Primary: id == q.mainDisplay()})
	}
	if len(l.Screens) == 0 {
		return l, lacks("This Mac has no screen that Local PC Executor can reach: nobody is logged in to its desktop.")
	}
	return l, nil
}
