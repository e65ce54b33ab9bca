package policy_test

import (
	"strings"
	"testing"

	"localpc/consent"
	"localpc/consent/policy"
)

func screen(m consent.Mode, action, exact string, effects ...consent.EffectKind) consent.Request {
	r := request(m, consent.CapabilityComputer, action, of(effects...))
	r.Rule.Exact = exact
	if action == "launch" {
		r.Risk = consent.RiskHigh
	}
	return r
}

// requests are what may be asked of the computer, in a mode.
func requests(m consent.Mode) map[string]consent.Request {
	return map[string]consent.Request{
		"see":    screen(m, "see", consent.ScreensRule("DP-1"), consent.EffectSee),
		"act":    screen(m, "act", "mouse and keyboard", consent.EffectControl),
		"launch": screen(m, "launch", "/usr/bin/gimp", consent.EffectControl, consent.EffectRun),
		"read":   screen(m, "clipboard-read", "read the clipboard", consent.EffectClipboard),
		"write":  screen(m, "clipboard-write", "write to the clipboard", consent.EffectClipboard),
	}
}

func TestTheComputerIsNeverSilent(t *testing.T) {
	for _, p := range []policy.Policy{{}, {Preset: policy.PresetContained, Folder: "/project"}} {
		for _, m := range []consent.Mode{consent.ModeLook, consent.ModeWork, consent.ModeAsk, consent.ModeTrusted} {
			for name, r := range requests(m) {
				if v := p.Decide(r, nil, noon); v.Outcome != ask {
					t.Errorf("%s in mode %s with preset %q: %+v", name, m, p.Preset, v)
				}
			}
		}
	}
	for name, r := range requests(consent.ModeAsk) {
		if v := (policy.Policy{Preset: policy.PresetFull}).Decide(r, nil, noon); v.Outcome != consent.Allowed || v.Choice.Contain != "" {
			t.Errorf("%s with --policy full: %+v", name, v)
		}
		v := (policy.Policy{}).Decide(r, []consent.Stored{grantFor(r, consent.Session, "")}, noon)
		if v.Outcome != consent.Allowed || v.By != "rule" {
			t.Errorf("%s, allowed for the session: %+v", name, v)
		}
	}
	// What tells nothing of the person's is told.
	own := screen(consent.ModeAsk, "clipboard-read", "read the clipboard")
	own.Effects = made(consent.EffectClipboard)
	check := request(consent.ModeAsk, consent.CapabilityComputer, "check", of(consent.EffectRead))
	check.Risk = consent.RiskLow
	for _, r := range []consent.Request{own, check} {
		if v := (policy.Policy{}).Decide(r, nil, noon); v.Outcome != consent.Allowed || v.By != "mode" {
			t.Errorf("%s: %+v", r.Action, v)
		}
		if v := (policy.Policy{Switches: policy.Switches{Computer: policy.Off}}).Decide(r, nil, noon); v.Outcome != consent.Denied {
			t.Errorf("%s, switched off: %+v", r.Action, v)
		}
	}
	check.Action = "see"
	if v := (policy.Policy{}).Decide(check, nil, noon); v.Outcome != ask {
		t.Errorf("another action with the effects of a check: %+v", v)
	}
}

func TestSwitchesOfTheComputer(t *testing.T) {
	for name, r := range requests(consent.ModeWork) {
		book := []consent.Stored{grantFor(r, consent.Session, "")}
		for extent, want := range map[string]consent.Outcome{"": consent.Allowed, "ask": consent.Allowed, policy.Off: consent.Denied, policy.See: consent.Denied} {
			if extent == policy.See && name == "see" {
				want = consent.Allowed
			}
			v := (policy.Policy{Switches: policy.Switches{Computer: extent}}).Decide(r, book, noon)
			if v.Outcome != want || want == consent.Denied && !strings.Contains(v.Reason, "switched off in Settings") {
				t.Errorf("%s at %q: %+v", name, extent, v)
			}
		}
		for _, shell := range []string{policy.Off, policy.Contained} {
			want := consent.Allowed
			if name == "launch" {
				want = consent.Denied
			}
			if v := (policy.Policy{Switches: policy.Switches{Shell: shell}}).Decide(r, book, noon); v.Outcome != want {
				t.Errorf("%s with commands %q: %+v", name, shell, v)
			}
		}
	}
}

func TestADeniedScreenStaysDenied(t *testing.T) {
	all := requests(consent.ModeWork)
	for name, r := range all {
		no := grantFor(r, consent.Session, "")
		no.Deny, no.Rule.Effects = true, ""
		other := r
		other.Rule.Exact = "something else"
		want := consent.Denied
		if name == "launch" {
			want = ask // another program is another question
		}
		if v := (policy.Policy{}).Decide(other, []consent.Stored{no}, noon); v.Outcome != want {
			t.Errorf("%s of something else: %+v", name, v)
		}
		if v := (policy.Policy{}).Decide(r, []consent.Stored{no}, noon); v.Outcome != consent.Denied {
			t.Errorf("%s again: %+v", name, v)
		}
		other.Session = "s2"
		if v := (policy.Policy{}).Decide(other, []consent.Stored{no}, noon); v.Outcome == consent.Denied {
			t.Errorf("%s of another session: %+v", name, v)
		}
		for otherName, r := range all {
			if v := (policy.Policy{}).Decide(r, []consent.Stored{no}, noon); otherName != name && v.Outcome != ask {
				t.Errorf("%s where %s was denied: %+v", otherName, name, v)
			}
		}
	}
}

