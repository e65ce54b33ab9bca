package policy

import "localpc/consent"

// What of the computer needs no question: neither mode nor preset allows any of
// the rest.
const (
	actionCheck  = "check"  // whether pictures and input work here
	actionLaunch = "launch" // starts a program, with the person's own rights
)

// checks tells whether r only learns whether pictures and input work.
func checks(r consent.Request) bool {
	return r.Capability == consent.CapabilityComputer && r.Action == actionCheck && r.Risk <= consent.RiskLow && only(r.Effects, consent.EffectRead)
}

func launches(r consent.Request) bool {
	return r.Capability == consent.CapabilityComputer && r.Action == actionLaunch
}

// computer allows what tells nothing of the person's: a check, and what the
// session has put on the clipboard itself, read back.
func computer(r consent.Request) consent.Verdict {
	once := consent.Choice{Scope: consent.Once}
	if checks(r) {
		return consent.Verdict{Outcome: consent.Allowed, By: "mode", Reason: "tells only whether pictures and input work here", Choice: once}
	}
	for _, e := range r.Effects {
		if e.Kind != consent.EffectClipboard || !e.Own {
			return consent.Verdict{}
		}
	}
	if len(r.Effects) == 0 || r.Risk >= consent.RiskHigh {
		return consent.Verdict{}
	}
	return consent.Verdict{Outcome: consent.Allowed, By: "mode", Reason: "reads back only what this session put there itself", Choice: once}
}

// screens are those of r that a policy allows: all, or, where it names them, the
// ones of r's rule.
func screens(r consent.Request, named bool) string {
	var out []string
	for _, s := range r.Screens {
		if !named || s.Chosen {
			out = append(out, s.Name)
		}
	}
	return consent.JoinScreens(out)
}
