package ui

import (
	"os"
	"slices"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"localpc/app/ui/kit"
	"localpc/consent"
	"localpc/consent/policy"
)

// actionBody is the body of a card for one action of a session, or for several
// equal ones: a command, a file, a connection.
type actionBody struct {
	o      *openCard
	scopes []consent.Scope
	scope  *kit.Segments
	where  *kit.Segments // nil: no choice
	wide   *kit.Segments // nil: no broader rule is offered
	full   bool

	chips    *fyne.Container
	stepsBox *fyne.Container
	said     fyne.CanvasObject // the last that the card says, before its choices
	warning  *fyne.Container
	wideBox  *fyne.Container
	rule     *kit.Flow
	ruleBox  *fyne.Container
	screens  *screensPart // nil: no picture and no screens to choose from
}

// newActionBody makes the controls. They outlast a card that is drawn again.
func newActionBody(o *openCard) *actionBody {
	r := o.card.Request
	b := &actionBody{o: o, scopes: r.Scopes, full: r.FullOffered && !r.Containable}
	if len(b.scopes) == 0 {
		b.scopes = []consent.Scope{consent.Once}
	}
	if r.Containable && r.FullOffered {
		b.where = kit.NewSegments([]string{"Inside its folder", "Full access"}, o.keys, func(i int) {
			b.full = i == 1
			b.changed()
		})
	}
	if r.Looks || len(r.Screens) > 0 {
		b.screens = newScreensPart(o, b.changed)
	}
	var words []string
	for _, s := range b.scopes {
		word := scopeWords[s]
		if s == consent.Session && r.Capability == consent.CapabilityFolders {
			word = whileItRuns
		}
		words = append(words, word)
	}
	b.scope = kit.NewSegments(words, o.keys, func(int) { b.changed() })
	if at := slices.Index(b.scopes, consent.Session); at > 0 && r.Capability == consent.CapabilityComputer && r.Risk < consent.RiskHigh {
		b.scope.Select(at) // the screen, mouse and keyboard are asked for once a session
	}
	if r.Wide != nil {
		b.wide = kit.NewSegments([]string{"Exactly this", wideWord(r, o.width-captionWidth-8)}, o.keys, func(int) { b.changed() })
	}
	return b
}

var scopeWords = map[consent.Scope]string{
	consent.Once: "Once", consent.Command: "This command", consent.Session: "This session", consent.Minutes15: "15 minutes", consent.Always: "Always",
}

const whileItRuns = "Until " + Name + " quits"

// wideWord is the broader rule in a choice that is at most room wide. The rule
// is printed whole below it.
func wideWord(r consent.Request, room float32) string {
	word := capital(consent.Visible(r.WideWords, false))
	if word == "" || kit.NewSegments([]string{"Exactly this", word}, nil, nil).MinSize().Width > room {
		return "All of this kind"
	}
	return word
}

func (b *actionBody) content() fyne.CanvasObject {
	r, w := b.o.card.Request, b.o.width
	b.chips = container.NewStack()
	b.warning = kit.Column(0)
	chips := kit.Column(0, title(w, cardSentence(b.o.card)), b.chips)
	col := kit.Column(0, chips)
	switch {
	case len(b.o.card.Folded) > 0:
		col.Add(kit.Pad(16, 0, 0, 0, b.folded(w)))
		r.Details = shared(b.o.card) // the others stand with each
	case r.Capability == capNetwork:
		b.addPlace(col, w)
	case b.screens != nil:
		b.screens.add(col, w)
		if len(r.Screens) > 0 {
			_, _, r.Details = curtainWords(r) // it stands above
		}
		b.addExact(col, w)
	default:
		b.addExact(col, w)
	}
	b.o.addDetails(col, r)
	if p := b.o.card.ContainProblem; p != "" && r.Action == "run" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(w, kit.ToneWarn, kit.Remote(p, kit.Plain("", kit.Ink))...)))
	}
	b.said = col.Objects[len(col.Objects)-1]
	if b.where != nil {
		col.Add(kit.Pad(16, 0, 0, 0, kit.Row(8, caption("It runs"), b.where)))
	}
	col.Add(b.warning)
	if len(b.scopes) > 1 || b.scopes[0] != consent.Once {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Row(8, caption("Allow for"), b.scope)))
	}
	b.wideBox = kit.Column(0)
	if b.wide != nil {
		b.wideBox.Add(kit.Pad(8, 0, 0, 0, kit.Row(8, caption("Covers"), b.wide)))
	}
	col.Add(b.wideBox)
	b.rule = kit.NewFlow(w, kit.Small)
	b.ruleBox = kit.Pad(8, 0, 0, 0, b.rule)
	col.Add(b.ruleBox)
	b.draw()
	return col
}

// addExact says what happens, and then exactly what.
func (b *actionBody) addExact(col *fyne.Container, w float32) {
	r := b.o.card.Request
	if steps := b.steps(w); len(b.stepsBox.Objects) > 0 && !seesOnly(r) {
		col.Add(kit.Pad(16, 0, 0, 0, steps))
	}
	switch {
	case r.Exact == "":
	case seesOnly(r):
		// The choice of screens says what may be seen; this is what it begins with.
		if r.Exact != r.Rule.Exact {
			now := append([]kit.Span{kit.Plain("Right now it asks for: ", kit.Dim)}, kit.Remote(r.Exact, kit.Plain("", kit.Dim))...)
			col.Add(kit.Pad(12, 0, 0, 0, kit.NewFlow(w, kit.Small, now...)))
		}
	default:
		box := kit.NewExact(w, mostExact, b.o.keys, r.Exact)
		b.o.scrolls("exact "+r.ID, box)
		col.Add(section(w, exactWords(r, box)))
		col.Add(box)
	}
}

