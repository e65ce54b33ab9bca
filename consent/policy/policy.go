// Package policy is the judgement in step 4: pure rules. Effects, the
// session's mode and what is remembered go in; allow, ask or deny with a
// reason comes out. It looks at nothing and keeps nothing.
package policy

import (
	"strings"
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
	// Folder is the session folder under PresetContained and PresetFull.
	Folder string
}

var _ consent.Decider = Policy{}

// Decide judges r. A matching denial goes before everything; then what may
// never be remembered away is asked; then grants, then the session's mode.
func (p Policy) Decide(r consent.Request, remembered []consent.Stored, now time.Time) consent.Verdict {
	if only(r.Effects, consent.EffectOwn) {
		return consent.Verdict{Outcome: consent.Allowed, By: "session", Reason: "concerns only what this session started", Choice: consent.Choice{Scope: consent.Once}}
	}
	if r.Capability == consent.CapabilitySession {
		return p.session(r, remembered, now)
	}
	if s, ok := find(r, remembered, now, true); ok {
		return consent.Verdict{Outcome: consent.Denied, By: "rule", Grant: s.ID, Reason: "The person at this computer declined this for the whole session."}
	}
	if p.Preset == PresetFull {
		c := consent.Choice{Scope: consent.Once}
		if r.Action == "run" {
			c.Contain = consent.FullAccess
		}
		return consent.Verdict{Outcome: consent.Allowed, By: "policy", Reason: "everything is allowed by --policy full", Choice: c}
	}
	if s, ok := find(r, remembered, now, false); ok {
		c := s.Choice
		c.Contain = s.Rule.Contain
		return consent.Verdict{Outcome: consent.Allowed, By: "rule", Grant: s.ID, Reason: "allowed " + ScopeWords(s.Scope), Choice: c}
	}
	return mode(r)
}

// session answers the session card from what is remembered, or by preset.
func (p Policy) session(r consent.Request, remembered []consent.Stored, now time.Time) consent.Verdict {
	if p.Preset == PresetContained || p.Preset == PresetFull {
		if r.Folder != "" && r.Folder != p.Folder {
			return consent.Verdict{Outcome: consent.Denied, By: "policy", Reason: "This computer was started for one folder only, and another one was asked for."}
		}
		return consent.Verdict{Outcome: consent.Allowed, By: "policy", Reason: "answered beforehand by --policy " + string(p.Preset),
			Choice: consent.Choice{Scope: consent.Session, Mode: consent.ModeWork, Folder: p.Folder}}
	}
	var best consent.Stored
	for _, s := range remembered {
		if s.Deny || !live(s, now) || s.Rule.Capability != consent.CapabilitySession || s.Rule.Hub != r.Hub || s.Rule.Principal != r.Principal.ID {
			continue
		}
		if r.Folder != "" && s.Rule.Folder != r.Folder || s.Scope != consent.Always || !known(s.Choice.Mode) {
			continue
		}
		// The newest answer for a principal is the one that holds.
		if best.ID == "" || s.Created.After(best.Created) {
			best = s
		}
	}
	if best.ID == "" {
		return consent.Verdict{}
	}
	c := best.Choice
	c.Folder = best.Rule.Folder
	return consent.Verdict{Outcome: consent.Allowed, By: "rule", Grant: best.ID, Reason: "remembered for this program and folder", Choice: c}
}

// find returns the grant, or the denial, that covers r: every part of the rule
// equal, in force now. What is stored is trusted for no more than an answer
// could have given: a grant for full access holds only in its session, and one
// that holds always never covers high risk.
func find(r consent.Request, remembered []consent.Stored, now time.Time, deny bool) (consent.Stored, bool) {
	for _, s := range remembered {
		if s.Deny != deny || !live(s, now) || !inScope(r, s) {
			continue
		}
		if !deny && !covers(r, s) {
			continue
		}
		want := r.Rule
		want.Contain = s.Rule.Contain
		if want.Contain == consent.FullAccess {
			want.Looked = r.Fingerprint
		}
		if s.Rule == want {
			return s, true
		}
	}
	return consent.Stored{}, false
}

func inScope(r consent.Request, s consent.Stored) bool {
	switch s.Scope {
	case consent.Session:
		return s.Session != "" && s.Session == r.Session
	case consent.Minutes15:
		return !s.Expires.IsZero()
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
		return r.FullOffered && s.Scope == consent.Session
	case "":
		return !r.Containable && !r.FullOffered
	}
	return false
}

