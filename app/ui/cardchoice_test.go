package ui

import (
	"slices"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/ui/kit"
	"localpc/consent"
	"localpc/consent/policy"
)

// words are those of a choice that are offered.
func words(seg *kit.Segments) (out []string) {
	walk(seg, func(o fyne.CanvasObject) {
		if word, ok := o.(*canvas.Text); ok {
			out = append(out, word.Text)
		}
	})
	return out
}

func press(f fyne.Focusable, names ...fyne.KeyName) {
	for _, n := range names {
		f.TypedKey(&fyne.KeyEvent{Name: n})
	}
}

func TestDeletionCard(t *testing.T) {
	s := newStage(t)
	o := s.card(s.deletion("a"))
	w := s.u.card.win
	for _, want := range []string{"Claude Desktop wants to delete 214 files in Pictures", "◆ Deletes files", "● No network unless you allow it", "● Stays in Pictures",
		"Finds files named *.tmp in Pictures and below", "Deletes them: 214 files, 1.3 GB; cannot be undone", "Exactly this runs"} {
		if !has(w, want) {
			t.Errorf("the card lacks %q: %q", want, texts(w))
		}
	}
	if has(w, "In all") {
		t.Errorf("what a step has told is told again: %q", texts(w))
	}
	if o.allow.Text() != "Allow deletion" {
		t.Errorf("the button says %q", o.allow.Text())
	}
}

// The effects that no step tells are told.
func TestStepsDoNotHideAnEffect(t *testing.T) {
	s := newStage(t)
	c := s.deletion("a")
	c.Request.Steps = []string{"Tidies up", "Says goodbye"}
	s.card(c)
	if w := s.u.card.win; !has(w, "In all") || !has(w, "Deletes 214 files, 1.3 GB; cannot be undone") {
		t.Errorf("of several steps the card says %q", texts(w))
	}
	c.Request.ID, c.Request.Steps = "b", c.Request.Steps[:1]
	s.card(c)
	if w := s.u.card.win; has(w, "In all") || !has(w, "Deletes 214 files, 1.3 GB; cannot be undone") {
		t.Errorf("of one step the card says %q", texts(w))
	}
}

// Whether a step can be undone is said with the step, where its effect says no
// more than it; a program's name stays as it is written.
func TestStepsSayWhatCanBeUndone(t *testing.T) {
	s := newStage(t)
	c := s.deletion("a")
	c.Request.Steps = []string{"npm test: runs the program's own tests", "Deletes the files named *.tmp in Pictures and below: 214 files, 1.3 GB"}
	s.card(c)
	w := s.u.card.win
	if !has(w, "and below: 214 files, 1.3 GB; cannot be undone") || has(w, "In all") || !has(w, "npm test: ") {
		t.Errorf("the card says %q", texts(w))
	}
	c.Request.ID, c.Request.Steps = "b", []string{"Reads deletes 214 files, 1.3 GB; cannot be undone", "Tidies up"}
	s.card(c)
	if !has(w, "In all") {
		t.Errorf("a name hides the effect: %q", texts(w))
	}
}

