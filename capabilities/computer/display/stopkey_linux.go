package display

// #include "input_linux.h"
import "C"

import (
	"strings"
	"time"

	"localpc/capabilities/computer/hands"
)

// The bits of modifiers in X11.
const (
	shiftBit = 1 << 0
	lockBit  = 1 << 1
	ctrlBit  = 1 << 2
	altBit   = 1 << 3
	numBit   = 1 << 4
	superBit = 1 << 6
)

// stopKey is a combination that stops everything.
type stopKey struct {
	name string
	sym  keysym
	mods uint
	code int // as bound; 0: it is not
}

// stopKeys are tried in this order: none is a shortcut of a usual desktop or
// program that a person would miss (Ctrl+Alt+Esc ends windows in KDE, Ctrl+Alt+
// Backspace ends the session, Ctrl+Alt+F1 to F12 leave it).
var stopKeys = []stopKey{
	{name: "Ctrl+Shift+Esc", sym: 0xff1b, mods: ctrlBit | shiftBit},
	{name: "Ctrl+Alt+Shift+Esc", sym: 0xff1b, mods: ctrlBit | altBit | shiftBit},
	{name: "Super+Shift+Esc", sym: 0xff1b, mods: superBit | shiftBit},
	{name: "Ctrl+Alt+Pause", sym: 0xff13, mods: ctrlBit | altBit},
	{name: "Ctrl+Alt+End", sym: 0xff57, mods: ctrlBit | altBit},
}

// held tells whether exactly the modifiers of k are down.
func (k stopKey) held(d *C.Display) bool {
	var s C.lx_state
	return C.lx_state_now(d, &s) != 0 && uint(s.base|s.latched)&(shiftBit|ctrlBit|altBit|superBit) == k.mods
}

// stopKey binds the first that nobody else has, or lets go of it.
func (l *listener) stopKey(on bool) (bound, problem string) {
	err := l.do(func(d *C.Display) {
		if !on {
			l.release()
			return
		}
		if l.bound.code != 0 {
			return
		}
		for _, k := range stopKeys {
			if k.code = int(C.lx_code(d, C.ulong(k.sym))); k.code != 0 && l.grab(k) {
				l.bound = k
				return
			}
		}
	})
	l.nudge()
	switch {
	case err != nil:
		return "", "The key that stops everything can't be set: the display does not answer."
	case on && l.name() == "":
		var names []string
		for _, k := range stopKeys {
			names = append(names, k.name)
		}
		return "", "No key stops everything: other programs have taken " + strings.Join(names, ", ") + "."
	}
	return l.name(), ""
}

func (l *listener) name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bound.code == 0 {
		return ""
	}
	return l.bound.name
}

// grab takes k on every screen, whatever NumLock and CapsLock are; all or none.
func (l *listener) grab(k stopKey) bool {
	for screen := range l.screens {
		for _, locks := range []uint{0, lockBit, numBit, lockBit | numBit} {
			if C.lx_grab(l.d, C.int(screen), C.int(k.code), C.uint(k.mods|locks)) == 0 {
				l.ungrab(k)
				return false
			}
		}
	}
	return true
}

func (l *listener) ungrab(k stopKey) {
	for screen := range l.screens {
		for _, locks := range []uint{0, lockBit, numBit, lockBit | numBit} {
			C.lx_ungrab(l.d, C.int(screen), C.int(k.code), C.uint(k.mods|locks))
		}
	}
}

func (l *listener) release() {
	if l.bound.code != 0 {
		l.ungrab(l.bound)
		l.bound = stopKey{}
	}
}

// rebind follows the key when the layout moves it.
func (l *listener) rebind() {
	if l.bound.code == 0 {
		return
	}
	k := l.bound
	if k.code = int(C.lx_code(l.d, C.ulong(k.sym))); k.code == l.bound.code || k.code == 0 {
		return
	}
	l.ungrab(l.bound)
	l.bound = stopKey{}
	if l.grab(k) {
		l.bound = k
	}
}

// stop says it once: the same press comes as a raw event and from the grab.
func (l *listener) stop(at time.Time) {
	if at.Sub(l.stopped) < 300*time.Millisecond {
		return
	}
	l.stopped = at
	l.say(hands.Event{Stop: true, At: at})
}
