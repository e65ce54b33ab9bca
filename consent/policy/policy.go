// Package policy is the judgement in step 4: pure rules. Effects, the
// session's mode, what is remembered and what is switched off go in; allow, ask
// or deny with a reason comes out. It looks at nothing and keeps nothing.
package policy

import (
	"fmt"
	"time"

	"localpc/consent"
)

// Preset is how cards are answered beforehand (--policy).
type Preset string

const (
	// Ask shows every card.
	Ask Preset = "ask"
	// PresetContained answers the session card with "Work in this folder".
	PresetContained Preset = "contained"
	// PresetFull allows everything, with full access.
	PresetFull Preset = "full"
)

// Policy is the decider. Its zero value asks.
type Policy struct {
	Preset Preset
	// Folder is the session folder under PresetContained, PresetFull and File.
	Folder string
	// File answers beforehand, in place of a preset; nil for none.
	File *File
	// Switches are what may be asked for at all, as it is at the moment.
	Switches Switches
}

var _ consent.Decider = Policy{}

// MaxQuiet is how many files and folders that it did not make a session may
// delete and move with one request without a question, where they are kept.
const MaxQuiet = 10

// byPolicy is the Decision.By of what was decided before anybody was here.
const byPolicy = "policy"

// Decide judges r. What is switched off, and then a matching denial, go before
// everything; then the preset or the policy file, grants, and the session's
// mode. What none of them covers is asked, or denied where a policy file says
// so: then it is the whole truth, and nothing counts that was remembered.
func (p Policy) Decide(r consent.Request, remembered []consent.Stored, now time.Time) consent.Verdict {
	if only(r.Effects, consent.EffectOwn) {
		return consent.Verdict{Outcome: consent.Allowed, By: "session", Reason: "concerns only what this session started", Choice: consent.Choice{Scope: consent.Once}}
	}
	if r.Capability == consent.CapabilitySession && r.Action == "metrics" && r.Risk <= consent.RiskLow && only(r.Effects, consent.EffectRead) {
		return consent.Verdict{Outcome: consent.Allowed, By: "mode", Reason: "tells only how busy this computer is", Choice: consent.Choice{Scope: consent.Once}}
	}
	if r.Capability == consent.CapabilitySession {
		return p.session(r, remembered, now)
	}
	if why := p.Switches.deny(r); why != "" {
		return consent.Verdict{Outcome: consent.Denied, By: bySettings, Reason: why}
	}
	if s, ok := find(r, remembered, now, true); ok {
		return consent.Verdict{Outcome: consent.Denied, By: "rule", Grant: s.ID, Reason: "The person at this computer declined this for the whole session."}
	}
	if p.Preset == PresetFull {
		c := consent.Choice{Scope: consent.Once, Screens: screens(r, false)}
		if r.Action == "run" {
			if c.Contain = consent.FullAccess; p.Switches.Shell == Contained {
				c.Contain = consent.Contained
			}
		}
		return consent.Verdict{Outcome: consent.Allowed, By: byPolicy, Reason: "everything is allowed by --policy full", Choice: c}
	}
	if p.File != nil {
		if v := p.File.decide(r); v.Outcome != "" {
			return v
		}
	}
	if s, ok := find(r, remembered, now, false); ok && (p.File == nil || p.File.Ask) {
		c := s.Choice
		c.Contain = s.Rule.Contain
		return consent.Verdict{Outcome: consent.Allowed, By: "rule", Grant: s.ID, Reason: "allowed " + ScopeWords(s.Scope), Choice: c}
	}
	v := mode(r)
	if v.Outcome == "" && p.File != nil && !p.File.Ask {
		return consent.Verdict{Outcome: consent.Denied, By: byPolicy, Reason: "This computer's policy file does not allow this, and nobody is asked."}
	}
	return v
}

