package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"localpc/app/desklink"
	"localpc/app/snapshot"
	"localpc/app/ui/kit"
	"localpc/consent"
)

// exactLines are the first lines of all boxes of exact text, in order.
func exactLines(w fyne.Window) (out []string) {
	walk(w.Content(), func(o fyne.CanvasObject) {
		if e, ok := o.(*kit.Exact); ok {
			out = append(out, e.Lines()[0])
		}
	})
	return out
}

// One card for several equal requests says how many, and lists them all.
func TestFoldedCard(t *testing.T) {
	s := newStage(t)
	o := s.card(s.replacing(5))
	w := s.u.card.win
	for _, want := range []string{"Claude Desktop wants to replace 5 files", "Write notes/1.md", "Write notes/5.md", "Replaces 1.md, 2 KB", "Replaces 5.md, 3 KB"} {
		if !has(w, want) {
			t.Errorf("the card lacks %q: %q", want, texts(w))
		}
	}
	if got := exactLines(w); len(got) != 5 || got[4] != "/home/person/project/notes/5.md" {
		t.Errorf("exact texts %q", got)
	}
	if o.allow.Text() != "Allow all 5" {
		t.Errorf("the button says %q", o.allow.Text())
	}
	o.body.(*actionBody).scope.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
	if !has(w, "just so for each of the other 4") {
		t.Errorf("the rule reads %q", texts(w))
	}
	click(o.allow)
	if a := s.answers(); len(a) != 1 || !a[0].Allow || a[0].Choice.Scope != consent.Session {
		t.Errorf("answers %+v", a)
	}
}

// What a step of one of them says already is not said again, as on a card for
// one alone.
func TestFoldedCardSaysThingsOnce(t *testing.T) {
	s := newStage(t)
	c := s.command("rm a.tmp")
	c.Request.Steps = []string{"Deletes a.tmp: 1 file, 3 bytes"}
	c.Request.Effects = []consent.Effect{{Kind: consent.EffectDelete, Text: "deletes a.tmp (3 bytes); cannot be undone", Count: 1}}
	c.Folded = []snapshot.Folded{{ID: "f2", Title: "Delete b.tmp", Exact: "rm b.tmp",
		Steps: []string{"Deletes b.tmp: 1 file, 3 bytes"}, Effects: []string{"deletes b.tmp (3 bytes); cannot be undone", "deletes c.tmp; cannot be undone"}}}
	s.card(c)
	w := s.u.card.win
	for _, want := range []string{"Deletes a.tmp: 1 file, 3 bytes; cannot be undone", "Deletes b.tmp: 1 file, 3 bytes; cannot be undone", "Deletes c.tmp; cannot be undone"} {
		if !has(w, want) {
			t.Errorf("the card lacks %q: %q", want, texts(w))
		}
	}
	if has(w, "a.tmp (3 bytes)") || has(w, "b.tmp (3 bytes)") {
		t.Errorf("the card says a thing twice: %q", texts(w))
	}
}

// Fewer requests on the open card: the count follows, and nothing that the
// person has done is lost.
func TestFoldedCardBecomesSmaller(t *testing.T) {
	s := newStage(t)
	c := s.replacing(5)
	o := s.card(c)
	b := o.body.(*actionBody)
	w := s.u.card.win
	w.Canvas().Focus(b.scope)
	keyOn(w, fyne.KeyRight)
	w.Canvas().Unfocus()
	typeOn(w, "4")

	w.Canvas().Focus(b.scope)
	next := c
	next.Folded, next.Digits, next.Waiting = c.Folded[2:], "93", 3
	s.show(next)
	if s.u.card.now != o || !o.allow.Armed() {
		t.Fatal("fewer requests make a new card of it")
	}
	if !has(w, "wants to replace 3 files") || has(w, "notes/2.md") || !has(w, "Write notes/4.md") || !has(w, "3 more waiting") || o.allow.Text() != "Allow all 3" {
		t.Fatalf("the card says %q", texts(w))
	}
	if w.Canvas().Focused() != fyne.Focusable(b.scope) {
		t.Error("the keyboard went elsewhere")
	}
	w.Canvas().Focus(s.box("/home/person/project/notes/4.md").Rows()) // it goes
	next.Folded = nil
	s.show(next)
	if f := w.Canvas().Focused(); f != nil {
		t.Errorf("%T has the keyboard without anybody's doing", f)
	}
	if !has(w, "wants to replace notes/1.md (2 KB)") || o.allow.Text() != "Allow" {
		t.Fatalf("the last one's card says %q", texts(w))
	}
	typeOn(w, "7")
	if a := s.answers(); len(a) != 1 || !a[0].Allow || a[0].Choice.Scope != consent.Session {
		t.Fatalf("answers %+v: what was chosen and typed is lost", a)
	}
}

// More, or another thing under the same name, is a new card: it arms anew.
func TestACardThatIsNotFewerIsNew(t *testing.T) {
	for name, change := range map[string]func(c *desklink.Card){
		"another one":      func(c *desklink.Card) { c.Folded[0].ID = "new" },
		"another text":     func(c *desklink.Card) { c.Folded[0].Exact = "/home/person/.bashrc" },
		"one more":         func(c *desklink.Card) { c.Folded = append(c.Folded, snapshot.Folded{ID: "new"}) },
		"another request":  func(c *desklink.Card) { c.Request.Exact = "/home/person/.bashrc" },
		"the same twice":   func(c *desklink.Card) { c.Folded = append(c.Folded, c.Folded[0]) },
		"another sentence": func(c *desklink.Card) { c.Request.Sentence = "x" },
	} {
		s := newStage(t)
		o := s.card(s.replacing(3))
		c := s.replacing(3)
		change(&c)
		s.show(c)
		now := s.u.card.now
		if now == o || now.allow.Armed() {
			t.Errorf("%s: the card stays armed", name)
		}
		click(now.allow)
		typeOn(s.u.card.win, "47")
		if a := s.answers(); len(a) != 0 {
			t.Errorf("%s: answered %+v", name, a)
		}
	}
}

