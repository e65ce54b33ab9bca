package policy

import "localpc/consent"

// Switches are what may be asked for at all, as Settings has it; "" means that
// it may be asked for.
type Switches struct {
	Files   string // Read: nothing but reading; Off
	Shell   string // Contained: in the container only; Off
	Network string // Off
	// Computer is See where the screen may be seen and nothing else be done; Off.
	Computer string
}

// The values of Switches.
const (
	Read      = "read"
	Contained = "contained"
	See       = "see"
	Off       = "off"
)

// bySettings is the Decision.By of what is switched off.
const bySettings = "settings"

// deny says why r is not even asked, "" when it may be. What concerns only what
// the session started is decided before: it can always be ended.
func (s Switches) deny(r consent.Request) string {
	switch {
	case r.Capability == consent.CapabilityFiles && s.Files == Off:
		return "Files are switched off in Settings on this computer."
	case r.Capability == consent.CapabilityFiles && s.Files == Read && !only(r.Effects, consent.EffectRead):
		return "Changing files is switched off in Settings on this computer; they may be read."
	case r.Capability == consent.CapabilityShell && s.Shell == Off:
		return "Commands are switched off in Settings on this computer."
	case r.Action == "run" && s.Shell == Contained && !r.Containable:
		return "Commands may only run inside their folder, as Settings on this computer has it, and this one can't be kept there."
	case r.Action == "run" && s.Shell == Contained && r.FullOffered:
		// It was offered before that was switched off; see Offer.
		return "Commands may only run inside their folder since a moment ago, as Settings on this computer has it. Ask again."
	case r.Capability == consent.CapabilityComputer && s.Computer == Off:
		return "Screen, mouse and keyboard are switched off in Settings on this computer."
	case r.Capability == consent.CapabilityComputer && s.Computer == See && !only(r.Effects, consent.EffectSee) && !checks(r):
		return "Mouse, keyboard and clipboard are switched off in Settings on this computer; the screen may be seen."
	case launches(r) && s.Shell == Off:
		return "Starting programs is switched off with commands, in Settings on this computer."
	case launches(r) && s.Shell == Contained:
		return "Commands may only run inside their folder, as Settings on this computer has it, and a program that is started can't be kept there."
	case r.Capability == consent.CapabilityNetwork && s.Network == Off:
		return "Connections are switched off in Settings on this computer."
	}
	return ""
}

// Offer takes away from r what is switched off but would be offered: its card
// has no such button, and an answer with it does not fit.
func (s Switches) Offer(r consent.Request) consent.Request {
	if s.Shell == Contained {
		r.FullOffered = false
	}
	return r
}