// session answers the session card from what is remembered, or by preset.
func (p Policy) session(r consent.Request, remembered []consent.Stored, now time.Time) consent.Verdict {
	var best consent.Stored
	for _, s := range remembered {
		if !Live(s, now) || s.Rule.Capability != consent.CapabilitySession || s.Rule.Hub != r.Hub || s.Rule.Principal != r.Principal.ID {
			continue
		}
		if s.Deny {
			if s.Scope == consent.Minutes15 && inScope(r, s) && (s.Rule.Folder == "" || s.Rule.Folder == r.Folder) {
				return consent.Verdict{Outcome: consent.Denied, By: "rule", Grant: s.ID, Reason: "The person at this computer declined, and is not to be asked again for " + minutes(s.Expires.Sub(now)) + "."}
			}
			continue
		}
		if r.Folder != "" && s.Rule.Folder != r.Folder || s.Scope != consent.Always || !lasting(s.Choice.Mode) {
			continue
		}
		// The newest answer for a principal is the one that holds.
		if best.ID == "" || s.Created.After(best.Created) {
			best = s
		}
	}
	if p.File != nil {
		if v := p.File.decide(r); v.Outcome == consent.Denied {
			return v
		}
		return p.answered(r, "answered beforehand by the policy file", p.File.Mode)
	}
	if p.Preset == PresetContained || p.Preset == PresetFull {
		return p.answered(r, "answered beforehand by --policy "+string(p.Preset), consent.ModeWork)
	}
	if best.ID == "" {
		return consent.Verdict{}
	}
	c := best.Choice
	c.Folder = best.Rule.Folder
	return consent.Verdict{Outcome: consent.Allowed, By: "rule", Grant: best.ID, Reason: "remembered for this program and folder", Choice: c}
}

// answered is a session card answered beforehand, for one folder.
func (p Policy) answered(r consent.Request, reason string, m consent.Mode) consent.Verdict {
	if r.Folder != "" && r.Folder != p.Folder {
		return consent.Verdict{Outcome: consent.Denied, By: byPolicy, Reason: "This computer was started for one folder only, and another one was asked for."}
	}
	return consent.Verdict{Outcome: consent.Allowed, By: byPolicy, Reason: reason, Choice: consent.Choice{Scope: consent.Session, Mode: m, Folder: p.Folder}}
}

func minutes(d time.Duration) string {
	if n := int((d + time.Minute - 1) / time.Minute); n != 1 {
		return fmt.Sprintf("%d minutes", n)
	}
	return "1 minute"
}

// mode applies what the session card settled. It is about the folder: files and
// commands. All else is asked.
func mode(r consent.Request) consent.Verdict {
	if r.Capability == consent.CapabilityComputer {
		return computer(r)
	}
	if r.Capability != consent.CapabilityFiles && r.Capability != consent.CapabilityShell {
		return consent.Verdict{}
	}
	run := r.Action == "run"
	if quiet(r, run) {
		c := consent.Choice{Scope: consent.Once}
		if run {
			c.Contain = consent.Contained
		}
		return consent.Verdict{Outcome: consent.Allowed, By: "mode", Reason: "allowed by \"" + ModeWords(r.Mode) + "\"", Choice: c}
	}
	if r.Mode == consent.ModeLook && !run {
		return consent.Verdict{Outcome: consent.Denied, By: "mode", Reason: "This session may only look; changing files was not allowed when it was opened."}
	}
	return consent.Verdict{}
}

// quiet tells whether the session's mode covers r without a question. A request
// without effects, at high risk, or with an effect that is not named here, is
// not covered by any.
func quiet(r consent.Request, run bool) bool {
	if len(r.Effects) == 0 || r.Risk >= consent.RiskHigh {
		return false
	}
	trusted := r.Mode == consent.ModeTrusted
	switch {
	case r.Mode == consent.ModeLook:
		return !run && only(r.Effects, consent.EffectRead)
	case r.Mode != consent.ModeWork && !trusted, run && !r.Containable:
		return false
	}
	taken := 0
	for _, e := range r.Effects {
		switch e.Kind {
		case consent.EffectRead, consent.EffectCreate:
		case consent.EffectRun, consent.EffectInstall, consent.EffectConnect:
			// In the container: what it reaches is asked for by itself.
			if !run {
				return false
			}
		case consent.EffectOverwrite:
			if !e.Own && !e.Kept && !trusted {
				return false
			}
		case consent.EffectDelete, consent.EffectMove:
			if e.Own || trusted {
				continue
			}
			if taken += e.Count; !e.Kept || e.Count < 1 || taken > MaxQuiet {
				return false
			}
		case consent.EffectAccess:
			if !e.Own && !trusted {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// only tells whether there are effects, and all of one kind.
func only(effects []consent.Effect, kind consent.EffectKind) bool {
	for _, e := range effects {
		if e.Kind != kind {
			return false
		}
	}
	return len(effects) > 0
}

// lasting tells whether a session may be opened with m without being asked.
func lasting(m consent.Mode) bool {
	return m == consent.ModeLook || m == consent.ModeWork || m == consent.ModeAsk
}