func live(s consent.Stored, now time.Time) bool {
	// A clock set back does not make a grant longer: it counts from Created.
	if now.Before(s.Created.Add(-time.Minute)) && !s.Expires.IsZero() {
		return false
	}
	return s.Expires.IsZero() || now.Before(s.Expires)
}

// mode applies what the session card settled.
func mode(r consent.Request) consent.Verdict {
	allow := func(contain consent.Containment) consent.Verdict {
		return consent.Verdict{Outcome: consent.Allowed, By: "mode", Reason: "allowed by \"" + ModeWords(r.Mode) + "\"", Choice: consent.Choice{Scope: consent.Once, Contain: contain}}
	}
	if r.Action == "run" {
		if r.Mode == consent.ModeWork && r.Containable && only(r.Effects, consent.EffectRun) {
			return allow(consent.Contained)
		}
		return consent.Verdict{}
	}
	switch r.Mode {
	case consent.ModeLook:
		if only(r.Effects, consent.EffectRead) {
			return allow("")
		}
		return consent.Verdict{Outcome: consent.Denied, By: "mode", Reason: "This session may only look; changing files was not allowed when it was opened."}
	case consent.ModeWork:
		if harmless(r.Effects) {
			return allow("")
		}
	}
	return consent.Verdict{}
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

func known(m consent.Mode) bool {
	return m == consent.ModeLook || m == consent.ModeWork || m == consent.ModeAsk
}

// harmless: reads, creations, and changes to what the session made itself. A
// request without effects, or with one that is not known here, is not.
func harmless(effects []consent.Effect) bool {
	for _, e := range effects {
		switch e.Kind {
		case consent.EffectRead, consent.EffectCreate:
		case consent.EffectOverwrite, consent.EffectDelete, consent.EffectMove:
			if !e.Own {
				return false
			}
		default:
			return false
		}
	}
	return len(effects) > 0
}

// ModeWords is a mode as the session card words it.
func ModeWords(m consent.Mode) string {
	switch m {
	case consent.ModeLook:
		return "Look only"
	case consent.ModeWork:
		return "Work in this folder"
	case consent.ModeAsk:
		return "Ask me each time"
	}
	return string(m)
}

// ScopeWords is a scope in a sentence.
func ScopeWords(s consent.Scope) string {
	switch s {
	case consent.Session:
		return "for this session"
	case consent.Minutes15:
		return "for 15 minutes"
	case consent.Always:
		return "always"
	}
	return "once"
}

// effectWords are the kinds of effects of a rule: "creates, replaces its own".
func effectWords(kinds string) string {
	words := map[string]string{"read": "reads", "create": "creates", "overwrite": "replaces", "delete": "deletes", "move": "moves",
		"startup": "changes what other programs run", "env": "sets variables", "run": "runs"}
	var out []string
	for _, kind := range strings.Split(kinds, ", ") {
		name, own := strings.CutPrefix(kind, "own ")
		word := words[name]
		if word == "" {
			word = consent.Visible(name, false)
		}
		if own {
			word += " its own"
		}
		out = append(out, word)
	}
	return strings.Join(out, ", ")
}

// RuleWords prints a rule exactly as it will match.
func RuleWords(r consent.Rule, c consent.Choice) string {
	if r.Capability == consent.CapabilitySession {
		return "Open a session in " + consent.Visible(r.Folder, false) + ": " + ModeWords(c.Mode)
	}
	if r.Capability == consent.CapabilityFolders && r.Action == "browse" {
		return "See the names of folders on this computer"
	}
	s := r.Capability + ": " + r.Action
	if r.Exact != "" {
		s += " `" + consent.Visible(r.Exact, false) + "`"
	}
	if r.Folder != "" {
		s += " in " + consent.Visible(r.Folder, false)
	}
	if r.Cwd != "" {
		s += ", working in " + consent.Visible(r.Cwd, false)
	}
	switch r.Contain {
	case consent.Contained:
		s += ", contained"
	case consent.FullAccess:
		s += ", full access, as long as the scripts it names stay as they are"
	}
	if r.Env != "" {
		s += ", with " + consent.Visible(r.Env, false)
	}
	if r.Effects != "" && r.Action != "run" {
		s += ", as long as it " + effectWords(r.Effects)
	}
	return s
}
