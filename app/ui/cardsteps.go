package ui

import (
	"regexp"
	"slices"
	"strings"

	"fyne.io/fyne/v2"

	"localpc/app/ui/kit"
	"localpc/consent"
)

const (
	// mostSteps are drawn at once; more have to be opened.
	mostSteps = 8
	// mostFlows are drawn as sentences; what is beyond goes into a box that
	// scrolls, which draws only what is in sight.
	mostFlows = 60
)

// steps say what happens, one numbered sentence a part. There may be more than
// a card has room for: then the rest has to be opened before it allows.
func (b *actionBody) steps(w float32) fyne.CanvasObject {
	b.stepsBox = kit.Column(6)
	b.drawSteps(w)
	return b.stepsBox
}

const readSteps = "steps"

func (b *actionBody) drawSteps(w float32) {
	r := b.o.card.Request
	lines, sum := summed(r)
	if len(lines) == 0 {
		b.stepsBox.Objects = effectLines(w, r)
		return
	}
	cut := len(lines) > mostSteps+1 && !b.o.read.seen[readSteps]
	var out []fyne.CanvasObject
	n := min(len(lines), mostFlows)
	if cut {
		n = mostSteps
	}
	for i, l := range lines[:n] {
		if len(lines) == 1 {
			out = append(out, kit.NewFlow(w, kit.Body, counted(l)...))
			break
		}
		out = append(out, kit.Numbered(i+1, kit.NewFlow(w-kit.Indent, kit.Body, counted(l)...)))
	}
	switch {
	case cut:
		open := func() {
			b.o.read.seen[readSteps] = true
			b.drawSteps(w)
			b.stepsBox.Refresh()
			b.o.grown()
		}
		more := kit.NewButton("and "+itoa(len(lines)-n)+" more steps", kit.Link, open).WithKeys(b.o.keys)
		row := kit.Row(0, more, kit.Space())
		out = append(out, kit.Pad(0, 0, 0, kit.Indent, row))
		b.o.more(readSteps, row, open)
	case n < len(lines):
		rest := make([]string, 0, len(lines)-n)
		for i, l := range lines[n:] {
			rest = append(rest, itoa(n+i+1)+"  "+l)
		}
		box := kit.NewExactList(w, 2*mostExact, b.o.keys, rest)
		b.o.scrolls("more steps", box)
		out = append(out, box)
	}
	if len(sum) > 0 {
		all := kit.Column(2)
		if len(lines) > 1 {
			all.Add(kit.NewFlow(w, kit.Small, kit.Plain("In all", kit.Dim)))
		}
		for _, e := range sum {
			all.Add(kit.NewFlow(w, kit.Body, counted(capital(e))...))
		}
		out = append(out, kit.Pad(4, 0, 0, 0, all))
	}
	b.stepsBox.Objects = out
}

// summed are a request's steps, and the effects that none of them tells: what
// happens all together, and whether it can be undone.
func summed(r consent.Request) (steps, inAll []string) {
	var effects []string
	for _, e := range r.Effects {
		switch e.Kind {
		case consent.EffectRun, consent.EffectRead, consent.EffectCreate, consent.EffectOwn:
			continue
		}
		effects = append(effects, e.Text)
	}
	return untold(r.Steps, effects)
}

// untold are the steps, and the effects that none of them tells. Where a step
// tells all but whether it can be undone, that is said there.
func untold(of, effects []string) (steps, rest []string) {
	steps, words := slices.Clone(of), wordsOfAll(of)
	for _, e := range effects {
		if teller(e, words) >= 0 {
			continue
		}
		if cut := strings.LastIndex(e, "; "); cut > 0 {
			if i := teller(e[:cut], words); i >= 0 {
				steps[i] += e[cut:]
				words[i] = wordsOf(steps[i])
				continue
			}
		}
		rest = append(rest, e)
	}
	return steps, rest
}

// effectLines are the effects in words, numbered where there are several. That
// a command runs, or that folders are named, is what the sentence says; alone
// it is not said again.
func effectLines(w float32, r consent.Request) []fyne.CanvasObject {
	effects := r.Effects
	if len(effects) == 1 && (effects[0].Kind == consent.EffectRun || r.Capability == consent.CapabilityFolders) {
		return nil
	}
	var out []fyne.CanvasObject
	for i, e := range effects {
		if len(effects) == 1 {
			return []fyne.CanvasObject{kit.NewFlow(w, kit.Body, counted(capital(e.Text))...)}
		}
		out = append(out, kit.Numbered(i+1, kit.NewFlow(w-kit.Indent, kit.Body, counted(capital(e.Text))...)))
	}
	return out
}

// changing are the words that effects which change files begin with. Their step
// begins so, too: a file's name in another one must not hide them.
var changing = []string{"deletes", "replaces", "changes", "cuts", "moves"}

// teller is the first of the steps, of each its words, that has every word of an
// effect; -1 for none.
func teller(effect string, steps [][]string) int {
	words := wordsOf(effect)
	return slices.IndexFunc(steps, func(step []string) bool {
		if len(words) == 0 || len(step) == 0 || slices.Contains(changing, words[0]) && step[0] != words[0] {
			return false
		}
		return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(step, w) })
	})
}

func wordsOfAll(steps []string) [][]string {
	out := make([][]string, len(steps))
	for i, s := range steps {
		out[i] = wordsOf(s)
	}
	return out
}

func wordsOf(s string) []string {
	var out []string
	for _, w := range strings.Fields(strings.ToLower(s)) {
		w = strings.Trim(w, ".,;:()“”\"")
		if w != "" && w != "cannot" && w != "can't" {
			out = append(out, w)
		} else if w != "" {
			out = append(out, "cannot")
		}
	}
	return out
}

// amounts are what is set bold in a step: how many, how much, and whether it
// can be undone.
var amounts = regexp.MustCompile(`\b\d[\d.,]*\+? (?:files?|folders?|names?|entries|items?|links?|commits?|lines?|bytes?|times?|B|KB|MB|GB|TB)\b|\b[Cc](?:an't|annot|an) be undone\b`)

// counted is a sentence from elsewhere with its amounts bold.
func counted(s string) []kit.Span {
	var out []kit.Span
	at := 0
	for _, m := range amounts.FindAllStringIndex(s, -1) {
		out = append(out, kit.Remote(s[at:m[0]], kit.Plain("", kit.Ink))...)
		out = append(out, kit.Remote(s[m[0]:m[1]], kit.Bold("", kit.Ink))...)
		at = m[1]
	}
	return append(out, kit.Remote(s[at:], kit.Plain("", kit.Ink))...)
}
