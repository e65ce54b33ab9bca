package ui

import (
	"reflect"
	"slices"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// fewer says that next is the card now, of which at most some of the folded
// requests have gone.
func fewer(now, next desklink.Card) bool {
	a, b := now.Request, next.Request
	b.Deadline = a.Deadline
	if !reflect.DeepEqual(a, b) {
		return false
	}
	for _, f := range next.Folded {
		found := false
		for _, g := range now.Folded {
			found = found || reflect.DeepEqual(f, g)
		}
		if !found {
			return false
		}
	}
	return len(next.Folded) <= len(now.Folded) && next.FolderOnly == now.FolderOnly &&
		next.ContainProblem == now.ContainProblem && reflect.DeepEqual(next.Folders, now.Folders)
}

// asked is how many requests a card answers.
func asked(c desklink.Card) int { return 1 + len(c.Folded) }

// cardSentence is what a card asks, in a sentence: of one request its own, of
// several how many.
func cardSentence(c desklink.Card) string {
	r, n := c.Request, itoa(asked(c))
	if len(c.Folded) == 0 {
		return r.Sentence
	}
	words := "do " + n + " things"
	switch {
	case r.Capability == capNetwork:
		words = "make " + n + " connections"
	case r.Action == "run" && hasEffect(r, consent.EffectDelete):
		words = "run " + n + " commands that delete files"
	case r.Action == "run" && hasEffect(r, consent.EffectOverwrite):
		words = "run " + n + " commands that replace files"
	case r.Action == "run":
		words = "run " + n + " commands"
	case r.Action == "write" && hasEffect(r, consent.EffectOverwrite):
		words = "replace " + n + " files"
	case r.Action == "write":
		words = "write " + n + " files"
	case r.Action == "mkdir":
		words = "make " + n + " folders"
	case r.Action == "read":
		words = "read " + n + " files"
	case r.Action == "list":
		words = "see what is in " + n + " folders"
	case r.Action == "delete", r.Action == "move":
		words = r.Action + " " + n + " files or folders"
	case r.Action == "stat":
		words = "know what " + n + " files or folders are"
	}
	return r.Principal.Name + " wants to " + words
}

// shared are the details that all requests of a card have: they stand once,
// below them.
func shared(c desklink.Card) []string {
	return slices.DeleteFunc(slices.Clone(c.Request.Details), func(l string) bool {
		return slices.ContainsFunc(c.Folded, func(f snapshot.Folded) bool { return !slices.Contains(f.Details, l) })
	})
}

// folded lists all that a card of several requests answers, each whole.
func (b *actionBody) folded(w float32) fyne.CanvasObject {
	r := b.o.card.Request
	head := snapshot.Folded{ID: r.ID, Title: r.Title, Exact: r.Exact, Steps: r.Steps, Details: r.Details}
	for _, e := range r.Effects {
		head.Effects = append(head.Effects, e.Text)
	}
	col, all := kit.Column(12), shared(b.o.card)
	for i, f := range append([]snapshot.Folded{head}, b.o.card.Folded...) {
		f.Details = slices.DeleteFunc(slices.Clone(f.Details), func(l string) bool { return slices.Contains(all, l) })
		col.Add(kit.Numbered(i+1, b.one(w-kit.Indent, f)))
	}
	return col
}

// one is one of several requests: its title, what it does, and the exact text.
func (b *actionBody) one(w float32, f snapshot.Folded) fyne.CanvasObject {
	col := kit.Column(4, kit.NewFlow(w, kit.Body, kit.Remote(f.Title, kit.Bold("", kit.Ink))...))
	lines, rest := untold(f.Steps, f.Effects)
	for _, e := range rest {
		lines = append(lines, capital(e))
	}
	lines = append(lines, f.Details...)
	plain, exact := sortDetails(lines)
	if len(plain) > 0 {
		var spans []kit.Span
		for i, l := range plain {
			if i > 0 {
				spans = append(spans, kit.Plain("\n", kit.Ink))
			}
			spans = append(spans, counted(l)...)
		}
		col.Add(kit.NewFlow(w, kit.Small, spans...))
	}
	if len(exact) > 0 {
		box := kit.NewExactList(w, 4, b.o.keys, exact)
		b.o.scrolls("details "+f.ID, box)
		col.Add(box)
	}
	if strings.TrimSpace(f.Exact) != "" {
		box := kit.NewExact(w, 4, b.o.keys, f.Exact)
		b.o.scrolls("exact "+f.ID, box)
		col.Add(kit.Pad(2, 0, 0, 0, box))
	}
	return col
}
