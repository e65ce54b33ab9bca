package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/ui/kit"
	"localpc/consent"
	"localpc/consent/policy"
)

// actionBody is the body of a card for one action of a session: a command, a
// file.
type actionBody struct {
	o       *openCard
	scopes  []consent.Scope
	scope   *kit.Segments
	where   *kit.Segments // nil: no choice
	full    bool
	chips   *fyne.Container
	warning *fyne.Container
	rule    *kit.Flow
	ruleBox *fyne.Container
	root    *fyne.Container
}

func newActionBody(o *openCard) *actionBody {
	r := o.card.Request
	b := &actionBody{o: o, scopes: r.Scopes}
	if len(b.scopes) == 0 {
		b.scopes = []consent.Scope{consent.Once}
	}
	b.full = r.FullOffered && !r.Containable
	return b
}

var scopeWords = map[consent.Scope]string{
	consent.Once: "Once", consent.Session: "This session", consent.Minutes15: "15 minutes", consent.Always: "Always",
}

const whileItRuns = "Until " + Name + " quits"

func (b *actionBody) content() fyne.CanvasObject {
	r, w := b.o.card.Request, b.o.width
	b.chips = container.NewStack()
	b.warning = kit.Column(0)
	col := kit.Column(0, title(w, r.Sentence), b.chips)
	if facts := b.facts(); facts != nil {
		col.Add(kit.Pad(16, 0, 0, 0, facts))
	}
	if r.Exact != "" {
		col.Add(section(w, exactWords(r)))
		col.Add(kit.NewExact(w, mostExact, b.o.keys, r.Exact))
	}
	b.o.addDetails(col)
	if p := b.o.card.ContainProblem; p != "" && r.Action == "run" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(w, kit.ToneWarn, kit.Remote(p, kit.Plain("", kit.Ink))...)))
	}
	if r.Containable && r.FullOffered {
		b.where = kit.NewSegments([]string{"Contained", "Full access"}, b.o.keys, func(i int) {
			b.full = i == 1
			b.changed()
		})
		col.Add(kit.Pad(16, 0, 0, 0, kit.Row(8, caption("It runs"), b.where)))
	}
	col.Add(b.warning)
	var words []string
	for _, s := range b.scopes {
		word := scopeWords[s]
		if s == consent.Session && r.Capability == consent.CapabilityFolders {
			word = whileItRuns
		}
		words = append(words, word)
	}
	b.scope = kit.NewSegments(words, b.o.keys, func(int) { b.changed() })
	if len(words) > 1 {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Row(8, caption("Allow for"), b.scope)))
	}
	b.rule = kit.NewFlow(w, kit.Small)
	b.ruleBox = kit.Pad(8, 0, 0, 0, b.rule)
	col.Add(b.ruleBox)
	b.root = col
	b.draw()
	return col
}

func (b *actionBody) changed() {
	b.draw()
	b.o.changed()
	b.o.refit()
}

// draw brings what depends on the choices up to date.
func (b *actionBody) draw() {
	r, w := b.o.card.Request, b.o.width
	for i, s := range b.scopes {
		// Full access is never remembered beyond the session.
		b.scope.Hide1(i, b.full && s != consent.Once && s != consent.Session)
	}
	if !b.scope.Offered(b.scope.Selected()) {
		b.scope.Select(0)
	}
	var chips []fyne.CanvasObject
	for _, c := range effectChips(r, b.full) {
		chips = append(chips, kit.NewChip(c.shape, c.word, c.tone))
	}
	b.chips.Objects = nil
	if len(chips) > 0 {
		b.chips.Objects = []fyne.CanvasObject{kit.Pad(8, 0, 0, 0, kit.Wrap(w, 8, chips...))}
	}
	b.chips.Refresh()
	b.warning.Objects = nil
	if b.full {
		b.warning.Objects = []fyne.CanvasObject{kit.Pad(12, 0, 0, 0, kit.Note(w, kit.ToneRisk,
			kit.Bold("Full access: ", kit.Ink),
			kit.Plain("it can do everything that you can do on this computer, in every folder and on the network, and it could even answer these cards.", kit.Ink)))}
	}
	b.warning.Refresh()
	c, _ := b.choice()
	if c.Scope == consent.Once {
		b.ruleBox.Hide()
	} else {
		rule := r.Rule
		rule.Contain = c.Contain
		spans := []kit.Span{kit.Plain("Remembers exactly this: ", kit.Dim)}
		b.rule.Set(append(spans, kit.Remote(policy.RuleWords(rule, c), kit.Plain("", kit.Dim))...)...)
		b.ruleBox.Show()
	}
}

