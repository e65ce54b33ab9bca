package policy

import (
	"slices"
	"strings"

	"localpc/consent"
)

// ModeWords is a mode as the session card words it.
func ModeWords(m consent.Mode) string {
	switch m {
	case consent.ModeLook:
		return "Look only"
	case consent.ModeWork:
		return "Work in this folder"
	case consent.ModeAsk:
		return "Ask me each time"
	case consent.ModeTrusted:
		return "Trusted for 15 minutes"
	}
	return string(m)
}

// ScopeWords is a scope in a sentence.
func ScopeWords(s consent.Scope) string {
	switch s {
	case consent.Command:
		return "until its command has ended"
	case consent.Session:
		return "for this session"
	case consent.Minutes15:
		return "for 15 minutes"
	case consent.Always:
		return "always"
	}
	return "once"
}

// effectWords are the kinds of effects of a rule: "reads, creates and replaces
// its own".
func effectWords(kinds string) string {
	words := map[string]string{"read": "reads", "create": "creates", "overwrite": "replaces", "delete": "deletes", "move": "moves",
		"startup": "changes what other programs run", "env": "sets variables", "run": "runs programs", "access": "changes who may use files",
		"connect": "connects", "settings": "changes settings", "install": "installs or removes programs", "root": "asks for administrator rights",
		"see": "sees the screen", "control": "uses mouse and keyboard", "clipboard": "uses the clipboard",
		"unknown": "does what can't be told beforehand", "own": "ends or prolongs what it started itself"}
	all := strings.Split(kinds, ", ")
	var out []string
	for _, kind := range all {
		name, own := strings.CutPrefix(kind, "own ")
		if own && slices.Contains(all, name) {
			continue // the same of anything is said already
		}
		word := words[name]
		if word == "" {
			word = consent.Visible(name, false)
		}
		if own {
			word += " its own"
		}
		out = append(out, word)
	}
	last := len(out) - 1
	if last < 1 {
		return strings.Join(out, "")
	}
	return strings.Join(out[:last], ", ") + " and " + out[last]
}

// actionWords begin the words of a rule, by its capability and action; what
// follows is the exact text, or for a broad rule the folder.
var actionWords = map[string]struct{ exact, wide string }{
	"shell run": {"Run", "Run commands"}, "files read": {"Read", "Read files"}, "files stat": {"Look at", "Look at files"}, "files list": {"List", "List folders"},
	"files search": {"Search in", "Search in folders"}, "files watch": {"Watch", "Watch folders"},
	"files write": {"Write", "Write files"}, "files mkdir": {"Make the folder", "Make folders"}, "files move": {"Move", "Move files"}, "files delete": {"Delete", "Delete files"},
	"files ": {"Use", "Use files"}, "network internet": {"Reach", "Reach the internet"}, "network home": {"Reach", "Reach the home network"},
	"network local": {"Reach", "Reach this computer's own programs"}, "network link": {"Reach", "Reach the network that this computer is plugged into"},
}

// placeWords say where a connection leads.
var placeWords = map[string]string{"internet": " on the internet", "home": " in the home network", "local": " on this computer itself", "link": " on the network that this computer is plugged into"}

// begin words what a rule allows or denies, before its conditions.
func begin(r consent.Rule) string {
	words, known := actionWords[r.Capability+" "+r.Action]
	if !known {
		action := r.Action
		if r.Wide && action == "" {
			action = "anything"
		}
		words.exact = consent.Visible(r.Capability, false) + ": " + consent.Visible(action, false)
		words.wide = words.exact
	}
	s, in := words.wide, " in "
	if r.Exact != "" {
		s = words.exact + " `" + consent.Visible(r.Exact, false) + "`"
	}
	if r.Capability == "network" && known {
		in = ", from "
		if r.Exact != "" {
			s += placeWords[r.Action]
		}
	}
	if r.Capability == consent.CapabilityComputer {
		in = ", in sessions for "
		if w := computerWords(r); w != "" {
			s = w
		}
	}
	if r.Folder != "" {
		s += in + consent.Visible(r.Folder, false)
	}
	return s
}

// AtHome is a rule for a person's eyes, with its folders as they write them.
func AtHome(r consent.Rule, home string) consent.Rule {
	r.Folder, r.Cwd = consent.HomePath(home, r.Folder), consent.HomePath(home, r.Cwd)
	return r
}

// RuleWords prints a rule exactly as it will match.
func RuleWords(r consent.Rule, c consent.Choice) string {
	if r.Capability == consent.CapabilitySession {
		if c.Mode == "" { // a denial
			if r.Folder == "" {
				return "Open a session"
			}
			return "Open a session in " + consent.Visible(r.Folder, false)
		}
		return "Open a session in " + consent.Visible(r.Folder, false) + ": " + ModeWords(c.Mode)
	}
	if r.Capability == consent.CapabilityFolders && r.Action == "browse" {
		return "See the names of folders on this computer"
	}
	s := begin(r)
	if r.Cwd != "" {
		s += ", working in " + consent.Visible(r.Cwd, false)
	}
	switch r.Contain {
	case consent.Contained:
		s += ", kept inside its folder"
	case consent.FullAccess:
		s += ", full access, as long as the scripts it names stay as they are"
	}
	if r.Env != "" {
		s += ", with " + consent.Visible(r.Env, false)
	}
	usual := r.Capability == consent.CapabilityComputer && r.Effects == computerEffects[r.Action]
	if r.Effects != "" && r.Capability != "network" && !usual { // a connection does nothing else
		s += ", as long as it only " + effectWords(r.Effects)
	}
	if r.Wide {
		s += ", and the risk is not high"
	}
	return s
}