func TestAmountsAreBold(t *testing.T) {
	for in, want := range map[string]string{
		"deletes 214 files, 1.3 GB; cannot be undone": "deletes [214 files], [1.3 GB]; [cannot be undone]",
		"reads report2024.txt":                        "reads report2024.txt",
		"more than 1000 entries can be undone":        "more than [1000 entries] [can be undone]",
		"runs 3 things":                               "runs 3 things",
	} {
		got := ""
		for _, sp := range counted(in) {
			if sp.Bold {
				got += "[" + sp.Text + "]"
			} else {
				got += sp.Text
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Each kind of effect has its chip, the gravest first; what a session made
// itself is no alarm.
func TestChips(t *testing.T) {
	chips := func(r consent.Request, full bool) (out []string) {
		for _, c := range effectChips(r, full) {
			out = append(out, c.shape+" "+c.word)
		}
		return out
	}
	r := consent.Request{Capability: "shell", Action: "run", Containable: true, Folder: "/home/person/Pictures"}
	for i := len(effectChipsByWeight) - 1; i >= 0; i-- {
		r.Effects = append(r.Effects, consent.Effect{Kind: effectChipsByWeight[i].kind})
	}
	got := chips(r, false)
	if len(got) != len(effectChipsByWeight)+2 || got[0] != "◆ Can't be told beforehand" || got[len(got)-2] != "● No network unless you allow it" || got[len(got)-1] != "● Stays in Pictures" {
		t.Errorf("chips %q", got)
	}
	seen := map[string]bool{}
	for _, g := range got {
		if seen[g] {
			t.Errorf("%q twice", g)
		}
		seen[g] = true
	}
	for _, k := range []consent.EffectKind{consent.EffectRead, consent.EffectCreate, consent.EffectOverwrite, consent.EffectDelete, consent.EffectMove, consent.EffectStartup,
		consent.EffectEnv, consent.EffectAccess, consent.EffectConnect, consent.EffectSettings, consent.EffectInstall, consent.EffectRoot, consent.EffectUnknown} {
		r.Effects = []consent.Effect{{Kind: k}}
		if got := chips(r, true); len(got) != 2 || got[1] != "◆ Full access" {
			t.Errorf("%s: chips %q", k, got)
		}
	}
	r.Effects = []consent.Effect{{Kind: consent.EffectRun}, {Kind: consent.EffectDelete, Own: true}}
	if got := chips(r, false); !slices.Equal(got, []string{"● Only what it made itself", "● No network unless you allow it", "● Stays in Pictures"}) {
		t.Errorf("of its own: %q", got)
	}
}

// A broader rule can be chosen where one is offered, for longer than once and
// never with full access; the rule that is printed follows the choice.
//
// anomalyco/opencode#9554: what is remembered is shown as it will match.
func TestWideRule(t *testing.T) {
	s := newStage(t)
	o := s.card(s.deletion("a"))
	w := s.u.card.win
	b := o.body.(*actionBody)
	if has(w, "Covers") {
		t.Error("a rule is offered for once")
	}
	press(b.scope, fyne.KeyRight)
	if !has(w, "Covers") || !slices.Equal(words(b.wide), []string{"Exactly this", "Deleting in this folder"}) {
		t.Fatalf("the card offers %q", words(b.wide))
	}
	if c, _ := b.choice(); c.Wide || !has(w, "Remembers exactly this: Run `find") {
		t.Errorf("choice %+v, %q", c, texts(w))
	}
	press(b.wide, fyne.KeyRight)
	rule := *o.card.Request.Wide
	rule.Contain = consent.Contained
	c, _ := b.choice()
	if !c.Wide || !has(w, "Remembers all of this kind: deleting in this folder · "+policy.RuleWords(rule, c)) {
		t.Errorf("choice %+v, %q", c, texts(w))
	}
	press(b.where, fyne.KeyRight) // full access
	if c, _ := b.choice(); c.Wide || has(w, "Covers") || c.Scope != consent.Session {
		t.Errorf("choice %+v with full access", c)
	}
	press(b.where, fyne.KeyLeft)
	press(b.scope, fyne.KeyLeft)
	if c, _ := b.choice(); c.Wide || has(w, "Covers") {
		t.Errorf("choice %+v for once", c)
	}
	press(b.scope, fyne.KeyRight)
	click(o.allow)
	if a := s.answers(); len(a) != 1 || a[0].Choice != (consent.Choice{Scope: consent.Session, Contain: consent.Contained, Wide: true}) {
		t.Errorf("answers %+v", a)
	}
}

// Words too long for the choice stand in the rule.
func TestLongWideWords(t *testing.T) {
	s := newStage(t)
	c := s.deletion("a")
	c.Request.WideWords = strings.Repeat("many words ", 12)
	b := s.card(c).body.(*actionBody)
	press(b.scope, fyne.KeyRight)
	press(b.wide, fyne.KeyRight)
	if !slices.Equal(words(b.wide), []string{"Exactly this", "All of this kind"}) || !has(s.u.card.win, c.Request.WideWords) {
		t.Errorf("offered %q: %q", words(b.wide), texts(s.u.card.win))
	}
}

func TestConnectionCard(t *testing.T) {
	for place, want := range map[string]string{
		"internet": "▲ On the internet", "home": "◆ In your home network", "local": "◆ On this computer", "link": "◆ On the cable or wireless network here", "": "◆ It is not known where",
	} {
		s := newStage(t)
		c := s.connection(place)
		o := s.card(c)
		w := s.u.card.win
		b := o.body.(*actionBody)
		offered := []string{"This command", "This session", "15 minutes", "Always"}
		if place != "internet" {
			offered = offered[:2]
		}
		if got := words(b.scope); !slices.Equal(got, offered) {
			t.Errorf("%s: offered for %q", place, got)
		}
		for _, text := range []string{want, "packages.example.org:443", "At port 443, encrypted web\nIts addresses now: 104.16.3.35, 104.16.2.35", "Remembers exactly this: "} {
			if !has(w, text) {
				t.Errorf("%s: the card lacks %q: %q", place, text, texts(w))
			}
		}
		warned := has(w, "trust whoever") || has(w, "It can't be told where")
		if warned != (place != "internet") {
			t.Errorf("%s: warned %v", place, warned)
		}
		if o.allow.Text() != "Allow connection" {
			t.Errorf("%s: the button says %q", place, o.allow.Text())
		}
		click(o.allow)
		if a := s.answers(); len(a) != 1 || a[0].Choice != (consent.Choice{Scope: consent.Command}) {
			t.Errorf("%s: answers %+v", place, a)
		}
	}
}

// A session that keeps being denied can be ended from its card.
func TestDeniedOften(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	c.Denied = 2
	s.card(c)
	if has(s.u.card.win, "in a row") || has(s.u.card.win, "end this session") {
		t.Error("offered after two")
	}
	c.Request.ID, c.Denied = "b", 3
	s.card(c)
	if !has(s.u.card.win, "This session was denied 3 times in a row.") {
		t.Errorf("the card says %q", texts(s.u.card.win))
	}
	s.tap(s.u.card.win, "Deny and end this session")
	if a := s.answers(); len(a) != 1 || a[0].Allow || a[0].Choice != (consent.Choice{Scope: consent.Once, End: true}) {
		t.Errorf("answers %+v", a)
	}
	for _, c := range []desklink.Card{s.session("/home/person"), s.browse()} {
		c.Denied = 5
		s.card(c)
		if has(s.u.card.win, "end this session") {
			t.Errorf("%s offers to end a session", c.Request.Capability)
		}
	}
}

func TestSessionIsDeniedForAWhile(t *testing.T) {
	s := newStage(t)
	s.card(s.session("/home/person/project"))
	s.tap(s.u.card.win, "Not for the next 15 minutes")
	if a := s.answers(); len(a) != 1 || a[0].Allow || a[0].Choice != (consent.Choice{Scope: consent.Minutes15}) {
		t.Errorf("answers %+v", a)
	}
}

const otherWay = "Another way: trusted for 15 minutes"

// Trust for 15 minutes is chosen on purpose only, says what it costs, and is
// never remembered.
func TestTrusted(t *testing.T) {
	s := newStage(t)
	c := s.session("/home/person/project")
	c.Request.Mode = consent.ModeTrusted // whoever wishes for it
	o := s.card(c)
	w := s.u.card.win
	b := o.body.(*sessionBody)
	if got, _ := b.choice(); got.Mode != consent.ModeWork {
		t.Fatalf("preselected %q", got.Mode)
	}
	test.Tap(b.remember)
	press(b.mode, fyne.KeyDown, fyne.KeyDown, fyne.KeyDown, fyne.KeyDown)
	if got, _ := b.choice(); got.Mode != consent.ModeAsk || has(w, "Trusted for 15 minutes") {
		t.Fatalf("the arrows lead to %q", got.Mode)
	}
	w.Canvas().Focus(s.button(w, otherWay))
	keyOn(w, fyne.KeyReturn)
	if got, _ := b.choice(); got.Mode != consent.ModeAsk || !has(w, "Trusted for 15 minutes") || has(w, otherWay) {
		t.Fatalf("to see it chooses %q: %q", got.Mode, texts(w))
	}
	keyOn(w, fyne.KeyDown)
	if has(w, "Remember for") || !has(w, "What it deletes or replaces meanwhile can be undone in Activity, as far as it is kept.") || o.allow.Text() != "Start, trusted" {
		t.Errorf("the card says %q", texts(w))
	}
	if got, _ := b.choice(); got.Mode != consent.ModeTrusted || got.Remember {
		t.Errorf("choice %+v", got)
	}
	press(b.mode, fyne.KeyUp)
	if !has(w, "Remember for") || o.allow.Text() != "Start" {
		t.Errorf("back again, the card says %q", texts(w))
	}
	press(b.mode, fyne.KeyDown)
	typeOn(w, "47")
	want := consent.Choice{Scope: consent.Session, Mode: consent.ModeTrusted, Folder: "/home/person/project"}
	if a := s.answers(); len(a) != 1 || a[0].Choice != want {
		t.Errorf("answers %+v", a)
	}
}

// The ways are explained in words that are true with and without a container.
func TestWaysAreExplained(t *testing.T) {
	s := newStage(t)
	c := s.session("/home/person/project")
	s.card(c)
	s.tap(s.u.card.win, otherWay)
	for _, want := range []string{"Trusted for 15 minutes", "but programs may do so on their own", "but delete, move, replace without asking."} {
		if !has(s.u.card.win, want) {
			t.Errorf("the card lacks %q: %q", want, texts(s.u.card.win))
		}
	}
	c.Request.ID, c.ContainProblem = "b", "No containers here."
	s.card(c)
	s.tap(s.u.card.win, otherWay)
	for _, want := range []string{"can't keep programs inside a folder", "You are asked before each command all the same."} {
		if !has(s.u.card.win, want) {
			t.Errorf("the card lacks %q: %q", want, texts(s.u.card.win))
		}
	}
}
