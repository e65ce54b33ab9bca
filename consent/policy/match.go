package policy

import (
	"slices"
	"strings"
	"time"

	"localpc/consent"
)

// find returns the grant, or the denial, that covers r and is in force now.
// What is stored is trusted for no more than an answer could have given: a
// grant for full access holds only in its session, and neither one that holds
// always nor a wide one ever covers high risk.
func find(r consent.Request, remembered []consent.Stored, now time.Time, deny bool) (consent.Stored, bool) {
	for _, s := range remembered {
		if s.Deny != deny || !Live(s, now) || !inScope(r, s) {
			continue
		}
		if deny && declined(r, s) || !deny && covers(r, s) && (exact(r, s) || wide(r, s)) {
			return s, true
		}
	}
	return consent.Stored{}, false
}

// declined tells whether s declines r: the same thing, whatever it would do and
// wherever it would run now.
func declined(r consent.Request, s consent.Stored) bool {
	want, got := r.Rule, s.Rule
	want.Effects, want.Contain, want.Looked = "", "", ""
	got.Effects, got.Contain, got.Looked = "", "", ""
	if r.Capability == consent.CapabilityComputer && !launches(r) {
		// Seeing another screen, or the next click, is the same thing again.
		want.Exact, got.Exact = "", ""
	}
	return want == got
}

// exact tells whether every part of the rule is equal; r may do less than the
// rule holds for, never more.
func exact(r consent.Request, s consent.Stored) bool {
	want := r.Rule
	want.Contain = s.Rule.Contain
	if want.Contain == consent.FullAccess {
		want.Looked = r.Fingerprint
	}
	if within(r.Effects, s.Rule.Effects) {
		want.Effects = s.Rule.Effects
	}
	return want == s.Rule
}

// wide tells whether s is a rule for a direction, and r goes no other way. A
// session that may only look changes no files by one: what was allowed by name
// holds there, and nothing broader.
func wide(r consent.Request, s consent.Stored) bool {
	w := s.Rule
	if r.Mode == consent.ModeLook && r.Capability == consent.CapabilityFiles && !only(r.Effects, consent.EffectRead) {
		return false
	}
	return w.Wide && w.Exact == "" && w.Env == "" && w.Cwd == "" && w.Looked == "" &&
		w.Hub == r.Rule.Hub && w.Principal == r.Rule.Principal && w.Folder == r.Rule.Folder &&
		w.Capability == r.Rule.Capability && (w.Action == "" || w.Action == r.Rule.Action) &&
		r.Risk < consent.RiskHigh && within(r.Effects, w.Effects)
}

// within tells whether there are effects, and all of kinds that a rule names
// ("create, own delete"). What concerns only the session's own is less than
// the same of anything.
func within(effects []consent.Effect, kinds string) bool {
	all := strings.Split(kinds, ", ")
	for _, e := range effects {
		if !slices.Contains(all, string(e.Kind)) && (!e.Own || !slices.Contains(all, "own "+string(e.Kind))) {
			return false
		}
	}
	return len(effects) > 0
}

func inScope(r consent.Request, s consent.Stored) bool {
	switch s.Scope {
	case consent.Command:
		return s.Session != "" && s.Session == r.Command
	case consent.Session:
		return s.Session != "" && s.Session == r.Session
	case consent.Minutes15:
		return !s.Expires.IsZero() && !s.Expires.After(s.Created.Add(consent.TrustedFor))
	case consent.Always:
		return true
	}
	return false
}

// covers tells whether a grant's scope and containment are ones that r could
// be allowed with now.
func covers(r consent.Request, s consent.Stored) bool {
	if r.Risk >= consent.RiskHigh && s.Scope == consent.Always {
		return false
	}
	switch s.Rule.Contain {
	case consent.Contained:
		return r.Containable
	case consent.FullAccess:
		return r.FullOffered && s.Scope == consent.Session && !s.Rule.Wide
	case "":
		return !r.Containable && !r.FullOffered
	}
	return false
}

// Live tells whether s is in force now. What holds always ends when it has not
// been used for a while.
func Live(s consent.Stored, now time.Time) bool {
	if !s.Expires.IsZero() {
		// A clock set back does not make a grant longer: it counts from Created.
		return !now.Before(s.Created.Add(-time.Minute)) && now.Before(s.Expires)
	}
	if s.Scope != consent.Always {
		return true
	}
	used := s.Created
	if s.LastUsed.After(used) {
		used = s.LastUsed
	}
	return now.Sub(used) < consent.UnusedFor
}