// A new deadline is the same card with a new end.
func TestMoreTime(t *testing.T) {
	s := newStage(t)
	c := s.command("a")
	o := s.card(c)
	c.Request.Deadline = c.Request.Deadline.Add(time.Minute)
	s.show(c)
	if s.u.card.now != o || !o.allow.Armed() || !has(s.u.card.win, "Closes in 1:49") {
		t.Errorf("the card says %q", texts(s.u.card.win))
	}
}

// Every text of a folded card is read to its end before it allows.
func TestFoldedTextsAreReadToTheirEnds(t *testing.T) {
	s := newStage(t)
	o := s.waits(func() desklink.Card {
		c := s.replacing(3)
		c.Folded[1].Exact = strings.Repeat("harmless\n", 50) + "harmful"
		return c
	})
	c := o.card
	c.Folded = c.Folded[1:]
	s.show(c)
	s.cannotAllow(o, "one gone, the long one still there")
	s.box("harmless").End()
	s.allows(o, "read")
}

func TestWordsOfFoldedCards(t *testing.T) {
	del, over := consent.EffectDelete, consent.EffectOverwrite
	for _, c := range []struct {
		capability, action string
		effect             consent.EffectKind
		full               bool
		title, button      string
	}{
		{"files", "delete", del, false, "delete 2 files or folders", "Allow 2 deletions"},
		{"files", "write", consent.EffectCreate, false, "write 2 files", "Allow all 2"},
		{"files", "write", over, false, "replace 2 files", "Allow all 2"},
		{"files", "mkdir", consent.EffectCreate, false, "make 2 folders", "Allow all 2"},
		{"files", "move", consent.EffectMove, false, "move 2 files or folders", "Allow all 2"},
		{"files", "read", consent.EffectRead, false, "read 2 files", "Allow all 2"},
		{"shell", "run", consent.EffectRun, false, "run 2 commands", "Allow all 2"},
		{"shell", "run", consent.EffectRun, true, "run 2 commands", "Allow full access, all 2"},
		{"shell", "run", del, false, "run 2 commands that delete files", "Allow all 2"},
		{"network", "internet", consent.EffectConnect, false, "make 2 connections", "Allow 2 connections"},
	} {
		card := desklink.Card{Request: consent.Request{Capability: c.capability, Action: c.action, Principal: consent.Principal{Name: "X"},
			Effects: []consent.Effect{{Kind: c.effect}}}, Folded: []snapshot.Folded{{ID: "2"}}}
		if got := cardSentence(card); got != "X wants to "+c.title {
			t.Errorf("%s %s: %q", c.capability, c.action, got)
		}
		if got := allowWords(card, c.full); got != c.button {
			t.Errorf("%s %s: button %q", c.capability, c.action, got)
		}
	}
}

// What comes from elsewhere cannot write on a folded card, either.
func TestHostileFoldedText(t *testing.T) {
	s := newStage(t)
	c := s.replacing(2)
	c.Folded[0].Title, c.Folded[0].Exact = "two\nlines\u202e", "\u200bx"
	c.Folded[0].Effects, c.Folded[0].Steps, c.Folded[0].Details = []string{"e\x1b[1m"}, []string{"s\u2028"}, []string{"d\u00ad"}
	c.Request.Steps = []string{"\u202estep"}
	c.Request.WideWords = "\u202ewide"
	c.Request.Folder = "/home/person/\u202efolder"
	s.card(c)
	all := append(texts(s.u.card.win), exactLines(s.u.card.win)...)
	for _, text := range all {
		if strings.ContainsAny(text, "\u202e\u200b\x1b\u2028\u00ad") {
			t.Errorf("drawn raw: %q", text)
		}
	}
	joined := strings.Join(all, "\n")
	for _, want := range []string{`two\nlines\u202e`, `\u200bx`, `\x1b[1m`, `s\u2028`, `\u202estep`} {
		if !contains(joined, want) {
			t.Errorf("the card lacks %q", want)
		}
	}
}

// A person goes through a card by Tab alone: every control, in the order in
// which they stand.
func TestTabOrder(t *testing.T) {
	s := newStage(t)
	c := s.deletion("a")
	c.Denied = 3
	c.Request.Exact = strings.Repeat("echo\n", 30)
	c.Request.Steps = manySteps(12)
	s.show(c)
	s.paint()
	s.clock.run(time.Second)
	w := s.u.card.win
	b := s.u.card.now.body.(*actionBody)
	b.scope.TypedKey(&fyne.KeyEvent{Name: fyne.KeyRight})
	name := func() string {
		switch f := w.Canvas().Focused().(type) {
		case *kit.Button:
			return f.Text()
		case *kit.Rows:
			return "exact text"
		case *kit.Segments:
			switch f {
			case b.where:
				return "it runs"
			case b.scope:
				return "allow for"
			case b.wide:
				return "covers"
			}
		}
		return "?"
	}
	var got []string
	w.Canvas().Unfocus()
	for range 9 {
		w.Canvas().(test.WindowlessCanvas).FocusNext()
		got = append(got, name())
	}
	want := []string{"and 4 more steps", "exact text", "it runs", "allow for", "covers", "Deny and end this session", "Deny", "Deny for this session", "Read on ↓"}
	if !slices.Equal(got, want) {
		t.Errorf("Tab goes through %q, want %q", got, want)
	}
}
