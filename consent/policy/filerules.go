package policy

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"localpc/consent"
)

// matches tells whether the rule is about r, but for its effects.
func (f fileRule) matches(r consent.Request) bool {
	switch {
	case f.program != "" && f.program != r.Principal.Name,
		f.capability != "" && f.capability != r.Capability,
		f.action != "" && f.action != r.Action,
		f.exact != "" && f.exact != r.Rule.Exact:
		return false
	}
	return f.hosts == nil || slices.ContainsFunc(f.hosts, func(h string) bool { return sameHost(h, r.Rule.Exact) })
}

// sameHost compares a host of a rule with what is connected to, "host:port". A
// rule without a port is for all of them.
func sameHost(rule, to string) bool {
	if strings.EqualFold(rule, to) {
		return true
	}
	host, _, err := net.SplitHostPort(to)
	return err == nil && strings.EqualFold(rule, host)
}

// denies finds the rule that denies r: one of its effects is enough.
func (f *File) denies(r consent.Request) (fileRule, bool) {
	for _, rule := range f.deny {
		if rule.matches(r) && (rule.effects == nil || slices.ContainsFunc(r.Effects, func(e consent.Effect) bool { return slices.Contains(rule.effects, e.Kind) })) {
			return rule, true
		}
	}
	return fileRule{}, false
}

// allows finds the rule that allows r, and where it runs then. High risk and
// full access are allowed by one exact text that says so, and by nothing else.
func (f *File) allows(r consent.Request) (fileRule, consent.Containment, bool) {
	if len(r.Effects) == 0 {
		return fileRule{}, "", false
	}
	for _, rule := range f.allow {
		if !rule.matches(r) {
			continue
		}
		// An exact text is that text in the folder itself, with nothing set.
		if rule.exact != "" && (r.Rule.Env != "" || r.Rule.Cwd != "") {
			continue
		}
		if rule.full {
			if r.Action == "run" && r.FullOffered {
				return rule, consent.FullAccess, true
			}
			continue
		}
		if r.Risk >= consent.RiskHigh && !(launches(r) && rule.exact != "") || rule.effects != nil && slices.ContainsFunc(r.Effects, func(e consent.Effect) bool { return !slices.Contains(rule.effects, e.Kind) }) {
			continue
		}
		switch {
		case r.Action != "run":
			return rule, "", true
		case r.Containable:
			return rule, consent.Contained, true
		}
	}
	return fileRule{}, "", false
}

// decide is the file's own word on r; an outcome of "" where it has none.
func (f *File) decide(r consent.Request) consent.Verdict {
	if rule, ok := f.denies(r); ok {
		return consent.Verdict{Outcome: consent.Denied, By: byPolicy, Reason: fmt.Sprintf("This computer's policy file denies this (line %d).", rule.line)}
	}
	if rule, contain, ok := f.allows(r); ok {
		return consent.Verdict{Outcome: consent.Allowed, By: byPolicy, Reason: fmt.Sprintf("allowed by line %d of the policy file", rule.line),
			Choice: consent.Choice{Scope: consent.Once, Contain: contain, Screens: screens(r, rule.exact != "")}}
	}
	return consent.Verdict{}
}

// words say what the file has: "Look only, 3 rules; what no rule covers is
// denied".
func (f *File) words() string {
	otherwise := "denied"
	if f.Ask {
		otherwise = "asked"
	}
	n := len(f.allow) + len(f.deny)
	rules := fmt.Sprintf("%d rules", n)
	if n == 1 {
		rules = "1 rule"
	}
	return fmt.Sprintf("\"%s\" in %s, %s; what no rule covers is %s", ModeWords(f.Mode), consent.Visible(f.Folder, false), rules, otherwise)
}

// Words say what was answered before anybody was asked, for a person; "" where
// nothing was.
func (p Policy) Words() string {
	switch {
	case p.File != nil:
		return "the policy file " + consent.Visible(p.File.Name, false) + ", read at the start: " + p.File.words()
	case p.Preset == PresetContained:
		return "--policy contained: \"" + ModeWords(consent.ModeWork) + "\" in " + consent.Visible(p.Folder, false)
	case p.Preset == PresetFull:
		return "--policy full: everything is allowed, with full access"
	}
	return ""
}
