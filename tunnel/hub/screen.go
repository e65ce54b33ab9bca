package hub

import (
	"slices"
	"strconv"
	"strings"

	"localpc/tunnel/wire"
)

const (
	// capabilityComputer is what a machine says that has a screen, mouse and keyboard.
	capabilityComputer = "computer"
	// minorComputer is the first minor version with messages for them.
	minorComputer = 3
)

// ofComputer tells whether t asks for the screen, the mouse or the keyboard.
func ofComputer(t wire.Type) bool {
	switch t {
	case wire.TypeScreenshot, wire.TypeInput, wire.TypeCursor, wire.TypeDisplays, wire.TypeWindows, wire.TypeWindowFocus,
		wire.TypeApps, wire.TypeAppLaunch, wire.TypeClipRead, wire.TypeClipWrite, wire.TypePermissions:
		return true
	}
	return false
}

// lacksComputer says why a machine that greeted with h can't be asked for its
// screen; nil: it can.
func lacksComputer(h *wire.Hello) error {
	_, minor, _ := strings.Cut(h.Protocol, ".")
	if n, err := strconv.Atoi(minor); err != nil || n < minorComputer {
		return wire.Errorf(wire.CodeNotSupported, "The program on this computer is too old to let its screen, mouse and keyboard be used. Its person has to update Local PC Executor there.")
	}
	if !slices.Contains(h.Capabilities, capabilityComputer) {
		return wire.Errorf(wire.CodeNotSupported, "This computer has no screen that Local PC Executor could use.")
	}
	return nil
}