// seesOnly says that a card of screens has said all that happens.
func seesOnly(r consent.Request) bool {
	return len(r.Screens) > 0 && len(r.Steps) == 0 && !slices.ContainsFunc(r.Effects, func(e consent.Effect) bool { return e.Kind != consent.EffectSee })
}

// addPlace says where a connection leads: the host large, as it was asked for.
func (b *actionBody) addPlace(col *fyne.Container, w float32) {
	r := b.o.card.Request
	mono := kit.Span{Ink: kit.Ink, Bold: true, Mono: true}
	col.Add(section(w, "Connects to exactly this"))
	col.Add(kit.Panel(kit.Code, kit.Line, 12, kit.NewFlow(w-24, kit.Title, kit.Remote(r.Exact, mono)...)))
	if steps := b.steps(w); len(r.Steps) > 0 || len(r.Effects) > 1 {
		col.Add(kit.Pad(12, 0, 0, 0, steps))
	}
	if words := placeNote(r.Action); words != "" {
		col.Add(kit.Pad(12, 0, 0, 0, kit.Note(w, kit.ToneRisk, kit.Plain(words, kit.Ink))))
	}
}

func (b *actionBody) changed() {
	b.draw()
	b.o.grown()
}

// last is what the card says; with full access, its warning.
func (b *actionBody) last() (string, fyne.CanvasObject) {
	if b.full {
		return "card, full access", b.warning
	}
	return "card", b.said
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
	if b.screens != nil {
		b.screens.draw(c.Scope)
	}
	show(b.wideBox, b.wideOffered(c.Scope))
	show(b.ruleBox, c.Scope != consent.Once)
	if c.Scope != consent.Once {
		b.rule.Set(b.ruleSpans(c)...)
	}
}

// ruleSpans print what would be remembered, exactly as it will match.
func (b *actionBody) ruleSpans(c consent.Choice) []kit.Span {
	r := b.o.card.Request
	rule, head := r.Rule, []kit.Span{kit.Plain("Remembers exactly this: ", kit.Dim)}
	if c.Wide {
		rule, head = *r.Wide, []kit.Span{kit.Plain("Remembers all of this kind: ", kit.Dim)}
		if r.WideWords != "" {
			head = append(head, kit.Remote(r.WideWords, kit.Bold("", kit.Ink))...)
			head = append(head, kit.Plain(" · ", kit.Dim))
		}
	}
	rule.Contain = c.Contain
	if len(r.Screens) > 0 {
		rule.Exact = consent.ScreensRule(c.Screens)
	}
	home, _ := os.UserHomeDir() // without one, paths are whole
	spans := append(head, kit.Remote(policy.RuleWords(policy.AtHome(rule, home), c), kit.Plain("", kit.Dim))...)
	if n := len(b.o.card.Folded); n > 0 && !c.Wide {
		spans = append(spans, kit.Plain(" · and just so for each of the other "+itoa(n), kit.Dim))
	}
	return spans
}

// wideOffered says whether a broader rule can be chosen with a scope: not for
// once, and never with full access.
func (b *actionBody) wideOffered(s consent.Scope) bool {
	return b.wide != nil && !b.full && s != consent.Once && s != consent.Command
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
	c.Wide = b.wideOffered(c.Scope) && b.wide.Selected() == 1
	if b.screens == nil {
		return c, true
	}
	var ok bool
	c.Screens, ok = b.screens.chosen()
	return c, ok
}

func (b *actionBody) allowWord() string {
	if r := b.o.card.Request; r.Capability == consent.CapabilityComputer && len(b.o.card.Folded) == 0 {
		return allowScope[b.scopes[b.scope.Selected()]]
	}
	return allowWords(b.o.card, b.full)
}

// allowScope says on the button how long the screen, mouse or keyboard are
// lent.
var allowScope = map[consent.Scope]string{consent.Once: "Allow once", consent.Command: "Allow once", consent.Session: "Allow for this session",
	consent.Minutes15: "Allow for 15 minutes", consent.Always: "Allow always"}

// mostExact is how many lines of the exact text show without scrolling.
const mostExact = 8

// exactWords head the exact text; of a long one they say how long it is.
func exactWords(r consent.Request, box *kit.Exact) string {
	words := "Exactly this"
	switch {
	case r.Action == "run":
		words = "Exactly this runs"
	case r.Capability == consent.CapabilityFolders:
		words = "In these places"
	}
	if n := strings.Count(strings.TrimSuffix(r.Exact, "\n"), "\n") + 1; n > mostExact {
		words += " · " + itoa(n) + " lines"
	}
	if box.Scrolls() {
		words += " · scroll to read all"
	}
	return words
}

// title is a card's sentence, set large; there it ends without a full stop.
func title(w float32, sentence string) fyne.CanvasObject {
	return kit.NewFlow(w, kit.Title, kit.Remote(strings.TrimSuffix(sentence, "."), kit.Bold("", kit.Ink))...)
}

// section is the small line above a box.
func section(w float32, words string) fyne.CanvasObject {
	return kit.Pad(16, 0, 6, 0, kit.NewFlow(w, kit.Small, kit.Plain(words, kit.Dim)))
}

const captionWidth = 56

func caption(words string) fyne.CanvasObject {
	return kit.Width(captionWidth, kit.NewFlow(80, kit.Small, kit.Plain(words, kit.Dim)))
}
