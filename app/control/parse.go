package control

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"localpc/consent"
)

// howTo says what can be typed, to somebody who typed something else.
func howTo(digits string, r consent.Request) string {
	if r.Capability == consent.CapabilitySession {
		return fmt.Sprintf("Type %[1]s w, %[1]s t, %[1]s l or %[1]s a to start, or d to decline.", digits)
	}
	return "Type " + digits + " to allow, or d to decline."
}

// ParseAnswer reads a line typed under a card. A line that is neither a yes
// nor a no gives a complaint instead, and the card stays open.
func ParseAnswer(line, digits string, c Card) (a consent.Answer, complaint string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return a, howTo(digits, c.Request)
	}
	a.Via = "terminal"
	switch strings.ToLower(words[0]) {
	case "d", "n", "no", "deny", "decline":
		return denial(words[1:], a, c.Request), ""
	case digits:
	default:
		return a, howTo(digits, c.Request)
	}
	a.Allow = true
	if c.Request.Capability == consent.CapabilitySession {
		return sessionAnswer(line, words[1:], a, c)
	}
	return actionAnswer(words[1:], a, c.Request)
}

// denial is a no, whatever else stands in its line: a word that is not known is
// not worth another question.
func denial(words []string, a consent.Answer, r consent.Request) consent.Answer {
	opens := r.Capability == consent.CapabilitySession
	a.Choice.Scope = consent.Once
	for _, w := range words {
		switch w = strings.ToLower(w); {
		case w == "s" && !opens:
			a.Choice.Scope = consent.Session
		case w == "15" && opens:
			a.Choice.Scope = consent.Minutes15
		case w == "e" && !opens && r.Session != "":
			a.Choice.End = true
		}
	}
	return a
}

// usual is the scope of an answer that names none.
func usual(r consent.Request) consent.Scope {
	if len(r.Scopes) > 0 && !slices.Contains(r.Scopes, consent.Once) {
		return r.Scopes[0]
	}
	return consent.Once
}

func actionAnswer(words []string, a consent.Answer, r consent.Request) (consent.Answer, string) {
	a.Choice.Scope = usual(r)
	if r.Containable {
		a.Choice.Contain = consent.Contained
	} else if r.FullOffered {
		a.Choice.Contain = consent.FullAccess
	}
	var screens []int
	for _, w := range words {
		if n, ok := strings.CutPrefix(w, "#"); ok {
			i, err := strconv.Atoi(n)
			if err != nil || i < 1 || i > len(r.Screens) {
				return a, notOffered(w)
			}
			screens = append(screens, i)
			continue
		}
		switch strings.ToLower(w) {
		case "c":
			a.Choice.Scope = consent.Command
		case "s":
			a.Choice.Scope = consent.Session
		case "15":
			a.Choice.Scope = consent.Minutes15
		case "a":
			a.Choice.Scope = consent.Always
		case "full":
			a.Choice.Contain = consent.FullAccess
		case "wide":
			a.Choice.Wide = true
		default:
			return a, notOffered(w)
		}
	}
	if len(screens) == 0 {
		screens = usualScreens(r)
	}
	var names []string
	for _, n := range screens {
		names = append(names, r.Screens[n-1].Name)
	}
	a.Choice.Screens = consent.JoinScreens(names)
	// What the card does not offer would be refused by the gate, and the
	// question would be gone.
	switch c := a.Choice; {
	case c.Scope != consent.Once && !slices.Contains(r.Scopes, c.Scope):
		return a, "That is not offered for this question."
	case c.Contain == consent.FullAccess && !r.FullOffered:
		return a, "Full access is not offered for this question."
	case c.Contain == consent.FullAccess && c.Scope != consent.Once && c.Scope != consent.Session:
		return a, "Full access is at most for this session."
	case c.Scope == consent.Always && r.Risk >= consent.RiskHigh:
		return a, "This can't be allowed always."
	case c.Wide && (r.Wide == nil || r.Risk >= consent.RiskHigh):
		return a, notOffered("wide")
	case c.Wide && c.Contain == consent.FullAccess:
		return a, "With full access only this exact text can be allowed; leave out wide or full."
	case c.Wide && (c.Scope == consent.Once || c.Scope == consent.Command):
		return a, "Say for how long, too: wide goes with s, 15 or a."
	}
	return a, ""
}

func notOffered(word string) string {
	return "“" + consent.Visible(word, false) + "” is not one of the choices."
}

func sessionAnswer(line string, words []string, a consent.Answer, c Card) (consent.Answer, string) {
	if len(c.Info.Folders) > 0 {
		a.Choice.Folder = c.Info.Folders[0]
	}
	a.Choice.Scope = consent.Session
	for _, w := range words {
		switch strings.ToLower(w) {
		case "w":
			a.Choice.Mode = consent.ModeWork
		case "t":
			a.Choice.Mode = consent.ModeTrusted
		case "l":
			a.Choice.Mode = consent.ModeLook
		case "a":
			a.Choice.Mode = consent.ModeAsk
		case "r":
			a.Choice.Remember = true
		default:
			if c.Info.FolderOnly {
				if _, err := strconv.Atoi(w); err == nil || filepath.IsAbs(w) {
					return a, "This is about that one folder; no other can be chosen here."
				}
				return a, notOffered(w)
			}
			if n, err := strconv.Atoi(w); err == nil && n >= 1 && n <= len(c.Info.Folders) {
				a.Choice.Folder = c.Info.Folders[n-1]
				continue
			}
			if filepath.IsAbs(w) {
				// The path goes to the end of the line: it may hold spaces.
				a.Choice.Folder = strings.TrimSpace(line[pathAt(line):])
				// The machine takes no link: it may be a program's.
				if real, err := filepath.EvalSymlinks(a.Choice.Folder); err == nil && real != filepath.Clean(a.Choice.Folder) {
					return a, "That leads through a link to " + consent.Visible(real, false) + "; type that if you mean it."
				}
				if a.Choice.Mode == "" {
					return a, "Say how, before the path: w, t, l or a."
				}
				return a, ""
			}
			return a, notOffered(w)
		}
	}
	if a.Choice.Mode == "" {
		return a, "Say how: w to let it work in the folder, t to trust it for 15 minutes, l to look only, a to be asked each time."
	}
	if a.Choice.Folder == "" {
		return a, "Name a folder by its path."
	}
	return a, ""
}

// pathAt is where the first word that begins with a slash begins.
func pathAt(line string) int {
	start := true
	for i, r := range line {
		if r == '/' && start {
			return i
		}
		start = unicode.IsSpace(r)
	}
	return len(line)
}
