package control

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"localpc/app/snapshot"
	"localpc/consent"
)

// WriteCard writes a question for a terminal: everything a card shows, with
// nothing in it that a terminal obeys.
func WriteCard(w io.Writer, c Card, digits string) {
	r := c.Request
	v := func(s string) string { return consent.Visible(s, false) }
	fmt.Fprintf(w, "\n── %s ──\n", v(r.Principal.Name))
	if r.Claims.Agent != "" {
		fmt.Fprintf(w, "   calls itself “%s”\n", v(r.Claims.Agent))
	}
	if r.Claims.Title != "" {
		fmt.Fprintf(w, "   about “%s”\n", v(r.Claims.Title))
	}
	fmt.Fprintf(w, "%s\n", v(r.Sentence))
	var effects []string
	for _, e := range r.Effects {
		effects = append(effects, e.Text)
	}
	writeWhat(w, "  ", r.Steps, effects, r.Exact, r.Details)
	if c.Info.ContainProblem != "" && r.Action == "run" {
		fmt.Fprintf(w, "  %s\n", v(c.Info.ContainProblem))
	}
	if r.Capability == consent.CapabilitySession {
		writeSessionChoices(w, c, digits)
		return
	}
	if r.Folder != "" && r.Capability != consent.CapabilityComputer {
		home, _ := os.UserHomeDir() // without one, paths are whole
		fmt.Fprintf(w, "  in %s\n", v(consent.HomePath(home, r.Folder)))
	}
	for i, s := range r.Screens {
		fmt.Fprintf(w, "  #%d: %s\n", i+1, v(s.Label))
	}
	if n := len(c.Info.Folded); n > 0 {
		fmt.Fprintf(w, "And %s; the answer is for all %d:\n", moreWords(n), n+1)
		for i, f := range c.Info.Folded {
			fmt.Fprintf(w, "  (%d) %s\n", i+2, v(f.Title))
			writeWhat(w, "      ", f.Steps, f.Effects, f.Exact, f.Details)
		}
	}
	writeChoices(w, c, digits)
}

// writeWhat writes what a request would do, and its exact text.
func writeWhat(w io.Writer, indent string, steps, effects []string, exact string, details []string) {
	for i, s := range steps {
		fmt.Fprintf(w, "%s%d. %s\n", indent, i+1, consent.Visible(s, false))
	}
	for _, e := range effects {
		fmt.Fprintf(w, "%s• %s\n", indent, consent.Visible(e, false))
	}
	if exact != "" {
		in := "\n" + indent + "  "
		fmt.Fprintf(w, "%s%s\n\n", in, strings.ReplaceAll(consent.Visible(exact, true), "\n", in))
	}
	for _, d := range details {
		fmt.Fprintf(w, "%s%s\n", indent, consent.Visible(d, false))
	}
}

func writeSessionChoices(w io.Writer, c Card, digits string) {
	for i, f := range c.Info.Folders {
		if c.Info.FolderOnly {
			fmt.Fprintf(w, "  folder: %s\n", consent.Visible(f, false))
			continue
		}
		fmt.Fprintf(w, "  folder %d: %s\n", i+1, consent.Visible(f, false))
	}
	fmt.Fprintf(w, "Type  %[1]s w  to let it work in the folder,  %[1]s l  to look only,  %[1]s a  to be asked each time.\n", digits)
	fmt.Fprintf(w, "Type  %s t  to trust it for 15 minutes: it then changes and deletes in the folder without asking.\n", digits)
	if c.Info.FolderOnly {
		fmt.Fprint(w, "Add  r  to remember.")
	} else {
		fmt.Fprint(w, "Add a folder's number, and  r  to remember; or end the line with the path of another folder.")
	}
	fmt.Fprint(w, "\nd  declines,  d 15  for 15 minutes.\n> ")
}

// scopeTyped is what is typed for a scope, and what it means.
var scopeTyped = []struct {
	scope       consent.Scope
	typed, word string
}{
	{consent.Command, "c", "as long as this command runs"},
	{consent.Session, "s", "this session"},
	{consent.Minutes15, "15", "15 minutes"},
	{consent.Always, "a", "always"},
}

func writeChoices(w io.Writer, c Card, digits string) {
	r := c.Request
	what := "this"
	if n := len(c.Info.Folded); n > 0 {
		what = fmt.Sprintf("all %d", n+1)
	}
	fmt.Fprintf(w, "Type  %s  to allow %s %s.", digits, what, usualWords(r))
	var lasting []string
	for _, s := range scopeTyped {
		if !slices.Contains(r.Scopes, s.scope) || s.scope == usual(r) {
			continue
		}
		word := s.word
		if s.scope == consent.Session {
			word = sessionWords(r)
		}
		fmt.Fprintf(w, "  %s %s : %s.", digits, s.typed, word)
		if s.scope != consent.Command {
			lasting = append(lasting, s.typed)
		}
	}
	if r.Wide != nil && r.Risk < consent.RiskHigh && len(lasting) > 0 {
		fmt.Fprintf(w, "\nAdd  wide  (%s %s wide) to allow more than this: %s.", digits, lasting[0], consent.Visible(r.WideWords, false))
	}
	if r.FullOffered && r.Containable {
		fmt.Fprint(w, "  Add  full  for full access: it can then do whatever you can do.")
	} else if r.FullOffered {
		fmt.Fprint(w, "  It runs with full access: it can do whatever you can do.")
	}
	if len(r.Screens) > 1 {
		fmt.Fprintf(w, "\nAdd  #1  or the number of another screen to show only that; without one, it is for %s.", screensWords(r))
	}
	switch {
	case r.Session == "":
		fmt.Fprint(w, "\nd  declines.\n> ")
	case r.Capability == consent.CapabilityFolders:
		fmt.Fprint(w, "\nd  declines,  d s  until this program ends.\n> ")
	case c.Info.Denied >= snapshot.DeniedOften:
		fmt.Fprintf(w, "\nd  declines,  d s  for the whole session.\nYou have declined %d times in a row.  d e  declines and ends this session.\n> ", c.Info.Denied)
	default:
		fmt.Fprint(w, "\nd  declines,  d s  for the whole session.\n> ")
	}
}

// usualScreens are the numbers of the screens of an answer that names none:
// those that were chosen beforehand, or all of them.
func usualScreens(r consent.Request) []int {
	var chosen, all []int
	for i, s := range r.Screens {
		if all = append(all, i+1); s.Chosen {
			chosen = append(chosen, i+1)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	return all
}

func screensWords(r consent.Request) string {
	numbers := usualScreens(r)
	if len(numbers) == len(r.Screens) {
		return "all screens"
	}
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprintf("#%d", n))
	}
	return strings.Join(words, ", ")
}

// usualWords say how long an answer holds that names no scope.
func usualWords(r consent.Request) string {
	scope := usual(r)
	for _, s := range scopeTyped {
		switch {
		case s.scope != scope:
		case scope == consent.Session && r.Capability != consent.CapabilityFolders, scope == consent.Minutes15:
			return "for " + s.word
		case scope == consent.Session:
			return sessionWords(r)
		default:
			return s.word
		}
	}
	return "once"
}

// moreWords counts the folded requests of a card.
func moreWords(n int) string {
	switch n {
	case 0:
		return "no other"
	case 1:
		return "1 more like it"
	}
	return fmt.Sprintf("%d more like it", n)
}

func sessionWords(r consent.Request) string {
	if r.Capability == consent.CapabilityFolders {
		return "until this program ends"
	}
	return "this session"
}
