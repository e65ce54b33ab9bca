package policy

import (
	"strings"

	"localpc/consent"
)

const (
	actionSee   = "see"
	actionHands = "act"
	actionCopy  = "clipboard-write"
	actionPaste = "clipboard-read"
	// handsRule is the exact text of the permission for mouse and keyboard as a
	// whole; another one names a single action.
	handsRule = "mouse and keyboard"
	// onlyScreen is what a screen is called where the system has no name for it.
	onlyScreen = "default"
)

// computerEffects are what an action of the computer does by its nature: a rule
// that holds for just these needs no words about them.
var computerEffects = map[string]string{
	actionSee: string(consent.EffectSee), actionHands: string(consent.EffectControl), actionLaunch: string(consent.EffectControl) + ", " + string(consent.EffectRun),
	actionCopy: string(consent.EffectClipboard), actionPaste: string(consent.EffectClipboard),
}

// computerWords word what a rule of the computer allows or denies, "" for one
// that is not known.
func computerWords(r consent.Rule) string {
	// A denial, which has no effects, is of the same thing whatever it names; so
	// is a broad rule.
	whole := r.Wide || r.Effects == ""
	switch r.Action {
	case actionSee:
		names, ok := strings.CutPrefix(r.Exact, consent.ScreensRule(""))
		if whole || !ok || names == "" {
			return "See the screens of this computer, whichever they are"
		}
		return seeWords(strings.Split(names, ", "))
	case actionHands:
		if whole || r.Exact == handsRule || r.Exact == "" {
			return "Use the mouse and keyboard of this computer"
		}
		return "Do exactly this with mouse and keyboard: `" + consent.Visible(r.Exact, false) + "`"
	case actionLaunch:
		if r.Exact == "" {
			return "Start programs on this computer"
		}
		return "Start the program `" + consent.Visible(r.Exact, false) + "`"
	case actionPaste:
		return "Read what you have copied (the clipboard)"
	case actionCopy:
		return "Replace what you have copied (the clipboard)"
	case actionCheck:
		return "Learn whether pictures, mouse and keyboard work on this computer"
	case "":
		return "Use the screen, mouse, keyboard and clipboard of this computer"
	}
	return ""
}

// seeWords name the screens of a rule.
func seeWords(names []string) string {
	if len(names) == 1 && names[0] == onlyScreen {
		return "See the screen of this computer"
	}
	var quoted []string
	for _, n := range names {
		quoted = append(quoted, "“"+consent.Visible(n, false)+"”")
	}
	last := len(quoted) - 1
	if last == 0 {
		return "See the screen " + quoted[0] + " of this computer"
	}
	return "See the screens " + strings.Join(quoted[:last], ", ") + " and " + quoted[last] + " of this computer"
}
