package ui

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/ui/kit"
	"localpc/consent"
)

// header says who asks: the name that a key proves, then in quotes what the
// program says about itself, then the hub and the folder.
func (o *openCard) header() fyne.CanvasObject {
	r := o.card.Request
	w := o.width - 36 - 12 - 124 - 12
	name := kit.NewLine(w, kit.Body, 2, kit.Remote(r.Principal.Name, kit.Bold("", kit.Ink))...)
	who := kit.Column(1, name)
	if claims := claimSpans(r.Claims); len(claims) > 0 {
		who.Add(kit.NewLine(w, kit.Small, 2, claims...))
	}
	place := kit.Remote(hubName(r), kit.Plain("", kit.Dim))
	if r.Capability != consent.CapabilitySession && r.Folder != "" {
		place = append(place, kit.Plain(" · folder ", kit.Dim))
		place = append(place, kit.Remote(filepath.Base(r.Folder), kit.Plain("", kit.Dim))...)
	}
	who.Add(kit.NewLine(w, kit.Small, 2, place...))
	return kit.Pad(0, 0, 16, 0, kit.Row(12, kit.Initial(r.Principal.Name), kit.Grow(who), o.closes))
}

func hubName(r consent.Request) string {
	switch {
	case r.Hub == "this":
		return "This computer only"
	case r.HubName != "":
		return "Hub " + r.HubName
	}
	return "Hub " + r.Hub
}

func claimSpans(c consent.Claims) []kit.Span {
	var out []kit.Span
	add := func(before, text string) {
		if text == "" {
			return
		}
		if len(out) > 0 {
			before = " · " + before
		}
		out = append(out, kit.Plain(before+" “", kit.Dim))
		out = append(out, kit.Remote(text, kit.Plain("", kit.Dim))...)
		out = append(out, kit.Plain("”", kit.Dim))
	}
	add("calls itself", ownName(c.Agent))
	add("task", c.Title)
	return out
}

// kitName is what a program says that has no name of its own: that of the kit it
// is built with.
var kitName = regexp.MustCompile(`^e2b-[a-z]+-sdk/[0-9A-Za-z.+-]+$`)

// ownName is what a program calls itself; "" where that is not its own name, and
// tells a person nothing.
func ownName(agent string) string {
	if kitName.MatchString(agent) {
		return ""
	}
	return agent
}

// details are a request's own, and what the header may have cut short, whole.
func details(r consent.Request) []string {
	const long = 60
	out := slices.Clone(r.Details)
	for _, n := range []struct{ is, text string }{{"Asked by", r.Principal.Name}, {"Calls itself", r.Claims.Agent}, {"Task", r.Claims.Title}, {"Hub", r.HubName}, {"Folder", r.Folder}} {
		whole := n.is == "Folder" && r.Capability != consent.CapabilitySession && r.Capability != consent.CapabilityComputer && n.text != "" && !slices.Contains(r.Details, workingIn+n.text)
		if len(n.text) > long || whole {
			out = append(out, n.is+": "+n.text)
		}
	}
	return out
}

// atHome is a detail that says where something is, as people write that.
func atHome(line string) string {
	for _, begins := range []string{workingIn, "Folder: "} {
		if folder, ok := strings.CutPrefix(line, begins); ok {
			home, _ := os.UserHomeDir() // without one, paths are whole
			return begins + consent.HomePath(home, folder)
		}
	}
	return line
}

// workingIn begins the detail that names a command's folder.
const workingIn = "Working in "

// mostPlain is how many details are drawn as sentences; more go into a box that
// scrolls.
const mostPlain = 6

// sortDetails parts sentences from what has to be read letter by letter:
// assignments, long lines, and lines in which spaces count.
func sortDetails(lines []string) (plain, exact []string) {
	for _, l := range lines {
		l = atHome(l)
		if len(l) > 200 || strings.Contains(l, "=") || strings.Contains(l, "  ") || len(plain) == mostPlain {
			exact = append(exact, l)
		} else {
			plain = append(plain, l)
		}
	}
	return plain, exact
}

// sentences are lines as one paragraph each.
func sentences(lines []string, ink fyne.ThemeColorName) []kit.Span {
	var out []kit.Span
	for i, l := range lines {
		if i > 0 {
			out = append(out, kit.Plain("\n", ink))
		}
		out = append(out, kit.Remote(l, kit.Plain("", ink))...)
	}
	return out
}

// addDetails draws a request's details below what col holds.
func (o *openCard) addDetails(col *fyne.Container, r consent.Request) {
	plain, exact := sortDetails(details(r))
	if len(plain)+len(exact) == 0 {
		return
	}
	col.Add(section(o.width, "Details"))
	if len(plain) > 0 {
		col.Add(kit.NewFlow(o.width, kit.Small, sentences(plain, kit.Ink)...))
	}
	if len(exact) > 0 {
		box := kit.NewExactList(o.width, 4, o.keys, exact)
		o.scrolls("details "+r.ID, box)
		col.Add(kit.Pad(6, 0, 0, 0, box))
	}
}