func (b *actionBody) choice() (consent.Choice, bool) {
	r := b.o.card.Request
	c := consent.Choice{Scope: b.scopes[b.scope.Selected()]}
	switch {
	case b.full:
		c.Contain = consent.FullAccess
	case r.Containable:
		c.Contain = consent.Contained
	}
	return c, true
}

func (b *actionBody) allowWord() string {
	if b.full {
		return "Allow full access"
	}
	for _, e := range b.o.card.Request.Effects {
		if e.Kind == consent.EffectDelete && !e.Own {
			return "Allow deletion"
		}
	}
	return "Allow"
}

// facts are the effects in words, numbered where there are several. That a
// command runs, or that folders are named, is what the sentence says; alone it
// is not said again.
func (b *actionBody) facts() fyne.CanvasObject {
	col := kit.Column(6)
	effects := b.o.card.Request.Effects
	if len(effects) == 1 && (effects[0].Kind == consent.EffectRun || b.o.card.Request.Capability == consent.CapabilityFolders) {
		return nil
	}
	for i, e := range effects {
		text := kit.NewFlow(b.o.width-28, kit.Body, kit.Remote(capital(e.Text), kit.Plain("", kit.Ink))...)
		if len(effects) == 1 {
			col.Add(text)
			break
		}
		col.Add(kit.Row(8, kit.Width(20, kit.NewFlow(20, kit.Body, kit.Plain(itoa(i+1), kit.Dim))), kit.Grow(text)))
	}
	if len(effects) == 0 {
		return nil
	}
	return col
}

// mostExact is how many lines of the exact text show without scrolling.
const mostExact = 8

// exactWords head the exact text; of a long one they say how long it is.
func exactWords(r consent.Request) string {
	words := "Exactly this"
	switch {
	case r.Action == "run":
		words = "Exactly this runs"
	case r.Capability == consent.CapabilityFolders:
		words = "In these places"
	}
	if n := strings.Count(strings.TrimSuffix(r.Exact, "\n"), "\n") + 1; n > mostExact {
		words += " · " + itoa(n) + " lines, scroll to read all"
	}
	return words
}

// title is a card's sentence, set large; there it ends without a full stop.
func title(w float32, sentence string) fyne.CanvasObject {
	return kit.NewFlow(w, kit.Title, kit.Remote(strings.TrimSuffix(sentence, "."), kit.Bold("", kit.Ink))...)
}

type chip struct {
	shape, word string
	tone        kit.Tone
}

// effectChips sum the effects up in a few words.
func effectChips(r consent.Request, full bool) []chip {
	var out []chip
	seen := map[consent.EffectKind]bool{}
	if r.Capability == consent.CapabilityFolders {
		return []chip{{"●", "Names of folders, no contents", kit.ToneQuiet}}
	}
	for _, e := range r.Effects {
		if e.Own || seen[e.Kind] {
			continue
		}
		seen[e.Kind] = true
		switch e.Kind {
		case consent.EffectDelete:
			out = append(out, chip{"◆", "Deletes files", kit.ToneRisk})
		case consent.EffectStartup:
			out = append(out, chip{"◆", "Changes what other programs run", kit.ToneRisk})
		case consent.EffectOverwrite:
			out = append(out, chip{"▲", "Replaces contents", kit.ToneWarn})
		case consent.EffectMove:
			out = append(out, chip{"▲", "Moves files", kit.ToneWarn})
		case consent.EffectEnv:
			out = append(out, chip{"▲", "Changes its environment", kit.ToneWarn})
		case consent.EffectCreate:
			out = append(out, chip{"●", "Creates files", kit.ToneQuiet})
		case consent.EffectRead:
			out = append(out, chip{"●", "Reads files", kit.ToneQuiet})
		}
	}
	switch {
	case full:
		out = append(out, chip{"◆", "Full access", kit.ToneRisk})
	case r.Containable:
		out = append(out, chip{"●", "No network", kit.ToneOK}, chip{"●", "Stays in the folder", kit.ToneOK})
	}
	return out
}

// section is the small line above a box.
func section(w float32, words string) fyne.CanvasObject {
	return kit.Pad(16, 0, 6, 0, kit.NewFlow(w, kit.Small, kit.Plain(words, kit.Dim)))
}

func caption(words string) fyne.CanvasObject {
	return kit.Width(56, kit.NewFlow(80, kit.Small, kit.Plain(words, kit.Dim)))
}