func TestAFileNamesTheComputer(t *testing.T) {
	f := parse(t, "folder = '/project'\n[[allow]]\ncapability = 'computer'\naction = 'see'\n[[allow]]\ncapability = 'computer'\nexact = '/usr/bin/gimp'\naction = 'launch'\n[[deny]]\neffects = ['clipboard']\n")
	p := policy.Policy{File: f}
	for name, r := range requests(consent.ModeWork) {
		want := consent.Denied
		if name == "see" || name == "launch" {
			want = consent.Allowed
		}
		if v := p.Decide(r, nil, noon); v.Outcome != want {
			t.Errorf("%s: %+v", name, v)
		}
	}
	// A file that names a screen shares that one; one that does not, all.
	see := requests(consent.ModeWork)["see"]
	see.Screens = []consent.Screen{{Name: "DP-1", Chosen: true}, {Name: "HDMI-1"}}
	if v := p.Decide(see, nil, noon); v.Choice.Screens != "DP-1\nHDMI-1" {
		t.Errorf("seeing shares %q", v.Choice.Screens)
	}
	one := policy.Policy{File: parse(t, "folder = '/project'\n[[allow]]\ncapability = 'computer'\naction = 'see'\nexact = 'screens: DP-1'\n")}
	if v := one.Decide(see, nil, noon); v.Outcome != consent.Allowed || v.Choice.Screens != "DP-1" {
		t.Errorf("seeing one screen: %+v", v)
	}
	other := requests(consent.ModeWork)["launch"]
	other.Rule.Exact = "/usr/bin/gimp x"
	if v := p.Decide(other, nil, noon); v.Outcome != consent.Denied {
		t.Errorf("another launch: %+v", v)
	}
	// High risk is allowed by its exact text, and by nothing less.
	wide := policy.Policy{File: parse(t, "folder = '/project'\n[[allow]]\ncapability = 'computer'\n")}
	for name, r := range requests(consent.ModeWork) {
		want := consent.Allowed
		if name == "launch" {
			want = consent.Denied
		}
		if v := wide.Decide(r, nil, noon); v.Outcome != want {
			t.Errorf("%s with everything of the computer: %+v", name, v)
		}
	}
	if _, err := policy.ParseFile([]byte("folder = '/project'\n[[allow]]\ncapability = 'computer'\naction = 'run'\n")); err == nil {
		t.Error("an action that would never match was taken")
	}
}

func TestWordsOfTheComputersRules(t *testing.T) {
	for name, want := range map[string]string{
		"see":    "See the screen “DP-1” of this computer, in sessions for /project",
		"act":    "Use the mouse and keyboard of this computer, in sessions for /project",
		"launch": "Start the program `/usr/bin/gimp`, in sessions for /project",
		"read":   "Read what you have copied (the clipboard), in sessions for /project",
		"write":  "Replace what you have copied (the clipboard), in sessions for /project",
	} {
		if got := policy.RuleWords(requests(consent.ModeWork)[name].Rule, consent.Choice{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	rule := requests(consent.ModeWork)["see"].Rule
	seen := map[string]string{}
	for change, want := range map[string]string{
		consent.ScreensRule("DP-1\nHDMI-1"):       "See the screens “DP-1” and “HDMI-1” of this computer, in sessions for /project",
		consent.ScreensRule("DP-1\nDP-2\nHDMI-1"): "See the screens “DP-1”, “DP-2” and “HDMI-1” of this computer, in sessions for /project",
		consent.ScreensRule("default"):            "See the screen of this computer, in sessions for /project",
		consent.ScreensRule("DP-2"):               "See the screen “DP-2” of this computer, in sessions for /project",
	} {
		rule.Exact = change
		got := policy.RuleWords(rule, consent.Choice{})
		if got != want || seen[got] != "" {
			t.Errorf("%q, want %q", got, want)
		}
		seen[got] = change
	}
	// A rule for more than such a thing does by its nature says so, and a denial,
	// which is of every screen, names none.
	rule.Effects = "clipboard, see"
	if got := policy.RuleWords(rule, consent.Choice{}); !strings.HasSuffix(got, ", as long as it only uses the clipboard and sees the screen") {
		t.Errorf("with another effect: %q", got)
	}
	rule.Effects = ""
	if got := policy.RuleWords(rule, consent.Choice{}); got != "See the screens of this computer, whichever they are, in sessions for /project" {
		t.Errorf("a denial: %q", got)
	}
}
