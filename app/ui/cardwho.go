package ui

import (
	"path/filepath"
	"slices"

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
	place := []kit.Span{kit.Plain("through ", kit.Dim)}
	place = append(place, kit.Remote(hubName(r), kit.Plain("", kit.Dim))...)
	if r.Capability != consent.CapabilitySession && r.Folder != "" {
		place = append(place, kit.Plain(" · folder ", kit.Dim))
		place = append(place, kit.Remote(filepath.Base(r.Folder), kit.Plain("", kit.Dim))...)
	}
	who.Add(kit.NewLine(w, kit.Small, 2, place...))
	return kit.Pad(0, 0, 16, 0, kit.Row(12, kit.Initial(r.Principal.Name), kit.Grow(who), o.closes))
}

func hubName(r consent.Request) string {
	switch {
	case r.HubName != "":
		return r.HubName
	case r.Hub == "this":
		return "this computer only"
	}
	return r.Hub
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
	add("calls itself", c.Agent)
	add("task", c.Title)
	return out
}

// details are a request's own, and what the header may have cut short, whole.
func details(r consent.Request) []string {
	const long = 60
	out := slices.Clone(r.Details)
	for _, n := range []struct{ is, text string }{{"Asked by", r.Principal.Name}, {"Calls itself", r.Claims.Agent}, {"Task", r.Claims.Title}, {"Hub", r.HubName}, {"Folder", r.Folder}} {
		if len(n.text) > long || n.is == "Folder" && r.Capability != consent.CapabilitySession && n.text != "" {
			out = append(out, n.is+": "+n.text)
		}
	}
	return out
}
